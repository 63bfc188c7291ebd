"""Q6, Q7, Q8 and C3 from the call that reports to the pool a router gets."""

import pytest
import time_machine

from ladder.models import Cooldown
from tests.factories import BillingEntryFactory, ConnectionFactory, ModelPriceFactory
from tests.factories_ladder import NOW

pytestmark = pytest.mark.django_db

MODELS = ("claude-opus-4", "claude-sonnet-4")


@pytest.fixture(autouse=True)
def at_now(db):
    BillingEntryFactory(provider="claude")
    ConnectionFactory(connection_id="c1")
    for model in MODELS:
        ModelPriceFactory(provider="claude", model=model)
    with time_machine.travel(NOW, tick=False):
        yield


@pytest.fixture
def fleet(router):
    return Fleet(router)


class Fleet:
    """One plan, as its router reports it and as its operator tunes it."""

    def __init__(self, router):
        self.router = router
        self.second = 0

    def read(self, complete=False, **windows):
        """Report windows, each a number or the fields of an item; every report is a second newer than the last."""
        self.second += 1
        observed_at = f"2026-08-22T11:59:{self.second:02}Z"
        readings = [
            {"connection_id": "c1", "window": name.replace("_", ":"), "observed_at": observed_at}
            | (said if isinstance(said, dict) else {"remaining_percent": said})
            for name, said in windows.items()
        ]
        body = {"readings": readings} | ({"complete_for": ["c1"]} if complete else {})
        assert self.router.post("/api/v1/telemetry/readings", body).json()["rejected"] == []

    def tune(self, window, **fields):
        address = f"/api/v1/connections/c1/windows/{window}"
        assert self.router.send("patch", address, fields | {"reason": "tuned"}).status_code == 200

    def refused(self, **fields):
        self.second += 1
        event = {"connection_id": "c1", "cause": "quota", "occurred_at": f"2026-08-22T11:59:{self.second:02}Z"}
        body = {"events": [event | {"retry_after": 3600} | fields]}
        assert self.router.post("/api/v1/telemetry/rate-limits", body).json()["accepted"] == 1

    def out(self):
        """Return the codes of the models that the plan does not serve now."""
        answer = self.router.get("/api/v1/pools/auto/subscription?explain=true").json()
        return {one["model"].removeprefix("claude-")[:-2]: one["code"] for one in answer["excluded"]}


BOTH = {"opus", "sonnet"}


def of_both(code):
    return dict.fromkeys(BOTH, code)


def test_all_limit_windows_must_be_usable_q6(fleet):
    fleet.read(**{"5h": 50, "weekly": 50})
    assert fleet.out() == {}
    fleet.read(weekly=1)
    assert fleet.out() == of_both("quota_exhausted")


def test_of_pool_windows_one_must_be_usable_q6_q8(fleet):
    pool = {"combine": "pool"}
    fleet.read(plan={"remaining_percent": 0} | pool, bonus={"remaining_percent": 40} | pool)
    assert fleet.out() == {}
    fleet.read(bonus=0)
    assert fleet.out() == of_both("quota_exhausted")
    fleet.read(bonus={"status": "unknown"})
    assert fleet.out() == of_both("quota_unverified")
    fleet.read(bonus=40, weekly=1)
    assert fleet.out() == of_both("quota_exhausted")


def test_a_window_of_a_model_counts_for_that_model_alone_q6(fleet):
    fleet.read(weekly=50, weekly_opus={"remaining_percent": 0, "model": "*OPUS*"})
    assert fleet.out() == {"opus": "quota_exhausted"}
    fleet.read(weekly_opus=50)
    assert fleet.out() == {}


def test_a_muted_window_does_not_count_and_no_window_at_all_is_unverified_q6_q8(fleet):
    fleet.read(**{"5h": 50, "weekly": 0})
    fleet.tune("weekly", is_muted=True)
    assert fleet.out() == {}
    fleet.tune("5h", is_muted=True)
    assert fleet.out() == of_both("quota_unverified")
    fleet.tune("weekly", is_muted=False)
    assert fleet.out() == of_both("quota_exhausted")


def test_a_window_no_longer_reported_does_not_count_until_it_is_seen_again_q6(fleet):
    fleet.read(**{"5h": 50, "weekly": 0})
    fleet.read(complete=True, **{"5h": 50})
    assert fleet.out() == {}
    fleet.read(weekly=1)
    assert fleet.out() == of_both("quota_exhausted")


def test_a_windows_own_cutoff_replaces_the_exit_cutoff_and_is_its_floor_too_q7(fleet):
    fleet.read(**{"5h": 50, "weekly": 20})
    assert fleet.out() == {}
    fleet.tune("weekly", exit_cutoff_percent=20)
    assert fleet.out() == of_both("quota_exhausted")
    fleet.read(weekly=20.5)
    assert fleet.out() == {}
    fleet.tune("weekly", exit_cutoff_percent=0)
    fleet.read(weekly=1)
    assert fleet.out() == {}
    fleet.tune("weekly", exit_cutoff_percent=None)
    assert fleet.out() == of_both("quota_exhausted")
    fleet.read(weekly=4)
    assert fleet.out() == of_both("held_for_reentry")
    fleet.tune("weekly", exit_cutoff_percent=0)
    assert fleet.out() == {}


def test_a_quota_cooldown_is_lifted_when_all_that_counts_is_seen_usable_after_the_report_c3(fleet):
    fleet.read(**{"5h": 50, "weekly": 50})
    fleet.refused()
    assert fleet.out() == of_both("cooldown")
    fleet.read(**{"5h": 50})
    assert fleet.out() == of_both("cooldown")
    fleet.read(weekly=50)
    assert fleet.out() == {}


def test_a_quota_cooldown_of_a_model_asks_that_models_windows_c3_q6(fleet):
    fleet.read(weekly_opus={"remaining_percent": 50, "model": "*opus*"}, weekly=50)
    fleet.refused(model="claude-opus-4")
    assert fleet.out() == {"opus": "cooldown"}
    fleet.read(weekly=50)
    assert fleet.out() == {"opus": "cooldown"}
    fleet.read(weekly_opus=2)
    assert fleet.out() == {"opus": "cooldown"}
    fleet.read(weekly_opus=50)
    assert fleet.out() == {}


def test_muted_and_vanished_windows_do_not_keep_a_quota_cooldown_c3_q6(fleet):
    fleet.read(**{"5h": 50, "weekly": 0, "bonus": 0})
    fleet.tune("weekly", is_muted=True)
    fleet.refused()
    fleet.read(**{"5h": 50})
    assert Cooldown.objects.exists()
    fleet.read(complete=True, **{"5h": 50})
    assert fleet.out() == {}


def test_a_window_held_for_reentry_keeps_a_quota_cooldown_c3_q4(fleet):
    fleet.read(weekly=1)
    fleet.refused()
    fleet.read(weekly=4)
    assert fleet.out() == of_both("cooldown")
    fleet.read(weekly=6)
    assert fleet.out() == {}


def test_a_rate_limit_is_lifted_by_no_reading_c3(fleet):
    fleet.refused(cause="rate_limit")
    fleet.read(weekly=90)
    assert fleet.out() == of_both("cooldown")
