"""Usage, holds, resets and money on occupancy over HTTP (SPEC 4)."""

import json
from datetime import timedelta

import pytest
import time_machine

from ladder.models import RungBudget, SpendHold, UsageEvent
from omniroute_admin.common.history import LONGEST_REASON
from tests.factories_ladder import NOW
from tests.ladder.services.booking import make_ladder, set_budget, usd
from tests.router import make_router

pytestmark = pytest.mark.django_db

USAGE, HOLDS = "/api/v1/telemetry/usage", "/api/v1/holds"
AT = "2026-08-22T11:59:30Z"


@pytest.fixture(autouse=True)
def moment(db):
    make_ladder()
    with time_machine.travel(NOW, tick=False) as traveller:
        yield traveller


def event(event_id="e1", **fields):
    return {"event_id": event_id, "connection_id": "paid", "model": "small", "occurred_at": AT} | fields


def told(router, *events):
    response = router.post(USAGE, {"events": list(events)})
    assert response.status_code == 200, response.content
    return response.json()


def hold(**fields):
    body = {"hold_id": "h1", "connection_id": "paid", "model": "small"}
    return body | {"estimated_cost_usd": "0.40", "ttl_seconds": 60} | fields


def budget_of(router, rung=3):
    return router.get("/api/v1/occupancy").json()["rungs"][rung]["budget"]


def test_usage_is_committed_and_answered_with_four_counts_spec_4(router):
    answer = told(router, event(cost_usd="0.10"), event("e2", cost_usd=0.1), event("e2", cost_usd="0.1"))
    assert answer == {"accepted": 2, "duplicates": 1, "superseded": 0, "rejected": []}
    assert list(UsageEvent.objects.values_list("booked_usd", flat=True)) == [usd("0.1"), usd("0.1")]


def test_a_cost_that_is_a_number_is_read_without_a_float(router):
    body = b'{"events": [%s]}' % json.dumps(event(cost_usd="X")).encode().replace(b'"X"', b"0.300001")
    assert router.post(USAGE, body.decode()).json()["accepted"] == 1
    assert UsageEvent.objects.get().booked_usd == usd("0.300001")


def test_each_bad_event_is_told_by_index_and_the_good_ones_stand_spec_4(router):
    answer = told(
        router,
        event(cost_usd="0.10"),
        event("b1", cost_usd="-1"),
        event("b2", input_tokens=10**30),
        event("b3", input_tokens=1.5),
        event("b4", occurred_at="50000-01-01T00:00:00Z"),
        event("b5", occurred_at=1787418000),
        event("b6", occurred_at="2026-08-22T11:59:30"),
        event("b7", colour="red"),
        event("b8", cost_usd="many"),
        event(5),
        "not an object",
        {"event_id": "b11"},
        event("b12", connection_id="nobody"),
        event("b13", occurred_at="2026-08-22T12:01:00.000001Z"),
        event("b14", cost_usd="1e400"),
        event("last", occurred_at="2026-08-22T14:01:00+02:00", cost_usd="0.10"),
    )
    assert answer["accepted"] == 2
    assert [(one["index"], one["code"]) for one in answer["rejected"]] == [
        *((index, "invalid_item") for index in range(1, 12)),
        (12, "unknown_connection"),
        (13, "occurred_in_future"),
        (14, "invalid_item"),
    ]
    assert UsageEvent.objects.count() == 2


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("{", 400),
        ('{"events": [{"cost_usd": NaN}]}', 400),
        ('{"events": {}}', 400),
        ("{}", 400),
        ('{"events": [], "more": 1}', 400),
        ("[]", 400),
        (json.dumps({"events": [{}] * 5001}), 413),
        (json.dumps({"events": [event(f"e{number}") for number in range(5001)]}), 413),
    ],
)
def test_a_body_that_is_none_is_refused_whole(router, body, status):
    assert router.post(USAGE, body).status_code == status
    assert not UsageEvent.objects.exists()


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("post", USAGE, {"events": []}),
        ("post", "/api/v1/telemetry/rate-limits", {"events": []}),
        ("post", "/api/v1/telemetry/breakers", {"events": []}),
        ("post", HOLDS, hold()),
        ("delete", f"{HOLDS}/h0", None),
        ("post", "/api/v1/settings/budgets/cheap/reset", {}),
    ],
)
def test_a_parameter_that_is_none_is_refused_and_nothing_done_spec_4(router, method, path, body):
    router.post(HOLDS, hold(hold_id="h0"))
    response = router.send(method, f"{path}?resaon=typed", body)
    assert response.status_code == 400
    assert [error["code"] for error in response.json()["errors"]] == ["unknown_parameter"]
    assert [row.hold_id for row in SpendHold.objects.filter(released_at=None)] == ["h0"]
    assert RungBudget.objects.get(rung="cheap").counted_from is None


def test_an_empty_body_is_no_fault(router):
    assert told(router) == {"accepted": 0, "duplicates": 0, "superseded": 0, "rejected": []}


@pytest.mark.parametrize(("path", "method"), [(USAGE, "post"), (HOLDS, "post"), (f"{HOLDS}/h1", "delete")])
def test_telemetry_needs_its_scope(path, method):
    assert make_router("pools:read").send(method, path, {}).status_code == 403


def test_a_hold_is_made_once_and_told_again_spec_4(router):
    set_budget(amount="1.00")
    answers = [router.post(HOLDS, hold()) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [201, 200]
    wanted = {"hold_id": "h1", "rung": "cheap", "expires_at": "2026-08-22T12:01:00Z", "left_usd": "0.60"}
    assert [answer.json() for answer in answers] == [wanted, wanted]


def test_a_hold_that_ended_is_refused_with_how_and_when_and_what_to_do(router, moment):
    set_budget(amount="1.00")
    router.post(HOLDS, hold())
    moment.shift(timedelta(seconds=20))
    told(router, event(cost_usd="0.10", hold_id="h1"))
    answer = router.post(HOLDS, hold())
    assert (answer.status_code, answer["Content-Type"]) == (409, "application/problem+json")
    problem = answer.json()
    assert {name: problem[name] for name in ("code", "ended", "ended_at", "settled_by")} == {
        "code": "hold_ended",
        "ended": "settled",
        "ended_at": "2026-08-22T12:00:20Z",
        "settled_by": "e1",
    }
    assert problem["detail"] == (
        "This hold was settled by event 'e1' at 2026-08-22T12:00:20Z and reserves nothing any more. "
        "Ask again with a new hold_id."
    )
    assert router.post(HOLDS, hold(hold_id="h2")).status_code == 201


def test_a_hold_that_does_not_fit_is_told_what_is_left_m8(router):
    set_budget(amount="1.00")
    router.post(HOLDS, hold(estimated_cost_usd="0.75"))
    answer = router.post(HOLDS, hold(hold_id="h2"))
    assert answer.status_code == 409
    assert answer["Content-Type"] == "application/problem+json"
    assert (answer.json()["code"], answer.json()["left_usd"]) == ("budget_spent", "0.25")
    set_budget(amount="0")
    answer = router.post(HOLDS, hold(hold_id="h3"))
    assert (answer.status_code, answer.json()["code"], answer.json()["left_usd"]) == (409, "rung_disabled", "0")


def test_on_the_plan_a_hold_is_granted_with_nothing_reserved_m5(router):
    answer = router.post(HOLDS, hold(connection_id="plan", model="opus"))
    assert (answer.status_code, answer.json()["rung"], answer.json()["left_usd"]) == (201, "subscription", None)


def test_every_bad_field_of_a_hold_is_named(router):
    answer = router.post(
        HOLDS, hold(hold_id="", estimated_cost_usd="-0.0000001", ttl_seconds=3601, colour="red", model=1)
    )
    assert answer.status_code == 400
    pointers = {error["pointer"] for error in answer.json()["errors"]}
    assert pointers == {"/hold_id", "/estimated_cost_usd", "/ttl_seconds", "/colour", "/model"}
    assert not SpendHold.objects.exists()


@pytest.mark.parametrize(
    ("fields", "status"),
    [({"ttl_seconds": 0}, 400), ({"estimated_cost_usd": "0.0000001"}, 400), ({"connection_id": "nobody"}, 404)],
)
def test_a_hold_that_cannot_be_is_refused(router, fields, status):
    assert router.post(HOLDS, hold(**fields)).status_code == status


def test_a_hold_is_released_by_its_id_whatever_is_in_it(router):
    router.post(HOLDS, hold(hold_id="run/7 a"))
    assert router.send("delete", f"{HOLDS}/run/7%20a").status_code == 204
    assert router.send("delete", f"{HOLDS}/run/7%20a").status_code == 204
    assert SpendHold.objects.get().released_at == NOW
    assert router.send("delete", f"{HOLDS}/h2").json()["code"] == "not_found"


def test_occupancy_shows_spend_that_moves_no_decision_spec_3(router):
    set_budget(amount="5.00")
    assert (budget_of(router)["spent_usd"], budget_of(router)["accounting"]) == ("0", "none")
    revision = router.get("/api/v1/occupancy")["X-Ladder-Revision"]
    told(router, event(cost_usd="1.20"))
    router.post(HOLDS, hold())
    answer = router.get("/api/v1/occupancy")
    assert answer["X-Ladder-Revision"] == revision
    assert answer.json()["rungs"][3]["budget"] == {
        "amount_usd": "5.00",
        "spent_usd": "1.20",
        "held_usd": "0.40",
        "left_usd": "3.40",
        "accounting": "complete",
        "window_start": "2026-08-22T00:00:00Z",
        "window_end": "2026-08-23T00:00:00Z",
        "zone": "UTC",
    }
    assert (budget_of(router, 4)["amount_usd"], budget_of(router, 4)["spent_usd"]) == (None, "0")


def test_what_if_of_another_budget_meets_the_spend_as_it_is_m2(router):
    set_budget(amount="5.00")
    candidate = {"provider": "openrouter", "model": "small", "connection_id": "paid"}

    def asked(amount):
        settings = {"rung_budget_usd": {"cheap": amount}}
        body = {"id": "auto/thrifty", "candidates": [candidate], "settings": settings, "explain": True}
        return [one["code"] for one in router.post("/api/v1/evaluate", body).json()["excluded"]]

    assert asked("1.00") == []
    told(router, event(cost_usd="1.20"))
    assert (asked("1.00"), asked("1.21"), asked(None)) == (["budget_spent"], [], [])


def test_a_budget_is_reset_with_a_reason_m9(router, moment):
    set_budget(amount="1.00")
    told(router, event(cost_usd="1.20"))
    moment.shift(timedelta(minutes=1))
    answer = router.post("/api/v1/settings/budgets/cheap/reset", {"reason": " paid by hand "})
    assert answer.status_code == 200
    assert (answer.json()["spent_usd"], answer.json()["window_start"]) == ("0", "2026-08-22T12:01:00Z")
    act = RungBudget.objects.get(rung="cheap").history.latest("history_id")
    assert act.history_change_reason == "paid by hand"
    assert act.history_actor.startswith("key a router")
    assert budget_of(router)["left_usd"] == "1.00"
    assert UsageEvent.objects.count() == 1


def test_a_reset_needs_no_body_but_a_rung_and_the_scope(router):
    path = "/api/v1/settings/budgets/{}/reset"
    assert router.post(path.format("premium"), b"").status_code == 200
    assert router.post(path.format("subscription"), {}).status_code == 404
    assert router.post(path.format("cheap"), {"why": "x"}).status_code == 400
    assert router.post(path.format("cheap"), {"reason": "x" * (LONGEST_REASON + 1)}).status_code == 400
    assert make_router("settings:read").post(path.format("cheap"), {}).status_code == 403


@pytest.mark.parametrize("number", [1e21, 1e22, 1e30, "1e30", -1e30])
@pytest.mark.parametrize(
    ("path", "method", "body"),
    [
        ("/api/v1/settings", "patch", lambda n: {"rung_budgets": {"cheap": {"amount_usd": n}}}),
        ("/api/v1/settings", "patch", lambda n: {"exit_cutoff_percent": n}),
        ("/api/v1/settings", "patch", lambda n: {"tier_thresholds": {"free": n}}),
        ("/api/v1/settings/omniroute.json", "put", lambda n: {"subscriptionLadder": {"rungBudgetUsd": {"cheap": n}}}),
        (HOLDS, "post", lambda n: hold(estimated_cost_usd=n)),
    ],
)
def test_an_absurd_number_is_a_bad_field_and_no_fault_of_the_server(router, path, method, body, number):
    assert router.send(method, path, body(number)).status_code == 400


def test_a_correction_that_says_no_cost_erases_no_money_spec_4(router):
    told(router, event(cost_usd="0.60"))
    answer = told(router, event("fix", corrects_event_id="e1"))
    assert answer["rejected"][0]["code"] == "invalid_item"
    assert budget_of(router)["spent_usd"] == "0.60"


def test_the_same_event_at_another_provider_is_a_conflict_and_one_that_names_none_a_duplicate(router):
    told(router, event(cost_usd="0.60"))
    provider = UsageEvent.objects.get().connection.provider
    answer = told(router, event(cost_usd="0.60", provider="another"), event(cost_usd="0.60", provider=provider))
    assert (answer["duplicates"], [one["code"] for one in answer["rejected"]]) == (1, ["conflict"])
