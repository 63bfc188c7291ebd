"""SPEC 4: rate limits and breakers over HTTP, and what a router and an operator see of them."""

import json

import pytest
import time_machine

from ladder.models import Breaker, Cooldown
from tests.factories import BillingEntryFactory, ConnectionFactory, ModelPriceFactory
from tests.factories_ladder import NOW
from tests.router import make_router

pytestmark = pytest.mark.django_db

RATE_LIMITS, BREAKERS = "/api/v1/telemetry/rate-limits", "/api/v1/telemetry/breakers"


@pytest.fixture(autouse=True)
def at_now(db):
    BillingEntryFactory(provider="claude")
    ConnectionFactory(connection_id="c1")
    for model in ("opus", "sonnet"):
        ModelPriceFactory(provider="claude", model=model)
    with time_machine.travel(NOW, tick=False):
        yield


def event(**fields):
    return {"connection_id": "c1", "occurred_at": "2026-08-22T11:59:50Z", "cause": "rate_limit"} | fields


def told(router, *events, address=RATE_LIMITS):
    response = router.post(address, {"events": list(events)})
    assert response.status_code == 200, response.content
    return response.json()


def explained(router):
    return router.get("/api/v1/connections/c1/explain").json()


def codes(router):
    body = {"candidates": [{"provider": "claude", "model": m, "connection_id": "c1"} for m in ("opus", "sonnet")]}
    answer = router.post("/api/v1/pools/auto/thrifty", body | {"explain": True}).json()
    return {one["model"]: one["code"] for one in answer["excluded"]}


def test_a_report_is_answered_with_the_counts_and_both_instants_c2(router):
    sent = event(
        cause="quota",
        status_code=429,
        retry_after="Sat, 22 Aug 2026 15:00:00 GMT",
        reset_at=1787403600,
        window="5h",
        failure_count=3,
        provider="Claude",
    )
    cooldown = {
        "connection_id": "c1",
        "asked_until": "2026-08-22T15:00:00Z",
        "effective_until": "2026-08-22T13:00:00Z",
        "clamped": True,
        "cause": "quota",
    }
    counts = {"accepted": 1, "duplicates": 0, "superseded": 0, "rejected": [], "cooldowns": [cooldown]}
    assert told(router, sent) == counts
    assert told(router, sent) == counts | {"accepted": 0, "duplicates": 1}
    shown = explained(router)["cooldown"]
    assert {name: shown[name] for name in cooldown if name != "connection_id"} == {
        name: value for name, value in cooldown.items() if name != "connection_id"
    }
    assert shown["reported_at"] == "2026-08-22T11:59:50Z"
    assert "a router" in shown["set_by"]


def test_each_bad_item_is_told_by_index_and_the_good_ones_stand(router):
    answer = told(
        router,
        event(),
        event(cause="operator"),
        event(connection_id="nobody"),
        event(reset_at="50000-01-01T00:00:00Z"),
        event(occurred_at="50000-01-01T00:00:00Z"),
        event(retry_after="soon"),
        event(retry_after=-1),
        event(failure_count=-1, colour="red"),
        event(occurred_at="2026-08-22T12:01:00.000001Z"),
        event(occurred_at="2026-08-22T11:59:50"),
        "not an object",
        event(connection_id=4),
        event(model="", occurred_at="2026-08-22T11:59:51Z"),
        event(model="\0"),
    )
    assert answer["accepted"] == 1
    assert [(one["index"], one["code"]) for one in answer["rejected"]] == [
        (1, "invalid_item"),
        (2, "unknown_connection"),
        (3, "invalid_reset_at"),
        (4, "invalid_item"),
        (5, "invalid_retry_after"),
        (6, "invalid_retry_after"),
        (7, "invalid_item"),
        (8, "occurred_in_future"),
        (9, "invalid_item"),
        (10, "invalid_item"),
        (11, "invalid_item"),
        (12, "invalid_item"),
        (13, "invalid_item"),
    ]
    details = {one["index"]: one["detail"] for one in answer["rejected"]}
    assert "cause" in details[1]
    assert ("failure_count" in details[7], "colour" in details[7]) == (True, True)


def test_a_cooldown_of_a_model_keeps_out_that_model_alone_c3(router):
    told(router, event(model="opus", retry_after=60))
    assert (codes(router), explained(router)["cooldown"]["model"]) == ({"opus": "cooldown"}, "opus")
    told(router, event(retry_after=30))
    shown = explained(router)["cooldown"]
    assert codes(router) == {"opus": "cooldown", "sonnet": "cooldown"}
    assert (shown["model"], shown["effective_until"]) == (None, "2026-08-22T12:00:20Z")


def test_an_operator_clears_it_with_a_reason_c3(router):
    told(router, event(cause="auth", status_code=401), event(cause="ban"))
    address = "/api/v1/connections/c1/cooldown"
    assert router.send("delete", f"{address}?cause=ban&reason=appealed").status_code == 204
    assert [codes(router)["opus"], explained(router)["cooldown"]["cause"]] == ["cooldown", "auth"]
    assert router.send("delete", f"{address}?reason=signed+in+again").status_code == 204
    assert (codes(router), explained(router)["cooldown"]) == ({}, None)
    acts = Cooldown.history.filter(history_type="-").order_by("history_id")
    assert [act.history_change_reason for act in acts] == ["appealed", "signed in again"]
    assert all("a router" in act.history_actor for act in acts)


def test_a_breaker_keeps_its_provider_out_and_nobody_else_c(router):
    ConnectionFactory(connection_id="c2", provider="codex")
    open_event = {
        "provider": "Claude",
        "state": "open",
        "open_until": "2026-08-22T12:05:00Z",
        "occurred_at": "2026-08-22T11:59:00Z",
    }
    assert told(router, open_event, {**open_event, "state": "ajar"}, address=BREAKERS) | {"rejected": 0} == {
        "accepted": 1,
        "duplicates": 0,
        "superseded": 0,
        "rejected": 0,
    }
    assert codes(router) == {"opus": "breaker_open", "sonnet": "breaker_open"}
    assert explained(router)["breaker"] == {"open_until": "2026-08-22T12:05:00Z"}
    with time_machine.travel("2026-08-22T12:05:00Z", tick=False):
        assert codes(router) == {}
    told(router, {"provider": "claude", "state": "closed", "occurred_at": "2026-08-22T11:59:30Z"}, address=BREAKERS)
    assert codes(router) == {}
    assert Breaker.objects.get().history.count() == 2


@pytest.mark.parametrize("address", [RATE_LIMITS, BREAKERS])
class TestBodies:
    @pytest.mark.parametrize("body", ['{"events": [{"retry_after": NaN}]}', "{", "", b"\xff", "[" * 100_000])
    def test_what_is_no_json_is_refused_whole(self, router, address, body):
        response = router.post(address, body)
        assert (response.status_code, response.json()["code"]) == (400, "malformed_json")

    @pytest.mark.parametrize(
        ("body", "pointer"), [({}, "/events"), ({"events": {}}, "/events"), ({"events": [], "colour": 1}, "/colour")]
    )
    def test_a_body_of_another_form_is_refused_by_name(self, router, address, body, pointer):
        response = router.post(address, json.dumps(body))
        assert response.status_code == 400
        assert [error["pointer"] for error in response.json()["errors"]] == [pointer]

    def test_more_than_5000_events_are_413(self, router, address):
        good = {
            RATE_LIMITS: event(),
            BREAKERS: {"provider": "claude", "state": "closed", "occurred_at": "2026-08-22T11:59:30Z"},
        }[address]
        assert router.post(address, {"events": [good] * 5001}).status_code == 413
        assert router.post(address, {"events": [good] * 4999 + ["bad", good]}).status_code == 413
        assert told(router, *[good] * 5000, address=address)["duplicates"] == 4999

    def test_the_scope_is_needed(self, db, address):
        assert make_router("pools:read").post(address, {"events": []}).status_code == 403
