"""The same facts, stored or given inline, give the same answer (SPEC 4, evaluate)."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
import time_machine
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from billing_catalog.models import BillingEntry, ModelPrice, TierOverride
from ladder.core.ids import POOL_IDS
from ladder.models import Breaker, Connection, Cooldown, LadderSettings, QuotaReading, QuotaWindow, RungBudget
from tests.router import Router

NOW = datetime(2026, 8, 22, 12, 0, tzinfo=UTC)
LONG_AGO = NOW - timedelta(days=30)
PROVIDERS = ("claude", "codex", "acme")
MODELS = ("opus-4", "sonnet-4", "haiku")
instants = st.sampled_from([-7200, -181, -180, -60, -1, 0, 1, 60, 3600]).map(lambda s: NOW + timedelta(seconds=s))
percents = st.sampled_from(["0", "1.5", "2", "2.00000001", "3", "5", "5.1", "20", "50", "100"])
globs = st.sampled_from(["opus-4", "OPUS*", "*", "haiku", "zzz*"])
billings = st.sampled_from(["subscription", "metered", "keyless", "unknown"])
overages = st.sampled_from(["hard-stop", "hard-stop", "meters-to-paid", "unknown"])


def iso(instant: datetime) -> str:
    return instant.isoformat().replace("+00:00", "Z")


@st.composite
def windows(draw: st.DrawFn, connection: dict[str, Any]) -> list[dict[str, Any]]:
    names = draw(st.lists(st.sampled_from(["5h", "weekly", "bonus"]), unique=True, max_size=3))
    found = []
    for name in names:
        window = {
            "connection_id": connection["connection_id"],
            "provider": connection["provider"],
            "window": name,
            "observed_at": iso(draw(st.sampled_from([NOW - timedelta(seconds=s) for s in (0, 1, 180, 181, 9000)]))),
            "status": draw(st.sampled_from(["safe", "safe", "safe", "exhausted", "unknown"])),
            "reset_at": draw(st.one_of(st.none(), instants.map(iso))),
            "held": draw(st.booleans()),
            "combine": draw(st.sampled_from(["limit", "pool"])),
            "model": draw(st.one_of(st.none(), st.none(), globs)),
            "is_muted": draw(st.booleans()) and draw(st.booleans()),
            "exit_cutoff_percent": draw(st.one_of(st.none(), st.sampled_from(["0", "20", "50"]))),
        }
        number = draw(st.sampled_from(["percent", "percent", "percent", "unlimited", "none"]))
        if number == "percent":
            window["remaining_percent"] = draw(percents)
        window["unlimited"] = number == "unlimited"
        found.append(window)
    return found


@st.composite
def bodies(draw: st.DrawFn) -> dict[str, Any]:
    keys = draw(
        st.lists(
            st.tuples(st.sampled_from(PROVIDERS), st.sampled_from([None, "oauth", "apikey"])), unique=True, max_size=4
        )
    )
    catalog = [
        {"provider": provider, "auth_type": auth, "billing": draw(billings), "overage": draw(overages)}
        for provider, auth in keys
    ]
    connections, quota, cooldowns = [], [], []
    names = draw(st.lists(st.sampled_from(["c1", "c2", "c3", "c4"]), unique=True, max_size=4))
    places = [(name, draw(st.sampled_from(PROVIDERS))) for name in names]
    places += [("noauth", provider) for provider in draw(st.lists(st.sampled_from(PROVIDERS), unique=True, max_size=2))]
    for name, provider in places:
        one = {
            "connection_id": name,
            "provider": provider,
            "auth_type": "none" if name == "noauth" else draw(st.sampled_from([None, "oauth", "apikey"])),
            "is_enabled": draw(st.sampled_from([True, True, True, False])),
            "overage_override": draw(st.one_of(st.none(), st.none(), overages)),
            "excluded_models": draw(st.lists(globs, unique=True, max_size=1)),
        }
        connections.append(one)
        quota += draw(windows(one))
        causes = draw(st.lists(st.sampled_from(["quota", "rate_limit", "operator"]), unique=True, max_size=1))
        cooldowns += [
            {
                "connection_id": name,
                "provider": provider,
                "cause": cause,
                "model": draw(st.one_of(st.none(), globs)),
                "effective_until": iso(draw(instants)),
            }
            for cause in causes
        ]
    ids = draw(st.lists(st.sampled_from([*names, "noauth", "stranger"]), unique=True, max_size=5))
    candidates = [
        {"provider": provider, "model": model, "ref": f"{provider}-{model}", "allowed_connection_ids": ids}
        for provider in draw(st.lists(st.sampled_from(PROVIDERS), unique=True, max_size=3))
        for model in draw(st.lists(st.sampled_from(MODELS), unique=True, max_size=2))
    ]
    models = [f"{provider}/{model}" for provider in PROVIDERS for model in MODELS]
    budgets = st.one_of(st.none(), st.sampled_from(["0", "5.00"]))
    return {
        "id": draw(st.sampled_from(sorted(POOL_IDS))),
        "now": iso(NOW),
        "explain": True,
        "mixed_rungs": draw(st.sampled_from(["split", "merge"])),
        "lowest_rung_only": draw(st.booleans()),
        "settings": {
            "exit_cutoff_percent": draw(st.sampled_from(["0", "2", "10"])),
            "reentry_min_remaining_percent": draw(st.sampled_from(["1", "5", "7.5"])),
            "max_reading_age_seconds": draw(st.sampled_from([10, 180, 3600])),
            "rung_budget_usd": {"cheap": draw(budgets), "premium": draw(budgets)},
        },
        "catalog": catalog,
        "connections": connections,
        "quota": quota,
        "cooldowns": cooldowns,
        "breakers": [
            {"provider": provider, "open_until": iso(draw(instants))}
            for provider in draw(st.lists(st.sampled_from(PROVIDERS), unique=True, max_size=1))
        ],
        "tiers": {model: draw(st.sampled_from(["free", "cheap", "premium"])) for model in models},
        "capabilities": {model: draw(st.sampled_from([[], ["vision"], ["vision", "reasoning"]])) for model in models},
        "rung_spend_usd": {"cheap": "0", "premium": "0"},
        "candidates": candidates,
    }


def store(body: dict[str, Any]) -> None:
    """Put everything that an evaluate body says into the database."""
    asked = body["settings"]
    LadderSettings.objects.filter(pk=1).update(
        **{name: value for name, value in asked.items() if name != "rung_budget_usd"}
    )
    for rung, amount in asked["rung_budget_usd"].items():
        RungBudget.objects.filter(rung=rung).update(amount_usd=amount)
    stamps = {"created_at": LONG_AGO, "updated_at": LONG_AGO}
    for row in body["catalog"]:
        BillingEntry.objects.create(**row, **stamps)
    rows = {
        (one["provider"], one["connection_id"]): Connection.objects.create(
            **one, overage_override_reason="written down (B4)", **stamps
        )
        for one in body["connections"]
    }
    for window in body["quota"]:
        _store_window(rows[window["provider"], window["connection_id"]], window)
    for cooldown in body["cooldowns"]:
        until = cooldown["effective_until"]
        Cooldown.objects.create(
            connection=rows[cooldown["provider"], cooldown["connection_id"]],
            cause=cooldown["cause"],
            model=cooldown["model"],
            asked_until=until,
            effective_until=until,
            reported_at=LONG_AGO,
        )
    for breaker in body["breakers"]:
        Breaker.objects.create(**breaker, reported_at=LONG_AGO)
    for key, tier in body["tiers"].items():
        provider, _, model = key.partition("/")
        TierOverride.objects.create(provider=provider, model_pattern=model, tier=tier, **stamps)
        ModelPrice.objects.create(
            provider=provider, model=model, capabilities=body["capabilities"][key], effective_from=LONG_AGO
        )


def _store_window(connection: Connection, window: dict[str, Any]) -> None:
    """Store a window with its reading; one that dropped out has an earlier reading at nothing (Q5)."""
    said = {name: window.get(name) for name in ("remaining_percent", "unlimited", "status", "reset_at", "observed_at")}
    row = QuotaWindow.objects.create(
        connection=connection,
        window=window["window"],
        received_at=said["observed_at"],
        combine=window["combine"],
        model=window["model"],
        is_muted=window["is_muted"],
        exit_cutoff_percent=window["exit_cutoff_percent"],
        **said,
    )
    QuotaReading.objects.create(window=row, received_at=said["observed_at"], **said)
    if window["held"]:
        QuotaReading.objects.create(
            window=row, observed_at=LONG_AGO, received_at=LONG_AGO, remaining_percent=Decimal(0)
        )


def answer_of(response: Any) -> dict[str, Any]:
    assert response.status_code == 200, response.content
    answer: dict[str, Any] = response.json()
    return {name: value for name, value in answer.items() if name not in ("revision", "changes")}


def compare(router: Router, body: dict[str, Any]) -> None:
    inline = answer_of(router.post("/api/v1/evaluate", body))
    store(body)
    asked = {name: body[name] for name in ("id", "now", "explain", "mixed_rungs", "lowest_rung_only")}
    stored = router.post("/api/v1/evaluate", {**asked, "candidates": body["candidates"]})
    assert answer_of(stored) == inline
    assert stored.json()["changes"] == []
    options = {name: body[name] for name in ("candidates", "explain", "mixed_rungs", "lowest_rung_only")}
    assert answer_of(router.post(f"/api/v1/pools/{body['id']}", options)) == inline
    query = f"explain=true&mixed_rungs={body['mixed_rungs']}&lowest_rung_only={str(body['lowest_rung_only']).lower()}"
    whole = answer_of(router.get(f"/api/v1/pools/{body['id']}?{query}"))
    given_all = {name: value for name, value in body.items() if name != "candidates"}
    assert answer_of(router.post("/api/v1/evaluate", given_all)) == whole
    assert answer_of(router.post("/api/v1/evaluate", asked)) == whole


@pytest.mark.django_db
@given(body=bodies())
@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_stored_facts_and_inline_facts_give_the_same_answer(router: Router, body: dict[str, Any]) -> None:
    with time_machine.travel(NOW, tick=False), transaction.atomic():
        compare(router, body)
        transaction.set_rollback(True)
