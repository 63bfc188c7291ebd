"""Set, lift and clear cooldowns (C2, C3, C5)."""

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any

import msgspec
from django.db.models import Q

from ladder.core.cooldown import later
from ladder.core.quota import counting_windows, judge_windows
from ladder.core.values import CooldownCause, LadderSettings, QuotaVerdict, Window
from ladder.mapping import to_settings, window_of
from ladder.models import Connection, Cooldown, QuotaWindow
from ladder.models import LadderSettings as LadderSettingsRow
from ladder.selectors.held import held_windows
from ladder.services.live_connections import locked
from omniroute_admin.common.history import Actor, stamp
from omniroute_admin.common.services.revision import deciding_write


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
        said: dict[str, Any] = {
            "asked_until": asked_until,
            "effective_until": effective_until,
            "set_by": set_by,
            "origin": origin,
            "reported_at": reported_at,
            "failure_count": failure_count,
        }
        kept = Cooldown.objects.filter(connection=connection, model=model, cause=cause).first()
        if kept is None:
            kept = Cooldown(connection=connection, model=model, cause=cause, **said)
            changes = said
        else:
            changes = _changes(kept, said, now)
        write.changed = bool(changes)
        if changes:
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
        _delete(cleared, actor=actor, reason=reason, now=now)
        write.changed = bool(cleared)
    return len(cleared)


def clear_cooldown(*, cooldown: Cooldown, actor: Actor, reason: str, now: datetime) -> None:
    """Clear one cooldown; one that is gone already stays gone. An operator's act: it is history (C3)."""
    with deciding_write() as write:
        locked(Connection.objects.filter(pk=cooldown.connection_id)).get()
        kept = list(Cooldown.objects.filter(pk=cooldown.pk))
        _delete(kept, actor=actor, reason=reason, now=now)
        write.changed = bool(kept)


def lift_quota_cooldowns(*, connection_keys: Collection[int], actor: Actor, now: datetime) -> int:
    """Lift cooldowns with cause `quota` that newer readings overtake, and return how many (C3).

    The windows that count for the cooldown's model must be usable together by readings newer than the report alone. A
    cooldown of every model asks the windows that count for every model, or, where there is none, all of them.
    """
    acting = Q(effective_until__isnull=True) | Q(effective_until__gt=now)
    rows = Cooldown.objects.filter(acting, connection__in=connection_keys, cause=CooldownCause.QUOTA)
    cooldowns = list(rows.order_by("id"))
    if not cooldowns:
        return 0
    with deciding_write() as write:
        settings = to_settings(LadderSettingsRow.objects.get(pk=1))
        windows = _windows_of({cooldown.connection_id for cooldown in cooldowns}, settings)
        lifted = [one for one in cooldowns if _is_overtaken(one, windows.get(one.connection_id, []), settings, now)]
        _delete(lifted, actor=actor, reason="lifted: readings newer than the report say usable", now=now)
        write.changed = bool(lifted)
    return len(lifted)


def _changes(kept: Cooldown, said: dict[str, Any], now: datetime) -> dict[str, Any]:
    """Return what a further report changes of a cooldown."""
    if kept.effective_until is not None and kept.effective_until <= now:
        wanted = dict(said)
    else:
        effective = later(kept.effective_until, said["effective_until"])
        wanted = dict(said) if effective != kept.effective_until else {"failure_count": said["failure_count"]}
        wanted["asked_until"] = later(kept.asked_until, said["asked_until"])
        wanted["effective_until"] = effective
        wanted["reported_at"] = max(kept.reported_at, said["reported_at"])
    return {name: value for name, value in wanted.items() if value != getattr(kept, name)}


def _save(row: Cooldown, changes: dict[str, Any], *, actor: Actor, reason: str, now: datetime) -> None:
    for name, value in changes.items():
        setattr(row, name, value)
    stamp(instance=row, actor=actor, reason=reason, now=now)
    row.save()


def _delete(rows: Iterable[Cooldown], *, actor: Actor, reason: str, now: datetime) -> None:
    for row in rows:
        stamp(instance=row, actor=actor, reason=reason, now=now)
        row.delete()


def _windows_of(connection_keys: Collection[int], settings: LadderSettings) -> dict[int, list[Window]]:
    rows = list(QuotaWindow.objects.filter(connection__in=connection_keys).order_by("id"))
    held = held_windows(settings=settings, window_ids=[row.pk for row in rows])
    found: dict[int, list[Window]] = {}
    for row in rows:
        found.setdefault(row.connection_id, []).append(window_of(row, is_held=row.pk in held))
    return found


def _is_overtaken(cooldown: Cooldown, windows: list[Window], settings: LadderSettings, now: datetime) -> bool:
    counting = [_as_seen_after(cooldown.reported_at, one) for one in _counting_for(cooldown.model, windows)]
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
