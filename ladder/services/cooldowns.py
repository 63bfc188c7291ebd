"""Set, lift and clear cooldowns (C2, C3, C5)."""

from collections.abc import Collection
from datetime import datetime
from typing import Any

import msgspec
from django.db.models import Q

from ladder.core.cooldown import later
from ladder.core.quota import counting_windows, judge_windows
from ladder.core.timeline.causes import Cause
from ladder.core.values import CooldownCause, LadderSettings, QuotaVerdict, Window
from ladder.mapping import to_settings, window_of
from ladder.models import Connection, Cooldown, QuotaWindow
from ladder.models import LadderSettings as LadderSettingsRow
from ladder.selectors.held import held_windows
from ladder.services.live_connections import locked
from ladder.services.trail import remember_accounts
from omniroute_admin.common.history import Actor, stamp
from omniroute_admin.common.selectors.compiled import Compiled
from omniroute_admin.common.services.revision import deciding_write
from omniroute_admin.common.services.statements import delete_many, write_history

LIFTED = "lifted: readings newer than the report say usable"
"""Reason of the history where readings and not an operator ended a cooldown (C3)."""


class CooldownReport(msgspec.Struct, frozen=True, kw_only=True):
    """What one report says of a cooldown: the two ends (None: until cleared), by whom, in words, and when (C2)."""

    asked_until: datetime | None
    effective_until: datetime | None
    set_by: str
    origin: str
    reported_at: datetime
    failure_count: int


def set_cooldown(
    *,
    connection: Connection,
    model: str | None,
    cause: CooldownCause,
    asked_until: datetime | None,
    effective_until: datetime | None,
    set_by: str,
    origin: str,
    reported_at: datetime,
    failure_count: int,
    actor: Actor,
    reason: str,
    now: datetime,
) -> Cooldown:
    """Set the cooldown of a connection (or of one model of it) for one cause, and return the one that is kept.

    One that still acts is extended by a longer one and not shortened by a shorter one (C5); one that is over is
    replaced. `effective_until` is the end after the clamp (C1), `asked_until` the one before it; None is "until
    cleared". Said twice, the second changes nothing.
    """
    with deciding_write() as write:
        locked(Connection.objects.filter(pk=connection.pk)).get()
        report = CooldownReport(
            asked_until=asked_until,
            effective_until=effective_until,
            set_by=set_by,
            origin=origin,
            reported_at=reported_at,
            failure_count=failure_count,
        )
        kept = Cooldown.objects.filter(connection=connection, model=model, cause=cause).first()
        if kept is None:
            kept = Cooldown(connection=connection, model=model, cause=cause)
            changes = msgspec.structs.asdict(report)
        else:
            changes = changes_of(kept=kept, report=report, now=now)
        write.changed, write.touched = bool(changes), [connection.pk]
        if changes:
            why = Cause.OPERATOR if cause is CooldownCause.OPERATOR else Cause.COOLDOWN
            remember_accounts(keys=[connection.pk], cause=why, now=now)
            _save(kept, changes, actor=actor, reason=reason, now=now)
        return kept


def clear_cooldowns(
    *, connection: Connection, causes: Collection[CooldownCause] | None, actor: Actor, reason: str, now: datetime
) -> int:
    """Clear the cooldowns of a connection, of these causes or of every one (None), and return how many (C3).

    An operator's act: it is history.
    """
    with deciding_write() as write:
        locked(Connection.objects.filter(pk=connection.pk)).get()
        rows = Cooldown.objects.filter(connection=connection)
        cleared = list(rows if causes is None else rows.filter(cause__in=[cause.value for cause in causes]))
        _delete(cleared, cause=Cause.OPERATOR, actor=actor, reason=reason, now=now)
        write.changed, write.touched = bool(cleared), [connection.pk]
    return len(cleared)


def clear_cooldown(*, cooldown: Cooldown, actor: Actor, reason: str, now: datetime) -> None:
    """Clear one cooldown; one that is gone already stays gone. An operator's act: it is history (C3)."""
    with deciding_write() as write:
        locked(Connection.objects.filter(pk=cooldown.connection_id)).get()
        kept = list(Cooldown.objects.filter(pk=cooldown.pk))
        _delete(kept, cause=Cause.OPERATOR, actor=actor, reason=reason, now=now)
        write.changed, write.touched = bool(kept), [cooldown.connection_id]


def lift_quota_cooldowns(*, connection_keys: Collection[int], actor: Actor, now: datetime) -> int:
    """Lift cooldowns with cause `quota` that newer readings overtake, and return how many (C3).

    The windows that count for the cooldown's model must be usable together by readings newer than the report alone. A
    cooldown of every model asks the windows that count for every model, or, where there is none, all of them.
    """
    if not _ABOUT_QUOTA.rows(list(connection_keys)):
        return 0
    acting = Q(effective_until__isnull=True) | Q(effective_until__gt=now)
    rows = Cooldown.objects.filter(acting, connection__in=connection_keys, cause=CooldownCause.QUOTA)
    cooldowns = list(rows.order_by("id"))
    if not cooldowns:
        return 0
    with deciding_write() as write:
        settings = to_settings(LadderSettingsRow.objects.get(pk=1))
        keys = {cooldown.connection_id for cooldown in cooldowns}
        windows = read_windows(connection_keys=keys, settings=settings)
        lifted = [
            one
            for one in cooldowns
            if is_overtaken(
                model=one.model,
                reported_at=one.reported_at,
                windows=windows.get(one.connection_id, []),
                settings=settings,
                now=now,
            )
        ]
        _delete(lifted, cause=Cause.READING, actor=actor, reason=LIFTED, now=now)
        write.changed = bool(lifted)
    return len(lifted)


_ABOUT_QUOTA = Compiled(
    lambda keys: Cooldown.objects.filter(connection__in=keys, cause=CooldownCause.QUOTA).order_by().values_list("pk")
)


def is_over(*, until: datetime | None, now: datetime) -> bool:
    """Tell whether a cooldown that ends then acts no more; None is "until cleared"."""
    return until is not None and until <= now


def changes_of(*, kept: Cooldown, report: CooldownReport, now: datetime) -> dict[str, Any]:
    """Return what a further report changes of a cooldown (C5).

    The longer end stands, with what is told of the report that asked for it; the newest report counts as the last one.
    In whatever order a set of reports comes, the same ends come of it.
    """
    wanted: dict[str, Any] = {}
    effective = later(kept.effective_until, report.effective_until)
    was_over = is_over(until=kept.effective_until, now=now)
    if effective != kept.effective_until:
        wanted |= {"effective_until": effective, "set_by": report.set_by, "origin": report.origin}
        wanted["asked_until"] = report.asked_until if was_over else later(kept.asked_until, report.asked_until)
    elif not was_over:
        wanted["asked_until"] = later(kept.asked_until, report.asked_until)
    if report.reported_at >= kept.reported_at:
        wanted |= {"reported_at": report.reported_at, "failure_count": report.failure_count}
    return {name: value for name, value in wanted.items() if value != getattr(kept, name)}


def _save(row: Cooldown, changes: dict[str, Any], *, actor: Actor, reason: str, now: datetime) -> None:
    for name, value in changes.items():
        setattr(row, name, value)
    stamp(instance=row, actor=actor, reason=reason, now=now)
    row.save()


def _delete(rows: Collection[Cooldown], *, cause: Cause, actor: Actor, reason: str, now: datetime) -> None:
    """Delete rows with their history; a constant number of statements, however many there are."""
    remember_accounts(keys={row.connection_id for row in rows}, cause=cause, now=now)
    write_history(model=Cooldown, rows=rows, kind="-", actor=actor, reason=reason, now=now)
    delete_many(model=Cooldown, ids=[row.pk for row in rows])


def read_windows(*, connection_keys: Collection[int], settings: LadderSettings) -> dict[int, list[Window]]:
    """Return the windows of connections with their held state; two queries."""
    rows = list(QuotaWindow.objects.filter(connection__in=connection_keys).order_by("id"))
    held = held_windows(settings=settings, window_ids=[row.pk for row in rows])
    found: dict[int, list[Window]] = {}
    for row in rows:
        found.setdefault(row.connection_id, []).append(window_of(row, is_held=row.pk in held))
    return found


def is_overtaken(
    *, model: str | None, reported_at: datetime, windows: list[Window], settings: LadderSettings, now: datetime
) -> bool:
    """Tell whether readings newer than a report about quota say by themselves that its windows are usable (C3)."""
    counting = [_as_seen_after(reported_at, one) for one in _counting_for(model, windows)]
    return judge_windows(windows=counting, settings=settings, now=now).verdict is QuotaVerdict.USABLE


def _as_seen_after(reported_at: datetime, window: Window) -> Window:
    """Return the window as readings newer than the report know it: an older reading is none."""
    if window.observed_at is not None and window.observed_at > reported_at:
        return window
    return msgspec.structs.replace(window, observed_at=None)


def _counting_for(model: str | None, windows: list[Window]) -> tuple[Window, ...]:
    if model is not None:
        return counting_windows(windows=windows, model=model)
    reported = tuple(window for window in windows if window.is_reported and not window.is_muted)
    return tuple(window for window in reported if window.model is None) or reported
