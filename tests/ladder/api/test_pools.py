"""Pool calls as a router makes them (SPEC 4; P3, P7, P8, I)."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
import time_machine

from billing_catalog.models import BillingEntry, ModelPrice
from ladder.core.ids import POOL_IDS
from ladder.models import Connection, QuotaReading, QuotaWindow
from omniroute_admin.common.services.revision import deciding_write
from tests.router import Router, make_router

NOW = datetime(2026, 8, 22, 12, 0, tzinfo=UTC)
STAMPS = {"created_at": NOW, "updated_at": NOW}
SUBSCRIPTION_IDS = [known for known in POOL_IDS if known.endswith("subscription")]
CAPABILITIES = ["vision", "reasoning"]


@pytest.fixture
def fleet(db: None) -> None:
    """Store a plan that is read and usable, and a metered account of a premium model."""
    BillingEntry.objects.create(
        provider="claude", auth_type="oauth", billing="subscription", overage="hard-stop", **STAMPS
    )
    plan = Connection.objects.create(connection_id="plan", provider="claude", auth_type="oauth", **STAMPS)
    Connection.objects.create(connection_id="paid", provider="acme", auth_type="apikey", **STAMPS)
    for provider, price in (("claude", 3), ("acme", 15)):
        ModelPrice.objects.create(
            provider=provider,
            model="big",
            input_usd_per_million=price,
            output_usd_per_million=price,
            capabilities=CAPABILITIES,
            effective_from=NOW - timedelta(days=1),
        )
    read(plan, percent=50)


def read(connection: Connection, *, percent: int, reset_in: timedelta | None = None) -> None:
    """Store a fresh reading of the connection's weekly window."""
    said: dict[str, Any] = {
        "observed_at": NOW,
        "received_at": NOW,
        "remaining_percent": Decimal(percent),
        "reset_at": None if reset_in is None else NOW + reset_in,
    }
    with deciding_write():
        window, _ = QuotaWindow.objects.update_or_create(connection=connection, window="weekly", defaults=said)
        QuotaReading.objects.update_or_create(window=window, observed_at=NOW, defaults=said)


@pytest.mark.usefixtures("fleet")
@time_machine.travel(NOW, tick=False)
@pytest.mark.parametrize("pool_id", SUBSCRIPTION_IDS)
def test_no_id_of_the_subscription_kind_ever_lists_a_paid_connection(router: Router, pool_id: str) -> None:
    """P2, P3, I: flat ids and category ids alike go through the ladder, on every way of asking."""
    everything = [
        {"provider": provider, "model": "big", "allowed_connection_ids": ["plan", "paid", "noauth"]}
        for provider in ("claude", "acme")
    ]
    stored = router.get(f"/api/v1/pools/{pool_id}").json()
    sent = router.post(f"/api/v1/pools/{pool_id}", {"candidates": everything}).json()
    merged = router.post(f"/api/v1/pools/{pool_id}", {"candidates": everything, "mixed_rungs": "merge"}).json()
    for answer in (stored, sent, merged):
        assert [entry["allowed_connection_ids"] for entry in answer["candidates"]] == [["plan"]]
    thrifty = router.get(f"/api/v1/pools/{pool_id.replace('subscription', 'thrifty')}").json()
    assert [entry["allowed_connection_ids"] for entry in thrifty["candidates"]] == [["plan"], ["paid"]]


@pytest.mark.usefixtures("fleet")
@time_machine.travel(NOW, tick=False)
@pytest.mark.parametrize("pool_id", SUBSCRIPTION_IDS)
def test_a_used_up_plan_leaves_the_subscription_pools_empty_and_says_when_it_is_back(
    router: Router, pool_id: str
) -> None:
    """P3: an empty pool is an answer; `Retry-After` counts whole seconds, rounded up."""
    read(Connection.objects.get(connection_id="plan"), percent=1, reset_in=timedelta(seconds=90, milliseconds=1))
    response = router.get(f"/api/v1/pools/{pool_id}")
    assert response.status_code == 200
    assert response.json()["candidates"] == []
    assert response.json()["empty"]["code"] == "no_usable_plan"
    assert response.json()["empty"]["returns_at"] == "2026-08-22T12:01:30.001000Z"
    assert response["Retry-After"] == "91"


@pytest.mark.usefixtures("fleet")
@time_machine.travel(NOW, tick=False)
def test_an_answer_has_the_members_the_specification_names_and_no_others(router: Router) -> None:
    answer = router.get("/api/v1/pools/auto/subscription?explain=true").json()
    assert set(answer) == {
        "id", "grouping", "category", "revision", "evaluated_at", "valid_until", "candidates", "excluded_counts",
        "excluded", "empty",
    }  # fmt: skip
    assert answer["candidates"] == [
        {
            "provider": "claude", "model": "big", "rung": "subscription", "rung_index": 0, "connection_id": None,
            "allowed_connection_ids": ["plan"], "ref": None, "may_bill_past_plan": False,
        }
    ]  # fmt: skip
    assert answer["excluded"] == [
        {
            "provider": "acme", "model": "big", "connection_id": "paid", "ref": None, "rung": "premium",
            "code": "not_subscription", "family": "never", "window": None,
            "detail": "acme/paid is unknown, not a subscription", "returns_at": None,
        }
    ]  # fmt: skip
    assert answer["excluded_counts"] == {"not_subscription": 1}
    assert answer["valid_until"] == "2026-08-22T12:03:00.000001Z"
    assert "excluded" not in router.get("/api/v1/pools/auto/subscription").json()


@pytest.mark.usefixtures("fleet")
def test_an_unchanged_pool_is_304_until_something_changes(router: Router) -> None:
    with time_machine.travel(NOW, tick=False):
        first = router.get("/api/v1/pools/auto/thrifty")
    with time_machine.travel(NOW + timedelta(seconds=1), tick=False):
        again = router.get("/api/v1/pools/auto/thrifty", **{"If-None-Match": first["ETag"]})
        assert (again.status_code, again.content, again["ETag"]) == (304, b"", first["ETag"])
        assert "Content-Type" not in again
        assert again["X-Ladder-Revision"] == first["X-Ladder-Revision"] == first.json()["revision"]
        assert first["ETag"].startswith('W/"')
        assert first["Cache-Control"] == "private, no-cache"
        asked = router.send("head", "/api/v1/pools/auto/thrifty", **{"If-None-Match": first["ETag"]})
        assert (asked.status_code, asked["ETag"]) == (304, first["ETag"])
        read(Connection.objects.get(connection_id="plan"), percent=1)
        changed = router.get("/api/v1/pools/auto/thrifty", **{"If-None-Match": first["ETag"]})
        assert changed.status_code == 200
        assert int(changed["X-Ladder-Revision"]) > int(first["X-Ladder-Revision"])


@pytest.mark.django_db(transaction=True)
def test_a_pool_sees_every_committed_write_and_keeps_nothing_from_before(router: Router) -> None:
    """SPEC 3: a read after a committed write sees it, with the snapshot kept between requests."""
    for name in ("one", "two", "three"):
        with deciding_write():
            Connection.objects.create(connection_id=name, provider="acme", **STAMPS)
        answer = router.get("/api/v1/pools/auto/thrifty?explain=true").json()
        assert name in [left["connection_id"] for left in answer["excluded"]]


@pytest.mark.usefixtures("fleet")
@time_machine.travel(NOW, tick=False)
def test_names_are_resolved_on_the_way_in(router: Router) -> None:
    """SPEC 1: case and blanks of a provider."""
    body = {"candidates": [{"provider": " Claude ", "model": "big", "connection_id": "plan", "ref": "r"}]}
    answer = router.post("/api/v1/pools/auto/subscription", body).json()
    assert [(one["provider"], one["connection_id"], one["ref"]) for one in answer["candidates"]] == [
        ("claude", "plan", "r")
    ]


@pytest.mark.usefixtures("fleet")
@time_machine.travel(NOW, tick=False)
def test_what_is_unknown_is_left_out_and_explained_and_no_error_for_the_rest(router: Router) -> None:
    """P7."""
    body = {
        "explain": True,
        "candidates": [
            {"provider": "claude", "model": "big", "allowed_connection_ids": ["stranger", "paid", "plan"]},
            {"provider": "claude", "model": "big", "allowed_connection_ids": [], "ref": "none"},
        ],
    }
    answer = router.post("/api/v1/pools/auto/thrifty", body).json()
    assert [entry["allowed_connection_ids"] for entry in answer["candidates"]] == [["plan"]]
    assert [(left["connection_id"], left["code"]) for left in answer["excluded"]] == [
        ("stranger", "unknown_connection"),
        ("paid", "provider_mismatch"),
        (None, "no_connections"),
    ]


@pytest.mark.django_db
def test_a_provider_without_prices_gives_no_models_once_for_each_connection(router: Router) -> None:
    Connection.objects.create(connection_id="lone", provider="nowhere", **STAMPS)
    answer = router.get("/api/v1/pools/auto/thrifty?explain=true").json()
    assert [(left["connection_id"], left["model"], left["code"]) for left in answer["excluded"]] == [
        ("lone", None, "no_models")
    ]
    assert answer["empty"]["code"] == "all_exhausted"


@pytest.mark.parametrize(
    "pool_id", ["auto/Thrifty", "auto/", "auto/thrifty:subscription", "auto/coding", "x", "auto/coding:free"]
)
def test_any_other_id_is_404_and_names_those_there_are(router: Router, pool_id: str) -> None:
    """I."""
    for response in (router.get(f"/api/v1/pools/{pool_id}"), router.post("/api/v1/evaluate", {"id": pool_id})):
        assert response.status_code == 404
        assert response.json()["code"] == "unknown_pool"
        assert all(known in response.json()["detail"] for known in POOL_IDS)


@pytest.mark.django_db
def test_callers_without_a_key_or_without_the_scope_are_refused(router: Router) -> None:
    calls = [("get", "/api/v1/pools"), ("get", "/api/v1/pools/auto/thrifty"), ("post", "/api/v1/pools/auto/thrifty"),
             ("post", "/api/v1/evaluate"), ("get", "/api/v1/occupancy"), ("get", "/v1/models")]  # fmt: skip
    lesser = make_router("telemetry:write")
    for method, path in calls:
        unknown = getattr(router.client, method)(path, content_type="application/json")
        assert (unknown.status_code, unknown["WWW-Authenticate"]) == (401, "Bearer")
        refused = lesser.send(method, path)
        assert (refused.status_code, refused.json()["code"]) == (403, "scope_lacking")


CANDIDATE = {"provider": "claude", "model": "big"}
BAD_BODIES: dict[str, tuple[Any, set[str]]] = {
    "both forms": (
        [{**CANDIDATE, "connection_id": "a", "allowed_connection_ids": ["b"]}],
        {"/candidates/0/connection_id"},
    ),
    "neither form": ([CANDIDATE], {"/candidates/0/connection_id"}),
    "empty texts": (
        [{"provider": "", "model": "", "connection_id": ""}],
        {"/candidates/0/provider", "/candidates/0/model", "/candidates/0/connection_id"},
    ),
    "a double id": (
        [{**CANDIDATE, "allowed_connection_ids": ["a", "b", "a"]}],
        {"/candidates/0/allowed_connection_ids/2"},
    ),
    "wrong types, each named": (
        [{"provider": 1, "model": None, "connection_id": ["x"]}, {**CANDIDATE, "connection_id": "a", "ref": 7}],
        {"/candidates/0/provider", "/candidates/0/model", "/candidates/0/connection_id", "/candidates/1/ref"},
    ),
    "unknown fields": ([{**CANDIDATE, "connection_id": "a", "weight": 1}], {"/candidates/0/weight"}),
}


@pytest.mark.django_db
@pytest.mark.parametrize("case", BAD_BODIES)
def test_a_bad_body_is_400_and_names_every_bad_field(router: Router, case: str) -> None:
    candidates, pointers = BAD_BODIES[case]
    for path, body in (
        ("/api/v1/pools/auto/thrifty", {"candidates": candidates, "explain": "maybe", "mixed_rungs": "both"}),
        ("/api/v1/evaluate", {"id": "auto/thrifty", "candidates": candidates, "explain": 3, "mixed_rungs": None}),
    ):
        response = router.post(path, body)
        assert response.status_code == 400
        assert response["Content-Type"] == "application/problem+json"
        assert {error["pointer"] for error in response.json()["errors"]} == pointers | {"/explain", "/mixed_rungs"}


EVALUATE_ERRORS: list[tuple[dict[str, Any], set[str]]] = [
    ({"settings": {"exit_cutoff_percent": 101, "max_reading_age_seconds": 9}},
     {"/settings/exit_cutoff_percent", "/settings/max_reading_age_seconds"}),
    ({"settings": {"rung_budget_usd": {"cheap": "-1", "premium": "5"}}}, {"/settings/rung_budget_usd/cheap"}),
    ({"settings": {"rung_budget_usd": {"free": "1"}}}, {"/settings/rung_budget_usd/free"}),
    ({"now": "yesterday", "rung_spend_usd": {"cheap": "x"}}, {"/now", "/rung_spend_usd/cheap"}),
    ({"now": "2026-08-22T12:00:00"}, {"/now"}),
    ({"now": "9999-12-31T23:59:59Z"}, {"/now"}),
    ({"tiers": {"openrouter/m": "medium", "nomodel": "cheap", "": "cheap", " /m": "free"}},
     {"/tiers/openrouter~1m", "/tiers/nomodel", "/tiers/", "/tiers/ ~1m"}),
    ({"capabilities": {"a/b": [1], "nomodel": ["vision"], "p/": "vision"}},
     {"/capabilities/a~1b/0", "/capabilities/nomodel", "/capabilities/p~1"}),
    ({"capabilities": {"nomodel": ["vision"]}}, {"/capabilities/nomodel"}),
    ({"connections": [{"connection_id": "-a", "provider": 3, "auth_type": "a b"}],
      "breakers": [{"provider": "a b", "open_until": "9999-12-31T00:00:00Z"}],
      "cooldowns": [{"connection_id": "-a", "effective_until": "soon"}]},
     {"/connections/0/connection_id", "/connections/0/provider", "/connections/0/auth_type", "/breakers/0/provider",
      "/breakers/0/open_until", "/cooldowns/0/connection_id", "/cooldowns/0/effective_until"}),
    ({"settings": {"rung_budget_usd": {"cheap": "1_0", "premium": "٣"}, "exit_cutoff_percent": " 1"}},
     {"/settings/rung_budget_usd/cheap", "/settings/rung_budget_usd/premium", "/settings/exit_cutoff_percent"}),
    ({"rung_spend_usd": {"cheap": " 10 ", "premium": "1\t"}}, {"/rung_spend_usd/cheap", "/rung_spend_usd/premium"}),
    ({"quota": [{"connection_id": "noauth", "observed_at": "2026-08-22T12:00:00Z"}]}, {"/quota/0/provider"}),
    ({"quota": [
        {"connection_id": "a", "observed_at": "2026-08-22T12:00:00Z", "remaining_percent": 5, "unlimited": True}
     ]},
     {"/quota/0/remaining_percent"}),
    ({"catalog": [{"provider": "a", "billing": "metered", "overage": "hard-stop"}] * 2}, {"/catalog/1"}),
    ({"connections": [{"connection_id": "a", "provider": "p"}, {"connection_id": "a", "provider": "q"}]},
     {"/connections/1"}),
    ({"connections": [{"connection_id": "-a", "provider": "p q"}]},
     {"/connections/0/connection_id", "/connections/0/provider"}),
    ({"sort": "price"}, {"/sort"}),
]  # fmt: skip


@pytest.mark.django_db
@pytest.mark.parametrize(("extra", "pointers"), EVALUATE_ERRORS)
def test_evaluate_names_every_bad_field(router: Router, extra: dict[str, Any], pointers: set[str]) -> None:
    response = router.post("/api/v1/evaluate", {"id": "auto/thrifty", **extra})
    assert response.status_code == 400, response.content
    assert pointers <= {error["pointer"] for error in response.json()["errors"]}


@pytest.mark.django_db
@pytest.mark.parametrize(
    "text", ["", "{", '{"candidates": NaN}', "[1]", '{"candidates": [}', "\ud800".encode("utf-8", "surrogatepass")]
)
def test_malformed_json_is_400(router: Router, text: Any) -> None:
    response = router.post("/api/v1/pools/auto/thrifty", text)
    assert response.status_code == 400
    assert response["Content-Type"] == "application/problem+json"


@pytest.mark.django_db
def test_5000_candidates_are_taken_and_5001_are_too_many(router: Router) -> None:
    one = {**CANDIDATE, "connection_id": "noauth"}
    assert router.post("/api/v1/pools/auto/thrifty", {"candidates": [one] * 5000}).status_code == 200
    response = router.post("/api/v1/pools/auto/thrifty", {"candidates": [one] * 5001})
    assert (response.status_code, response.json()["code"]) == (413, "too_large")


@pytest.mark.django_db
def test_a_call_judges_50000_pairs_at_most(router: Router) -> None:
    ids = [f"c{number}" for number in range(5000)]
    candidates = [{**CANDIDATE, "allowed_connection_ids": ids}] * 10
    one_more = [*candidates, {**CANDIDATE, "connection_id": "c1"}]
    for path, rest in (("/api/v1/pools/auto/thrifty", {}), ("/api/v1/evaluate", {"id": "auto/thrifty"})):
        response = router.post(path, {"candidates": one_more, **rest})
        assert (response.status_code, response.json()["code"]) == (413, "too_large")
        assert "50000" in response.json()["detail"]
        assert [error["pointer"] for error in response.json()["errors"]] == ["/candidates"]
    assert router.post("/api/v1/pools/auto/thrifty", {"candidates": candidates}).status_code == 200


@pytest.mark.django_db
def test_a_connection_has_64_windows_at_most_in_evaluate(router: Router) -> None:
    windows = [
        {"connection_id": name, "window": f"w{number}", "observed_at": "2026-08-22T12:00:00Z"}
        for name in ("a", "b")
        for number in range(64)
    ]
    body = {"id": "auto/thrifty", "quota": windows}
    assert router.post("/api/v1/evaluate", body).status_code == 200
    response = router.post("/api/v1/evaluate", {**body, "quota": [*windows, {**windows[0], "window": "more"}]})
    assert response.status_code == 400
    assert [(error["pointer"], error["code"]) for error in response.json()["errors"]] == [
        ("/quota/128", "too_many_windows")
    ]


@pytest.mark.django_db
@pytest.mark.parametrize(
    "query", ["explain=perhaps", "lowest_rung_only=2", "mixed_rungs=x", "explian=true", "explain=true&explain=true"]
)
def test_bad_query_parameters_are_400(router: Router, query: str) -> None:
    response = router.get(f"/api/v1/pools/auto/thrifty?{query}")
    assert response.status_code == 400
    assert response.json()["code"] == "invalid_query"
    assert response.json()["errors"][0]["pointer"] == "/" + query.partition("=")[0]


@pytest.mark.django_db
def test_models_lists_the_flat_ids_and_the_pairs_on_request_and_hiding_paid_keeps_all(router: Router) -> None:
    """I: none of these ids counts as paid-tier."""
    flat = [model["id"] for model in router.get("/v1/models").json()["data"]]
    assert flat == ["auto/subscription", "auto/thrifty", "auto/best-free"]
    everything = router.get("/v1/models?pairs=true&hide_paid=true").json()
    assert [model["id"] for model in everything["data"]] == list(POOL_IDS)
    assert everything["object"] == "list"


@pytest.mark.usefixtures("fleet")
@time_machine.travel(NOW, tick=False)
def test_evaluate_says_what_would_move_pair_by_pair(router: Router) -> None:
    body = {"id": "auto/thrifty", "settings": {"exit_cutoff_percent": 60, "rung_budget_usd": {"premium": "0"}}}
    answer = router.post("/api/v1/evaluate", body).json()
    assert answer["changes"] == [
        {
            "provider": "claude", "model": "big", "connection_id": "plan", "ref": None,
            "before": {"in": True, "rung": "subscription", "code": None},
            "after": {"in": False, "rung": "subscription", "code": "quota_exhausted"},
        },
        {
            "provider": "acme", "model": "big", "connection_id": "paid", "ref": None,
            "before": {"in": True, "rung": "premium", "code": None},
            "after": {"in": False, "rung": "premium", "code": "rung_disabled"},
        },
    ]  # fmt: skip
    assert len(router.get("/api/v1/pools/auto/thrifty").json()["candidates"]) == 2


@pytest.mark.usefixtures("fleet")
@time_machine.travel(NOW, tick=False)
def test_occupancy_has_the_members_the_specification_names(router: Router) -> None:
    answer = router.get("/api/v1/occupancy").json()
    assert set(answer) == {
        "revision", "evaluated_at", "valid_until", "serving_rung", "next_rung", "rungs", "pools",
    }  # fmt: skip
    assert (answer["serving_rung"], answer["next_rung"]) == ("subscription", "premium")
    assert [(rung["rung"], rung["usable"], rung["total"]) for rung in answer["rungs"]] == [
        ("subscription", 1, 1), ("keyless", 0, 0), ("free", 0, 0), ("cheap", 0, 0), ("premium", 1, 1),
    ]  # fmt: skip
    assert answer["rungs"][0]["budget"] is None
    assert answer["rungs"][4]["budget"] == {
        "amount_usd": None, "spent_usd": "0", "held_usd": "0", "left_usd": None, "accounting": "none",
        "window_start": "2026-08-22T00:00:00Z", "window_end": "2026-08-23T00:00:00Z", "zone": "UTC",
    }  # fmt: skip


@pytest.mark.usefixtures("fleet")
@time_machine.travel(NOW, tick=False)
def test_explain_tells_a_connection_in_the_words_a_router_gets(router: Router) -> None:
    answer = router.get("/api/v1/connections/plan/explain").json()
    assert set(answer) == {
        "connection_id", "provider", "billing", "windows", "cooldown", "breaker", "verdict", "binding_window",
        "returns_at", "pools",
    }  # fmt: skip
    assert answer["billing"]["matched"] == "provider+auth_type"
    assert (answer["verdict"], answer["windows"][0]["verdict"]) == ("usable", "usable")
    assert {(place["id"], place["in"], place["rung"]) for place in answer["pools"] if place["in"]} == {
        (known, True, "subscription") for known in POOL_IDS if known != "auto/best-free"
    }
    assert router.get("/api/v1/connections/stranger/explain").status_code == 404
    assert router.get("/api/v1/connections/noauth/explain").status_code == 400


@pytest.mark.usefixtures("fleet")
@time_machine.travel(NOW, tick=False)
def test_hard_stop_without_a_reason_does_not_outlive_the_catalogue_that_said_so(router: Router) -> None:
    """B4: declaring hard-stop where the catalogue does not needs a written reason."""
    Connection.objects.filter(connection_id="plan").update(overage_override="hard-stop")
    assert len(router.get("/api/v1/pools/auto/subscription").json()["candidates"]) == 1
    BillingEntry.objects.update(overage="meters-to-paid")
    assert router.get("/api/v1/pools/auto/subscription").json()["excluded_counts"]["overage_not_hard_stop"] == 1
    Connection.objects.filter(connection_id="plan").update(overage_override_reason="extra usage is off, see invoice")
    assert len(router.get("/api/v1/pools/auto/subscription").json()["candidates"]) == 1


@pytest.mark.usefixtures("fleet")
@time_machine.travel(NOW, tick=False)
def test_explain_gives_the_reason_of_an_override_in_force_before_that_of_the_catalogue_b4(router: Router) -> None:
    """An override without a written reason leaves the catalogue's word standing."""
    BillingEntry.objects.filter(provider="claude").update(reason="the plan's page")

    def reason() -> str:
        told: str = router.get("/api/v1/connections/plan/explain").json()["billing"]["reason"]
        return told

    assert reason() == "the plan's page"
    address = "/api/v1/connections/plan"
    router.send("patch", address, {"overage_override": "meters-to-paid"})
    assert reason() == "the plan's page"
    router.send("patch", address, {"overage_override_reason": "pay-as-you-go is on"})
    assert reason() == "pay-as-you-go is on"
    router.send("patch", address, {"overage_override": None})
    assert reason() == "the plan's page"
