"""Rows of the live state to values of the core; the only place that knows both."""

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from billing_catalog.core.values import Overage
from ladder.core.alerts.quiet import DAYS, QuietHours
from ladder.core.alerts.rules import AlertKind, Rule
from ladder.core.money import BudgetWindow, budget_window
from ladder.core.spend.ledger import Spend
from ladder.core.values import (
    Budget,
    Combine,
    Connection,
    Cooldown,
    CooldownCause,
    Hold,
    LadderSettings,
    Period,
    ReadingStatus,
    Rung,
    Weekday,
    Window,
)
from ladder.models import AlertRule, QuotaWindow, RungBudget
from ladder.models import LadderSettings as LadderSettingsRow

CONNECTION_FIELDS = (
    "id",
    "connection_id",
    "provider",
    "auth_type",
    "is_enabled",
    "is_implied",
    "overage_override",
    "overage_override_reason",
    "excluded_models",
)
WINDOW_FIELDS = (
    "id",
    "connection_id",
    "window",
    "observed_at",
    "received_at",
    "remaining_percent",
    "unlimited",
    "status",
    "reset_at",
    "combine",
    "model",
    "is_muted",
    "is_reported",
    "exit_cutoff_percent",
)
COOLDOWN_FIELDS = ("connection_id", "cause", "effective_until", "model")


def to_connections(
    *,
    connections: Iterable[tuple[Any, ...]],
    windows: Iterable[tuple[Any, ...]],
    cooldowns: Iterable[tuple[Any, ...]],
    held: Collection[int],
) -> tuple[Connection, ...]:
    """Return connections from rows of CONNECTION_FIELDS, with their windows and cooldowns."""
    windows_of: dict[int, list[Window]] = {}
    for row in windows:
        windows_of.setdefault(row[1], []).append(_to_window(row, is_held=row[0] in held))
    cooldowns_of: dict[int, list[Cooldown]] = {}
    for pk, cause, until, model in cooldowns:
        cooldowns_of.setdefault(pk, []).append(Cooldown(CooldownCause(cause), until, model))
    return tuple(_to_connection(row, windows_of.get(row[0], []), cooldowns_of.get(row[0], [])) for row in connections)


def _to_connection(row: tuple[Any, ...], windows: list[Window], cooldowns: list[Cooldown]) -> Connection:
    _, connection_id, provider, auth_type, is_enabled, is_implied, override, reason, excluded = row
    return Connection(
        connection_id=connection_id,
        provider=provider,
        auth_type=auth_type,
        is_enabled=is_enabled,
        is_implied=is_implied,
        overage_override=acting_override(override=override, reason=reason),
        excluded_models=tuple(excluded),
        windows=tuple(windows),
        cooldowns=tuple(cooldowns),
    )


def acting_override(*, override: str | None, reason: str) -> Overage | None:
    """Return the overage override that acts (B4): `hard-stop` does so only with a written reason.

    Without one it may stand where the catalogue said the same; should the catalogue say otherwise later, the catalogue
    counts.
    """
    if not override or (override == Overage.HARD_STOP and not reason.strip()):
        return None
    return Overage(override)


def _to_window(row: tuple[Any, ...], *, is_held: bool) -> Window:
    _, _, name, observed, received, percent, unlimited, status, reset_at, combine, model, muted, reported, cutoff = row
    return Window(
        window=name,
        observed_at=age_from(observed_at=observed, received_at=received),
        remaining_percent=percent,
        unlimited=unlimited,
        status=ReadingStatus(status),
        reset_at=reset_at,
        held=is_held,
        combine=Combine(combine),
        model=model,
        is_muted=muted,
        is_reported=reported,
        exit_cutoff_percent=cutoff,
    )


def window_of(row: QuotaWindow, *, is_held: bool) -> Window:
    """Return a window's row as a value."""
    return _to_window(tuple(getattr(row, field) for field in WINDOW_FIELDS), is_held=is_held)


def age_from(*, observed_at: datetime | None, received_at: datetime | None) -> datetime | None:
    """Return the instant a reading's age counts from: the earlier of observed and received (SPEC 4)."""
    if observed_at is None or received_at is None:
        return observed_at
    return min(observed_at, received_at)


def to_settings(row: LadderSettingsRow) -> LadderSettings:
    """Return the settings of the decision."""
    return LadderSettings(row.exit_cutoff_percent, row.reentry_min_remaining_percent, row.max_reading_age_seconds)


def window_at(row: RungBudget, *, at: datetime) -> BudgetWindow:
    """Return a budget's window at an instant: what screens show and what is enforced (M3, M9)."""
    return budget_window(
        period=Period(row.period),
        week_starts_on=Weekday(row.week_starts_on),
        zone=ZoneInfo(row.zone),
        at=at,
        reset_at=row.counted_from,
    )


def to_budget(row: RungBudget, *, window: BudgetWindow, spend: Spend, holds: tuple[Hold, ...]) -> Budget:
    """Return a rung's budget in one window. Stored spend without events is 0, and gated (M2)."""
    return Budget(
        amount_usd=row.amount_usd,
        spent_usd=spend.usd,
        holds=holds,
        window_start=window.counted_from,
        window_end=window.end,
        zone=row.zone,
        accounting=spend.accounting,
    )


def rung_named(word: str) -> Rung:
    """Return the rung of a word, as in `cheap`."""
    return Rung[word.upper()]


def to_alert_rule(row: AlertRule) -> Rule:
    """Return a rule as the looks for alerts take it."""
    return Rule(
        id=row.pk,
        kind=AlertKind(row.looks_for),
        subject=row.subject,
        threshold=row.threshold or 0,
        for_seconds=row.for_seconds,
    )


def to_quiet_hours(row: AlertRule | None) -> QuietHours | None:
    """Return the quiet hours of a rule; None where it has none, or is gone."""
    if row is None or row.quiet_from is None or row.quiet_to is None:
        return None
    days = frozenset(Weekday(day) for day in row.quiet_days) or DAYS
    return QuietHours(row.quiet_from, row.quiet_to, ZoneInfo(row.quiet_zone), days)
