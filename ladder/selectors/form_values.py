"""What a form of the connection page shows when it is opened, as texts: compared again when it is sent (SPEC 5).

Where windows and cooldowns were read along with the connection, nothing is asked of the database.
"""

from datetime import datetime
from typing import Any

import msgspec

from ladder.models import Connection, Cooldown, QuotaWindow
from omniroute_admin.common.core.screen import iso_text
from omniroute_admin.common.core.words import percent_text

UNTIL_CLEARED = "until cleared"


def connection_values(row: Connection) -> dict[str, str]:
    """Return the fields of a connection that an operator changes."""
    return {
        "is_enabled": _yes(row.is_enabled),
        "overage_override": row.overage_override or "",
        "label": row.label,
        "auth_type": row.auth_type or "",
        "excluded_models": "\n".join(row.excluded_models),
    }


def cooldown_values(row: Connection) -> dict[str, str]:
    """Return until when each cooldown of a connection acts, by its key."""
    ends = {str(one.pk): one.effective_until for one in sorted(row.cooldowns.all(), key=lambda one: one.pk)}
    return {key: iso_text(until) if until else UNTIL_CLEARED for key, until in ends.items()}


def muted_values(row: Connection) -> dict[str, str]:
    """Return whether each window is muted."""
    return {one.window: _yes(one.is_muted) for one in windows_of(row)}


def cutoff_values(row: Connection) -> dict[str, str]:
    """Return the cutoff that each window has of its own, empty: that of the settings."""
    return {one.window: percent_number(one.exit_cutoff_percent) for one in windows_of(row)}


def percent_number(value: Any) -> str:
    """Return a percentage as a form shows it: a number without empty decimals; empty for none."""
    return "" if value is None else percent_text(value).removesuffix(" %")


def status_values(row: Connection) -> dict[str, str]:
    """Return what was said last of each window that counts."""
    return {one.window: one.status for one in windows_of(row) if one.is_reported and not one.is_muted}


def windows_of(row: Connection) -> list[QuotaWindow]:
    """Return the windows of a connection by name; no query where they were read along with it."""
    return sorted(row.windows.all(), key=lambda one: one.window)


def _yes(value: bool) -> str:
    return "yes" if value else "no"


class LastChange(msgspec.Struct, frozen=True):
    """Who changed something last, when, and why."""

    who: str
    at: datetime
    reason: str


def last_change_of_connection(row: Connection) -> LastChange | None:
    """Return the last change of a connection's own fields."""
    return _last(Connection.history.filter(id=row.pk))


def last_change_of_window(row: Connection, *, window: str) -> LastChange | None:
    """Return the last act on a window."""
    return _last(QuotaWindow.history.filter(connection_id=row.pk, window=window))


def last_change_of_cooldown(key: str) -> LastChange | None:
    """Return the last change of a cooldown, its end included."""
    return _last(Cooldown.history.filter(id=int(key)))


def _last(rows: Any) -> LastChange | None:
    found = rows.order_by("-history_id").first()
    if found is None:
        return None
    return LastChange(found.history_actor, found.history_date, found.history_change_reason or "")
