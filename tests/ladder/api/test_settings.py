import json

import pytest

from billing_catalog.models import TierThresholds
from ladder.models import LadderSettings, RungBudget
from omniroute_admin.common.selectors.revision import current_revision
from tests.router import make_router

pytestmark = pytest.mark.django_db

ADDRESS = "/api/v1/settings"
OMNIROUTE = "/api/v1/settings/omniroute.json"
FRESH = {
    "exit_cutoff_percent": 2,
    "reentry_min_remaining_percent": 5,
    "max_reading_age_seconds": 180,
    "tier_thresholds": {"free": "0", "cheap": "1.00"},
    "rung_budgets": {
        rung: {"amount_usd": None, "period": "daily", "week_starts_on": "monday", "zone": "UTC"}
        for rung in ("cheap", "premium")
    },
}


def pointers(response):
    assert response.status_code == 400, response.content
    return {error["pointer"] for error in response.json()["errors"]}


def patch(router, body, **headers):
    return router.send("patch", ADDRESS, body, **headers)


def test_a_fresh_product_has_the_settings_that_spec_2_names_m3(router):
    assert router.get(ADDRESS).json() == FRESH


def test_patch_merges_per_field_and_per_rung_spec_4(router):
    patch(router, {"rung_budgets": {"cheap": {"amount_usd": "5.5", "zone": "Europe/Berlin"}}})
    patch(
        router,
        {"exit_cutoff_percent": 3.5, "tier_thresholds": {"cheap": "2"}, "rung_budgets": {"premium": {"amount_usd": 0}}},
    )
    response = patch(router, {"rung_budgets": {"cheap": {"period": "weekly", "week_starts_on": "sunday"}}})
    assert response.json() == FRESH | {
        "exit_cutoff_percent": 3.5,
        "tier_thresholds": {"free": "0", "cheap": "2.00"},
        "rung_budgets": {
            "cheap": {"amount_usd": "5.50", "period": "weekly", "week_starts_on": "sunday", "zone": "Europe/Berlin"},
            "premium": FRESH["rung_budgets"]["premium"] | {"amount_usd": "0"},
        },
    }
    assert router.get(ADDRESS).json() == response.json()


def test_zero_is_off_and_null_is_no_limit_and_they_are_not_the_same_m1(router):
    for amount, stored in (("0", 0), (None, None), ("0.000001", "0.000001")):
        patch(router, {"rung_budgets": {"cheap": {"amount_usd": amount}}})
        expected = None if amount is None else amount
        assert router.get(ADDRESS).json()["rung_budgets"]["cheap"]["amount_usd"] == expected
        assert str(RungBudget.objects.get(rung="cheap").amount_usd or 0).startswith(str(stored or 0))


def test_every_bad_field_is_named_at_once_spec_4(router):
    before, revision = router.get(ADDRESS).json(), current_revision()
    response = patch(
        router,
        {
            "exit_cutoff_percent": 101,
            "reentry_min_remaining_percent": 1.000000001,
            "max_reading_age_seconds": 9,
            "enabled": True,
            "tier_thresholds": {"free": -1, "cheap": "x"},
            "rung_budgets": {
                "cheap": {"amount_usd": "-0.01", "period": "hourly", "zone": "Mars/Olympus"},
                "premium": {"amount_usd": "1.0000001", "week_starts_on": "someday"},
                "free": {},
            },
        },
    )
    assert pointers(response) == {
        "/exit_cutoff_percent",
        "/reentry_min_remaining_percent",
        "/max_reading_age_seconds",
        "/enabled",
        "/tier_thresholds/free",
        "/tier_thresholds/cheap",
        "/rung_budgets/cheap/amount_usd",
        "/rung_budgets/cheap/period",
        "/rung_budgets/cheap/zone",
        "/rung_budgets/premium/amount_usd",
        "/rung_budgets/premium/week_starts_on",
        "/rung_budgets/free",
    }
    assert (router.get(ADDRESS).json(), current_revision()) == (before, revision)


@pytest.mark.parametrize("body", ['{"exit_cutoff_percent": NaN}', "{", "", '{"exit_cutoff_percent": Infinity}'])
def test_what_is_no_json_is_told_apart(router, body):
    response = router.send("patch", ADDRESS, body)
    assert (response.status_code, response.json()["code"]) == (400, "malformed_json")


@pytest.mark.parametrize(
    "zone", ["localtime", "Factory", "posixrules", "", "utc ", "../UTC", "/etc/localtime", "UTC\x00", "+02:00", None]
)
def test_an_unknown_zone_is_refused(router, zone):
    assert pointers(patch(router, {"rung_budgets": {"cheap": {"zone": zone}}})) == {"/rung_budgets/cheap/zone"}


@pytest.mark.parametrize(
    ("thresholds", "pointer"), [({"free": "1.01"}, "free"), ({"cheap": "0", "free": "1"}, "cheap")]
)
def test_thresholds_stay_in_order(router, thresholds, pointer):
    assert pointers(patch(router, {"tier_thresholds": thresholds})) == {f"/tier_thresholds/{pointer}"}


def test_a_reentry_below_exit_is_accepted_spec_2(router):
    body = {"exit_cutoff_percent": 10, "reentry_min_remaining_percent": 0}
    assert patch(router, body).json()["reentry_min_remaining_percent"] == 0


def test_a_change_is_history_with_its_reason_and_only_of_what_differs_spec_3(router):
    revision, written = current_revision(), LadderSettings.history.count()
    patch(router, {"exit_cutoff_percent": 3, "tier_thresholds": {"cheap": 1}, "reason": " busy week "})
    act = LadderSettings.history.latest("history_id")
    assert (act.exit_cutoff_percent, act.history_change_reason) == (3, "busy week")
    assert act.history_actor.startswith("key a router")
    assert TierThresholds.history.filter(history_type="~").count() == 0
    assert current_revision() == revision + 1
    patch(router, {"exit_cutoff_percent": "3.0"})
    assert (current_revision(), LadderSettings.history.count()) == (revision + 1, written + 1)


def test_a_lost_update_is_refused_and_the_tag_of_a_write_is_that_of_a_read_spec_4(router):
    etag = router.get(ADDRESS)["ETag"]
    written = patch(router, {"exit_cutoff_percent": 3}, **{"If-Match": etag})
    assert written["ETag"] == router.get(ADDRESS)["ETag"] != etag
    assert patch(router, {"exit_cutoff_percent": 4}, **{"If-Match": etag}).status_code == 412
    assert router.get(ADDRESS).json()["exit_cutoff_percent"] == 3


@pytest.mark.parametrize("address", [ADDRESS, OMNIROUTE])
def test_reading_and_writing_need_their_scopes_spec_4(db, address):
    method = "patch" if address == ADDRESS else "put"
    body = {} if address == ADDRESS else {"subscriptionLadder": {}}
    reader, writer = make_router("settings:read"), make_router("settings:write")
    assert (reader.get(address).status_code, reader.send(method, address, body).status_code) == (200, 403)
    assert (writer.get(address).status_code, writer.send(method, address, body).status_code) == (403, 200)


def test_the_settings_go_out_as_omniroute_writes_them_spec_2(router):
    patch(router, {"rung_budgets": {"cheap": {"amount_usd": "5.00"}, "premium": {"amount_usd": 0}}})
    response = router.get(OMNIROUTE)
    assert response.json() == {
        "subscriptionLadder": {
            "exitCutoffPercent": 2,
            "reentryMinRemainingPercent": 5,
            "rungBudgetUsd": {"cheap": 5.0, "premium": 0},
        }
    }
    assert b'"cheap":5,' in response.content


def test_omniroutes_own_words_come_in_and_go_out_again_spec_2(router):
    percents = '"exitCutoffPercent": 2.25, "reentryMinRemainingPercent": 5'
    written = f'{{"subscriptionLadder": {{{percents}, "rungBudgetUsd": {{"cheap": 5.0, "premium": 0}}}}}}'
    response = router.send("put", f"{OMNIROUTE}?reason=moved", written)
    assert response.json() == json.loads(written) == router.get(OMNIROUTE).json()
    assert LadderSettings.history.latest("history_id").history_change_reason == "moved"
    assert RungBudget.objects.get(rung="premium").amount_usd == 0


def test_what_omniroutes_form_does_not_name_stays_as_it_is_stored(router):
    patch(router, {"exit_cutoff_percent": 9, "rung_budgets": {"premium": {"amount_usd": 7, "zone": "Asia/Tokyo"}}})
    router.send("put", OMNIROUTE, {"subscriptionLadder": {"reentryMinRemainingPercent": 12}})
    assert router.get(ADDRESS).json()["rung_budgets"]["premium"]["amount_usd"] == "7.00"
    router.send("put", OMNIROUTE, {"subscriptionLadder": {"rungBudgetUsd": {"cheap": 1}}})
    settings = router.get(ADDRESS).json()
    assert (settings["exit_cutoff_percent"], settings["reentry_min_remaining_percent"]) == (9, 12)
    assert settings["rung_budgets"]["premium"]["amount_usd"] == "7.00"
    assert settings["rung_budgets"]["cheap"]["amount_usd"] == "1.00"


def test_a_rung_that_is_off_stays_off_while_the_other_one_loses_its_limit_m1(router):
    patch(router, {"rung_budgets": {"cheap": {"amount_usd": 5}, "premium": {"amount_usd": 0}}})
    form = {"subscriptionLadder": {"rungBudgetUsd": {"cheap": None}}, "reason": " no limit on cheap "}
    response = router.send("put", OMNIROUTE, form)
    assert response.json()["subscriptionLadder"]["rungBudgetUsd"] == {"cheap": None, "premium": 0}
    acts = RungBudget.history.filter(rung="cheap").order_by("history_id")
    assert acts.last().history_change_reason == "no limit on cheap"


def test_settings_that_omniroute_could_not_have_written_are_refused_by_name(router):
    body = {
        "subscriptionLadder": {
            "enabled": True,
            "exitCutoffPercent": 101,
            "rungBudgetUsd": {"cheap": -1, "keyless": 3, "premium": "a"},
        },
        "other": 1,
    }
    assert pointers(router.send("put", OMNIROUTE, body)) == {
        "/other",
        "/subscriptionLadder/enabled",
        "/subscriptionLadder/exitCutoffPercent",
        "/subscriptionLadder/rungBudgetUsd/cheap",
        "/subscriptionLadder/rungBudgetUsd/keyless",
        "/subscriptionLadder/rungBudgetUsd/premium",
    }
