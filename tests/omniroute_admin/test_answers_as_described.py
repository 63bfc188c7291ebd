"""SPEC 4: every call answers what the OpenAPI document says, and takes what it says."""

from typing import Any

import pytest
import time_machine
import yaml
from django.db import transaction
from django.test import Client
from jsonschema import Draft202012Validator

from ladder.selectors.state import forget_snapshot
from tests.factories import (
    BillingEntryFactory,
    ConnectionFactory,
    CooldownFactory,
    FreeProviderFactory,
    ModelPriceFactory,
    PriceSourceFactory,
    ProviderAliasFactory,
    QuotaWindowFactory,
    TierOverrideFactory,
)
from tests.factories_ladder import NOW
from tests.router import Router, make_router

INSTANT = "2026-08-22T11:59:30Z"
BILLING = {"provider": "acme", "billing": "metered", "overage": "meters-to-paid", "source_url": "", "auth_type": None}
PRICE = {"provider": "acme", "model": "small", "input_usd_per_million": "0.50", "output_usd_per_million": 1.5}
OVERRIDE = {"provider": "acme", "model_pattern": "*small*", "tier": "cheap"}
SOURCE = {"provider": "acme", "price_list": "", "capability_list": "", "sells_seats": True}
CONNECTION = {"connection_id": "c2", "provider": "acme", "auth_type": "apikey", "excluded_models": ["*opus*"]}
CANDIDATES = [
    {"provider": "claude", "model": "big", "allowed_connection_ids": ["c1", "stranger"], "ref": "a"},
    {"provider": "acme", "model": "big", "connection_id": "c1"},
]
EVALUATE = {
    "id": "auto/thrifty",
    "explain": True,
    "now": "2026-08-22T12:00:00Z",
    "settings": {"exit_cutoff_percent": 2.5, "rung_budget_usd": {"cheap": "5.00", "premium": None}},
    "catalog": [{"provider": "claude", "auth_type": "oauth", "billing": "subscription", "overage": "hard-stop"}],
    "connections": [{"connection_id": "c1", "provider": "claude", "auth_type": "oauth"}],
    "quota": [{"connection_id": "c1", "window": "5h", "remaining_percent": 50, "observed_at": INSTANT}],
    "cooldowns": [{"connection_id": "c9", "effective_until": "2026-08-22T13:00:00Z", "cause": "quota"}],
    "breakers": [{"provider": "acme", "open_until": "2026-08-22T13:00:00Z"}],
    "tiers": {"claude/big": "cheap"},
    "capabilities": {"claude/big": ["vision"]},
    "rung_spend_usd": {"cheap": "1.20", "premium": None},
}
READINGS = {
    "readings": [
        {"connection_id": "c1", "window": "5h", "used_percent": 41.5, "observed_at": INSTANT, "reset_at": 1787418000},
        {"connection_id": "nobody", "window": "5h", "used_percent": 3, "observed_at": INSTANT},
    ],
    "complete_for": ["c1"],
}  # fmt: skip
USAGE = {"event_id": "e1", "connection_id": "c1", "model": "big", "occurred_at": INSTANT, "cost_usd": "0.25"}
HOLD = {"hold_id": "h1", "connection_id": "c1", "model": "big", "estimated_cost_usd": "0.10", "ttl_seconds": 60}
LIMITED = {"connection_id": "c1", "occurred_at": INSTANT, "cause": "rate_limit", "retry_after": "30"}
BREAKER = {"provider": "claude", "state": "open", "occurred_at": INSTANT}
OMNIROUTE = {
    "subscriptionLadder": {"exitCutoffPercent": 2, "rungBudgetUsd": {"cheap": 5.0, "premium": 0}},
    "reason": "x",
}
SETTINGS = {"exit_cutoff_percent": 2.5, "rung_budgets": {"cheap": {"amount_usd": "5.00", "zone": "Europe/Berlin"}}}

V1 = "/api/v1"
CATALOG = f"{V1}/catalog"
ONE = f"{V1}/connections/{{connection_id}}"
# (method, path as documented) -> (parameters of the path, query, body)
CALLS: dict[tuple[str, str], tuple[dict[str, str], str, Any]] = {
    ("post", f"{CATALOG}/aliases"): ({}, "", {"alias": "ac", "provider": "acme", "reason": "short"}),
    ("put", f"{CATALOG}/aliases/{{alias}}"): ({}, "", {"alias": "cc", "provider": "acme"}),
    ("patch", f"{CATALOG}/aliases/{{alias}}"): ({}, "", {"provider": "acme"}),
    ("post", f"{CATALOG}/billing"): ({}, "", BILLING),
    ("put", f"{CATALOG}/billing/{{id}}"): ({}, "", BILLING | {"source_url": "https://example.org/plan"}),
    ("patch", f"{CATALOG}/billing/{{id}}"): ({}, "", {"overage": "unknown", "change_reason": "read again"}),
    ("post", f"{CATALOG}/free-providers"): ({}, "", {"provider": "acme", "reason": "gives it away"}),
    ("put", f"{CATALOG}/free-providers/{{provider}}"): ({}, "", {"provider": "groq", "reason": "free tier"}),
    ("patch", f"{CATALOG}/free-providers/{{provider}}"): ({}, "", {"reason": "free tier"}),
    ("post", f"{CATALOG}/price-sources"): ({}, "", SOURCE),
    ("put", f"{CATALOG}/price-sources/{{provider}}"): ({}, "", SOURCE | {"provider": "claude"}),
    ("patch", f"{CATALOG}/price-sources/{{provider}}"): ({}, "", {"sells_seats": True}),
    ("post", f"{CATALOG}/prices"): ({}, "", PRICE),
    ("put", f"{CATALOG}/prices/{{id}}"): ({}, "", PRICE | {"provider": "claude", "model": "big"}),
    ("patch", f"{CATALOG}/prices/{{id}}"): ({}, "", {"input_usd_per_million": None, "capabilities": ["vision"]}),
    ("post", f"{CATALOG}/tier-overrides"): ({}, "", OVERRIDE),
    ("put", f"{CATALOG}/tier-overrides/{{id}}"): ({}, "", OVERRIDE | {"model_pattern": None}),
    ("patch", f"{CATALOG}/tier-overrides/{{id}}"): ({}, "", {"tier": "free"}),
    ("post", f"{V1}/connections"): ({}, "", CONNECTION),
    ("put", ONE): ({}, "", CONNECTION | {"connection_id": "c1", "provider": "claude"}),
    ("patch", ONE): ({}, "", {"is_enabled": False, "reason": "paused"}),
    ("delete", f"{ONE}/cooldown"): ({}, "?cause=quota&reason=paid", None),
    ("post", f"{ONE}/mark-exhausted"): ({}, "", {"window": "5h", "reset_at": "2026-08-22T17:00:00Z", "reason": "seen"}),
    ("patch", f"{ONE}/windows/{{window}}"): ({}, "", {"is_muted": True, "exit_cutoff_percent": 20.5}),
    ("post", f"{V1}/evaluate"): ({}, "", EVALUATE),
    ("get", f"{V1}/pools/{{pool_id}}"): ({}, "?explain=true", None),
    ("post", f"{V1}/pools/{{pool_id}}"): ({}, "", {"candidates": CANDIDATES, "explain": True}),
    ("patch", f"{V1}/settings"): ({}, "", SETTINGS),
    ("put", f"{V1}/settings/omniroute.json"): ({}, "", OMNIROUTE | {"reason": "moved"}),
    ("post", f"{V1}/settings/budgets/{{rung}}/reset"): ({"rung": "cheap"}, "", {"reason": "a new month"}),
    ("post", f"{V1}/telemetry/readings"): ({}, "", READINGS),
    ("post", f"{V1}/telemetry/usage"): ({}, "", {"events": [USAGE, USAGE | {"connection_id": "nobody"}]}),
    ("post", f"{V1}/telemetry/rate-limits"): ({}, "", {"events": [LIMITED]}),
    ("post", f"{V1}/telemetry/breakers"): ({}, "", {"events": [BREAKER]}),
    ("post", f"{V1}/holds"): ({}, "", HOLD),
    ("delete", f"{V1}/holds/{{hold_id}}"): ({"hold_id": "h1"}, "", None),
    ("get", "/v1/models"): ({}, "?pairs=true&hide_paid=true", None),
}  # fmt: skip
# What a call needs to find: another call made before it.
BEFORE = {("delete", f"{V1}/holds/{{hold_id}}"): ("post", f"{V1}/holds")}
METHODS = {"get", "post", "put", "patch", "delete"}


@pytest.fixture(scope="module")
def described() -> Any:
    """Return the document that is served, its objects closed: a member that it does not name is a fault."""
    document = yaml.safe_load(Client().get("/api/schema/").content)
    for schema in document["components"]["schemas"].values():
        if "properties" in schema:
            schema.setdefault("additionalProperties", False)
    return document


@pytest.fixture
def router(db: None) -> Router:
    return make_router()


@pytest.fixture
def names(db: None) -> dict[str, str]:
    """Store one row of everything and return the parameters of the paths that mean them."""
    connection = ConnectionFactory(connection_id="c1", provider="claude")
    QuotaWindowFactory(connection=connection, window="5h", remaining_percent="4.5")
    CooldownFactory(connection=connection)
    ProviderAliasFactory(alias="cc", provider="claude")
    FreeProviderFactory(provider="groq")
    PriceSourceFactory(provider="claude")
    billing = BillingEntryFactory(provider="claude", auth_type="oauth", source_url="")
    price = ModelPriceFactory(provider="claude", model="big")
    override = TierOverrideFactory(provider="claude")
    ids = {"billing": billing.pk, "prices": price.pk, "tier-overrides": override.pk}
    texts = {"connection_id": "c1", "window": "5h", "alias": "cc", "pool_id": "auto/thrifty"}
    return texts | {f"{kind}/id": str(key) for kind, key in ids.items()}


def address(path: str, names: dict[str, str]) -> str:
    """Return a documented path with its parameters filled in."""
    kind = path.removeprefix(f"{CATALOG}/").partition("/")[0]
    owner = "groq" if kind == "free-providers" else "claude"
    return path.format(**{"id": names.get(f"{kind}/id", ""), "provider": owner, **names})


def faults(schema: Any, value: Any, described: Any) -> list[str]:
    """Return what is wrong with a value by a schema of the document."""
    validator = Draft202012Validator({**schema, "components": described["components"]})
    return [f"{list(error.absolute_path)}: {error.message}" for error in validator.iter_errors(value)]


def call(router: Router, method: str, path: str, names: dict[str, str]) -> Any:
    """Return the answer of one operation to a good body."""
    if (method, path) in BEFORE:
        call(router, *BEFORE[method, path], names)
    more, query, body = CALLS.get((method, path), ({}, "", None))
    target = address(path, names | more) + query
    return router.get(target) if method == "get" else router.send(method, target, body)


@time_machine.travel(NOW, tick=False)
def test_every_documented_call_answers_as_documented(router: Router, described: Any, names: dict[str, str]) -> None:
    """Each operation finds the same rows: what the one before it did is rolled back."""
    found = []
    for path, operations in described["paths"].items():
        for method in METHODS.intersection(operations):
            assert method in {"get", "delete"} or (method, path) in CALLS, f"give a good body for {method} {path}"
            with transaction.atomic():
                response = call(router, method, path, names)
                transaction.set_rollback(True)
            forget_snapshot()
            operation = operations[method]
            wrong = faults_of(operation, response, described) + body_faults(operation, path, method, described)
            found += [f"{method} {path}: {fault}" for fault in wrong]
    assert found == []


def faults_of(operation: Any, response: Any, described: Any) -> list[str]:
    """Return how an answer differs from what an operation documents."""
    documented = operation["responses"].get(str(response.status_code))
    if documented is None or response.status_code >= 400:
        return [f"status {response.status_code}: {response.content!r}"]
    if "content" not in documented:
        return [] if response.content == b"" else ["a body where none is documented"]
    kind = response["Content-Type"].partition(";")[0]
    return faults(documented["content"][kind]["schema"], response.json(), described)


def body_faults(operation: Any, path: str, method: str, described: Any) -> list[str]:
    """Return why the document would refuse a body that the call takes."""
    body = CALLS.get((method, path), ({}, "", None))[2]
    if "requestBody" not in operation:
        return [] if body is None else ["a body that is not documented"]
    return faults(operation["requestBody"]["content"]["application/json"]["schema"], body, described)


@time_machine.travel(NOW, tick=False)
def test_lists_with_and_without_other_pages_are_as_documented(router: Router, described: Any, db: None) -> None:
    for number in range(3):
        ConnectionFactory(connection_id=f"c{number}")
    operation = described["paths"][f"{V1}/connections"]["get"]
    for page in (1, 2, 3):
        response = router.get(f"{V1}/connections?page_size=1&page={page}")
        assert faults_of(operation, response, described) == []


def test_only_the_calls_that_can_answer_304_document_it(described: Any) -> None:
    having = {
        (method, path)
        for path, operations in described["paths"].items()
        for method in METHODS.intersection(operations)
        if "304" in operations[method]["responses"]
    }
    assert having == {("get", f"{V1}/pools/{{pool_id}}")}


def test_the_check_itself_finds_a_member_that_is_not_documented(described: Any) -> None:
    schema = {"$ref": "#/components/schemas/Alias"}
    assert faults(schema, {"alias": "cc", "provider": "claude"}, described) == []
    assert faults(schema, {"alias": "cc", "provider": None, "colour": "red"}, described) != []
