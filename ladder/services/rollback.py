"""What of the ladder the one history keeps, how it is told, and how one goes back to a version of it (SPEC 3, 5)."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from ladder.models import Breaker, Connection, Cooldown, LadderSettings, QuotaWindow, RungBudget
from ladder.services.alert_kinds import ALERT_RULE
from ladder.services.connections import create_connection, update_connection
from ladder.services.cooldowns import LIFTED
from ladder.services.live_connections import locked
from ladder.services.settings import BudgetChanges, BudgetsChanges, SettingsChanges, update_settings
from ladder.services.windows import OPERATOR_FIELDS, update_window
from omniroute_admin.common.core.changes import (
    FieldChange,
    nothing_is,
    tell_budget,
    tell_percent,
    tell_seconds,
)
from omniroute_admin.common.history import Actor
from omniroute_admin.common.kinds import Kind, RollBack, Told, register_kind

_CONNECTION_FIELDS = (
    "auth_type",
    "label",
    "is_enabled",
    "overage_override",
    "overage_override_reason",
    "excluded_models",
)
_BUDGET_FIELDS = ("amount_usd", "period", "week_starts_on", "zone")
_SETTINGS_FIELDS = ("exit_cutoff_percent", "reentry_min_remaining_percent", "max_reading_age_seconds")
_EXHAUSTED = "exhausted"


def register_kinds() -> None:
    """Register them; called when the app is ready."""
    for kind in (SETTINGS, BUDGET, CONNECTION, WINDOW, COOLDOWN, BREAKER, ALERT_RULE):
        register_kind(kind)


# --- settings and budgets ----------------------------------------------------------------------------------------


def _lock_settings() -> LadderSettings:
    """Return the one row, which is the lock for all settings."""
    return LadderSettings.objects.select_for_update().get(pk=1)


def _present_settings(version: Any, *, now: datetime, lock: bool) -> LadderSettings:
    return _lock_settings() if lock else LadderSettings.objects.get(pk=1)


def _turn_settings(*, version: Any, present: Any | None, actor: Actor, reason: str, now: datetime) -> None:
    changes = SettingsChanges(**{name: getattr(version, name) for name in _SETTINGS_FIELDS})
    update_settings(changes=changes, actor=actor, reason=reason, now=now)


def _present_budget(version: Any, *, now: datetime, lock: bool) -> RungBudget | None:
    # Nobody changes a budget's own fields without the lock of the settings; its row is locked later, in fixed order.
    if lock:
        _lock_settings()
    return RungBudget.objects.filter(pk=version.id).first()


def _turn_budget(*, version: Any, present: Any | None, actor: Actor, reason: str, now: datetime) -> None:
    changes = BudgetChanges(**{name: getattr(version, name) for name in _BUDGET_FIELDS})
    budgets = BudgetsChanges(**{version.rung: changes})
    update_settings(changes=SettingsChanges(rung_budgets=budgets), actor=actor, reason=reason, now=now)


def _reset(version: Any, before: Any | None) -> str | None:
    counted_before = None if before is None else before.counted_from
    return "count reset" if version.counted_from not in {None, counted_before} else None


# --- connections and windows -------------------------------------------------------------------------------------


def _present_connection(version: Any, *, now: datetime, lock: bool) -> Connection | None:
    """Return the connection; of a deleted one the connection that has its id now."""
    live = Connection.objects.live()
    rows = live.filter(provider=version.provider, connection_id=version.connection_id) | live.filter(pk=version.id)
    return (locked(rows) if lock else rows.order_by("id")).first()


def _turn_connection(*, version: Any, present: Any | None, actor: Actor, reason: str, now: datetime) -> None:
    """Change the connection; one that is deleted is made anew under its id and inherits nothing (SPEC 3)."""
    values = {name: getattr(version, name) for name in _CONNECTION_FIELDS}
    if present is not None:
        update_connection(connection=present, changes=values, actor=actor, reason=reason, now=now)
        return
    identity = {"connection_id": version.connection_id, "provider": version.provider}
    create_connection(**identity, **values, actor=actor, reason=reason, now=now)


def _present_window(version: Any, *, now: datetime, lock: bool) -> QuotaWindow | None:
    if lock:
        locked(Connection.objects.filter(pk=version.connection_id)).first()
    return QuotaWindow.objects.filter(pk=version.id).first()


def _turn_window(*, version: Any, present: Any | None, actor: Actor, reason: str, now: datetime) -> None:
    changes = {name: getattr(version, name) for name in OPERATOR_FIELDS}
    if present is not None:
        update_window(window=present, changes=changes, actor=actor, reason=reason, now=now)


def _is_mark(version: Any, before: Any | None) -> bool:
    """Tell a window that was marked exhausted: no other act leaves the operator's own part as it was (Q2)."""
    own = (before.is_muted, before.exit_cutoff_percent) if before is not None else (False, None)
    return bool(version.status == _EXHAUSTED and (version.is_muted, version.exit_cutoff_percent) == own)


def _marked(version: Any, before: Any | None) -> str | None:
    return "marked exhausted" if _is_mark(version, before) else None


def _mark(version: Any, before: Any | None) -> Iterator[FieldChange]:
    if _is_mark(version, before):
        yield FieldChange("status", "status", "as it was read", _EXHAUSTED)


# --- what keeps out for a while ----------------------------------------------------------------------------------


def _cooldown_did(version: Any, before: Any | None) -> str | None:
    if version.history_type == "-":
        return "lifted" if version.history_change_reason == LIFTED else "cleared"
    return "set" if version.history_type == "+" else None


def _of_connection(version: Any) -> str:
    found = version.connection
    return f"connection {version.connection_id}" if found is None else str(found)


SETTINGS = Kind(
    key="settings",
    word="settings",
    model=LadderSettings.history.model,
    fields={
        "exit_cutoff_percent": Told("exit cutoff", tell_percent),
        "reentry_min_remaining_percent": Told("re-entry floor", tell_percent),
        "max_reading_age_seconds": Told("maximum age of a reading", tell_seconds),
    },
    name=lambda version: "ladder settings",
    roll_back=RollBack(
        right="settings:write", fields=_SETTINGS_FIELDS, present=_present_settings, turn_back=_turn_settings
    ),
)
BUDGET = Kind(
    key="budget",
    word="budget",
    model=RungBudget.history.model,
    fields={
        "amount_usd": Told("budget", tell_budget),
        "period": Told("window"),
        "week_starts_on": Told("week starts on"),
        "zone": Told("zone"),
        "counted_from": Told("counted from", nothing_is("the start of the window")),
    },
    name=lambda version: f"budget of {version.rung}",
    searched=("rung",),
    did=_reset,
    roll_back=RollBack(
        right="settings:write",
        fields=_BUDGET_FIELDS,
        present=_present_budget,
        turn_back=_turn_budget,
        note="Amount, window and zone come back; a count that was reset is not put back, and the ledger stays.",
    ),
)
CONNECTION = Kind(
    key="connection",
    word="connection",
    model=Connection.history.model,
    fields={
        "connection_id": Told("id"),
        "provider": Told("provider"),
        "auth_type": Told("auth type"),
        "label": Told("label"),
        "is_enabled": Told("enabled"),
        "overage_override": Told("overage override"),
        "overage_override_reason": Told("reason of the override"),
        "excluded_models": Told("excluded models"),
        "deleted_at": Told("deleted", nothing_is("no")),
    },
    name=lambda version: f"{version.provider}/{version.connection_id}",
    searched=("provider", "connection_id", "label"),
    ended="deleted_at",
    owner="id",
    roll_back=RollBack(
        right="connections:write",
        fields=_CONNECTION_FIELDS,
        present=_present_connection,
        turn_back=_turn_connection,
        note="A connection that was deleted is made anew under its id: it inherits nothing, the old one stays in the "
        "books.",
    ),
)
WINDOW = Kind(
    key="window",
    word="quota window",
    model=QuotaWindow.history.model,
    fields={
        "is_muted": Told("muted"),
        "exit_cutoff_percent": Told("cutoff of its own", nothing_is("that of the settings", then=tell_percent)),
    },
    name=lambda version: f"{_of_connection(version)} {version.window}",
    searched=("window", "connection__provider", "connection__connection_id"),
    related=("connection",),
    at_first={"is_muted": False, "exit_cutoff_percent": None},
    owner="connection_id",
    did=_marked,
    more=_mark,
    roll_back=RollBack(
        right="connections:write",
        fields=OPERATOR_FIELDS,
        present=_present_window,
        turn_back=_turn_window,
        needs_row=True,
        note="What was read is not put back: a mark stands until a newer reading or the reset.",
    ),
)
COOLDOWN = Kind(
    key="cooldown",
    word="cooldown",
    model=Cooldown.history.model,
    fields={
        "model": Told("model", nothing_is("every model")),
        "cause": Told("cause"),
        "asked_until": Told("asked until", nothing_is("cleared")),
        "effective_until": Told("effective until", nothing_is("cleared")),
        "set_by": Told("set by"),
        "origin": Told("from"),
        "reported_at": Told("reported"),
        "failure_count": Told("failures"),
    },
    name=lambda version: f"{_of_connection(version)} {version.cause}",
    searched=("cause", "model", "connection__provider", "connection__connection_id"),
    related=("connection",),
    owner="connection_id",
    did=_cooldown_did,
    kept="A cooldown is not rolled back: it is cleared, or set anew, on the page of its connection.",
)
BREAKER = Kind(
    key="breaker",
    word="breaker",
    model=Breaker.history.model,
    fields={
        "open_until": Told("open until", nothing_is("closed")),
        "reported_at": Told("reported"),
    },
    name=lambda version: f"breaker of {version.provider}",
    searched=("provider",),
    kept="A breaker is not rolled back: routers report it, and an operator may close it.",
)
