"""What an operator may do to quota windows: mute one, give it a cutoff of its own (Q6, Q7), mark it exhausted (Q2)."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from ladder.core.timeline.causes import Cause
from ladder.core.values import ReadingStatus
from ladder.models import Connection, QuotaWindow
from ladder.services.live_connections import locked
from ladder.services.reading_items import ReadingItem, reading_item
from ladder.services.readings import BY_HAND, record_readings
from ladder.services.trail import remember_accounts
from omniroute_admin.common.errors import BadRequest, NotFound, field
from omniroute_admin.common.history import Actor, stamp
from omniroute_admin.common.services.revision import deciding_write

OPERATOR_FIELDS = ("is_muted", "exit_cutoff_percent")
_TICK = timedelta(microseconds=1)


def update_window(
    *, window: QuotaWindow, changes: Mapping[str, Any], actor: Actor, reason: str, now: datetime
) -> QuotaWindow:
    """Change `is_muted` and `exit_cutoff_percent` (percent remaining, null: that of the settings) and return the row.

    What telemetry owns stays as it stands in the database; nothing is written where nothing differs.

    Raises:
        ValidationError: the cutoff is no percentage; naming every bad field.
        KeyError: a field that is not the operator's.
    """
    foreign = set(changes).difference(OPERATOR_FIELDS)
    if foreign:
        raise KeyError(f"not the operator's: {', '.join(sorted(foreign))}")
    with deciding_write() as write:
        locked(Connection.objects.filter(pk=window.connection_id)).get()
        row = QuotaWindow.objects.get(pk=window.pk)
        before = {name: getattr(row, name) for name in OPERATOR_FIELDS}
        for name, value in changes.items():
            setattr(row, name, value)
        row.clean_fields(exclude={field.name for field in row._meta.fields if field.name not in OPERATOR_FIELDS})
        write.changed = before != {name: getattr(row, name) for name in OPERATOR_FIELDS}
        write.touched = [row.connection_id]
        if write.changed:
            remember_accounts(keys=[row.connection_id], cause=Cause.OPERATOR, now=now)
            stamp(instance=row, actor=actor, reason=reason, now=now)
            row.save(update_fields=list(OPERATOR_FIELDS))
        return row


def mark_exhausted(
    *,
    connection: Connection,
    window: str | None,
    reset_at: datetime | None,
    actor: Actor,
    reason: str,
    now: datetime,
) -> list[QuotaWindow]:
    """Mark one window of a connection (or, None, all that count) as exhausted and return their rows.

    It is an observation of the operator's (Q2): it stands until a newer reading or the reset. `reset_at` None keeps
    the reset that is known. Where none counts, the window `by hand` is made, which ends with a newer reading of any
    window of the connection. The act is history.

    Raises:
        NotFound: the connection has no window of that name; those it has are named.
        BadRequest: a reset that has passed or is beyond the calendar.
    """
    if reset_at is not None and reset_at <= now:
        raise _refused("reset_at", "The reset has passed already.")
    with deciding_write() as write:
        row = locked(Connection.objects.live().filter(pk=connection.pk)).get()
        write.touched = [row.pk]
        known = {one.window: one for one in row.windows.all()}
        counting = [name for name, one in known.items() if one.is_reported and not one.is_muted]
        if window is not None and window not in known:
            raise _no_window(known)
        names = [window] if window is not None else counting or [BY_HAND]
        items = [_exhausted(row, name, known.get(name), reset_at, now) for name in names]
        answer = record_readings(items=items, complete_for=[], actor=actor, now=now, cause=Cause.OPERATOR)
        for rejected in answer.rejected:
            name, _, detail = rejected.detail.partition(": ")
            raise _refused(name, detail)
        marked = list(row.windows.filter(window__in=names).order_by("window"))
        for one in marked:
            stamp(instance=one, actor=actor, reason=reason, now=now)
            one.save(update_fields=["status"])
        return marked


def _no_window(known: Iterable[str]) -> NotFound:
    names = sorted(known)
    if not names:
        return NotFound("The connection has no windows yet; leave `window` out to mark it all the same.", windows=[])
    return NotFound(f"The connection has no such window. It has: {', '.join(names)}.", windows=names)


def _refused(name: str, detail: str) -> BadRequest:
    return BadRequest("One field is not valid.", errors=[field(name, detail)])


def _exhausted(
    connection: Connection, name: str, known: QuotaWindow | None, reset_at: datetime | None, now: datetime
) -> ReadingItem:
    """Return the operator's observation, as new as the newest there is: of one instant the word counts (SPEC 4).

    It is newer than the list that the window was last missing from, so that it counts.
    """
    told = [] if known is None else [known.observed_at, known.missing_at and known.missing_at + _TICK]
    kept = known.reset_at if known is not None and known.reset_at is not None and known.reset_at > now else None
    return reading_item(
        connection_id=connection.connection_id,
        provider=connection.provider,
        window=name,
        observed_at=max([now, *(one for one in told if one is not None)]),
        status=ReadingStatus.EXHAUSTED,
        reset_at=reset_at or kept,
    )
