"""Writing a planned fleet into the database, in bulk, and who may ask about it."""

import secrets
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, get_user_model

from billing_catalog.models import BillingEntry, FreeProvider, ModelPrice
from ladder.models import Connection, Cooldown, LadderSettings, QuotaReading, QuotaWindow, RungBudget
from omniroute_admin.bench.plan import WINDOWS, PlannedProvider
from omniroute_admin.common.history import Actor
from omniroute_admin.common.models import ApiKey
from omniroute_admin.common.scopes import SCOPES
from omniroute_admin.common.services.keys import create_key
from omniroute_admin.common.services.revision import deciding_write
from omniroute_admin.common.sessions import SessionStore

ACTOR = Actor(name="command bench")
BATCH = 500
LONGEST_AGE = 3600
"""Seconds a reading stays fresh: the longest there may be, so that no window ages out while others are measured."""

_BUDGET = Decimal(100_000_000)
_PRICES = {"subscription": "3", "overage": "3", "free": "0", "cheap": "0.5", "premium": "15"}
_RESETS = {"5h": timedelta(hours=5), "weekly": timedelta(days=7), "daily": timedelta(days=1)}
_LONG_AGO = timedelta(days=400)


def write_fleet(plan: Sequence[PlannedProvider], *, now: datetime) -> None:
    """Write a fleet into an empty database; its readings are of `now`."""
    with deciding_write():
        LadderSettings.objects.filter(pk=1).update(max_reading_age_seconds=LONGEST_AGE)
        RungBudget.objects.update(amount_usd=_BUDGET)
        _write_catalogue(plan, now)
        Connection.objects.bulk_create(_connections(plan, now), batch_size=BATCH)
        keys = dict(Connection.objects.values_list("connection_id", "pk"))
        QuotaWindow.objects.bulk_create(_windows(plan, keys, now), batch_size=BATCH)
        Cooldown.objects.bulk_create(_cooldowns(plan, keys, now), batch_size=BATCH)
        fields = ("observed_at", "received_at", "remaining_percent", "reset_at")
        rows = QuotaWindow.objects.order_by("pk").values("pk", *fields)
        readings = (QuotaReading(window_id=row.pop("pk"), **row) for row in rows)
        QuotaReading.objects.bulk_create(readings, batch_size=BATCH)


def make_key(*, now: datetime) -> tuple[ApiKey, str]:
    """Make the key of a run, with every scope, and return it with its text."""
    scopes = list(SCOPES)
    return create_key(name="bench", scopes=scopes, expires_at=None, actor=ACTOR, reason="a measurement", now=now)


def make_session() -> tuple[Any, str]:
    """Make an administrator without a password who is signed in; return the account and the session's key."""
    user = get_user_model().objects.create_superuser(username=f"bench-{secrets.token_hex(8)}")
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = "omniroute_admin.common.backends.TokenBackend"
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.create()
    return user, str(session.session_key)


def _write_catalogue(plan: Sequence[PlannedProvider], now: datetime) -> None:
    made = {"created_at": now, "updated_at": now}
    BillingEntry.objects.bulk_create([BillingEntry(provider=one.name, **_billing(one.kind), **made) for one in plan])
    FreeProvider.objects.bulk_create([FreeProvider(provider=one.name, **made) for one in plan if one.kind == "free"])
    prices = (
        ModelPrice(
            provider=one.name,
            model=model,
            input_usd_per_million=Decimal(_PRICES[one.kind]),
            output_usd_per_million=Decimal(_PRICES[one.kind]) * 5,
            capabilities=["vision", "reasoning"] if number % 2 else [],
            source="bench",
            effective_from=now - _LONG_AGO,
        )
        for one in plan
        for number, model in enumerate(one.models)
    )
    ModelPrice.objects.bulk_create(prices, batch_size=BATCH)


def _billing(kind: str) -> dict[str, str]:
    if kind in {"subscription", "overage"}:
        overage = "hard-stop" if kind == "subscription" else "meters-to-paid"
        return {"auth_type": "oauth", "billing": "subscription", "overage": overage}
    return {"auth_type": "apikey", "billing": "metered", "overage": "meters-to-paid"}


def _connections(plan: Sequence[PlannedProvider], now: datetime) -> Iterator[Connection]:
    for one in plan:
        auth_type = _billing(one.kind)["auth_type"]
        for account in one.connections:
            yield Connection(
                connection_id=account.connection_id,
                provider=one.name,
                auth_type=auth_type,
                created_at=now,
                updated_at=now,
            )


def _windows(plan: Sequence[PlannedProvider], keys: dict[str, int], now: datetime) -> Iterator[QuotaWindow]:
    for one in plan:
        for account in one.connections:
            for window, percent in zip(WINDOWS[one.kind], account.percents, strict=True):
                yield QuotaWindow(
                    connection_id=keys[account.connection_id],
                    window=window,
                    remaining_percent=Decimal(percent),
                    reset_at=now + _RESETS[window],
                    observed_at=now,
                    received_at=now,
                )


def _cooldowns(plan: Sequence[PlannedProvider], keys: dict[str, int], now: datetime) -> Iterator[Cooldown]:
    until = now + timedelta(hours=3)
    for one in plan:
        for account in one.connections:
            if account.is_resting:
                yield Cooldown(
                    connection_id=keys[account.connection_id],
                    cause="rate_limit",
                    asked_until=until,
                    effective_until=until,
                    set_by=ACTOR.name,
                    reported_at=now,
                )
