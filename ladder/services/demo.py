"""Start, move and stop the demo fleet: a few simulated connections beside whatever else there is."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from billing_catalog.models import ProviderAlias
from ladder.core.demo.fleet import FLEET
from ladder.core.demo.moves import DemoConnection, DemoReading, cooldowns_at, first_readings, readings_at
from ladder.core.timeline.causes import Cause
from ladder.core.values import ReadingStatus
from ladder.models import Connection, QuotaWindow
from ladder.selectors.demo import DEMO, demo_connections
from ladder.services.connections import create_connection, delete_connection
from ladder.services.cooldowns import clear_cooldowns, set_cooldown
from ladder.services.live_connections import locked
from ladder.services.reading_items import ReadingItem, reading_item
from ladder.services.readings import record_readings
from ladder.services.trail import remember_accounts
from omniroute_admin.common.core.names import NOAUTH, canonical_provider
from omniroute_admin.common.history import stamp
from omniroute_admin.common.services.revision import deciding_write

_ORIGIN = "demo: a simulated report"
_STARTED, _STOPPED = "the demo was started", "the demo was stopped"
# Old enough to be seen going stale within a minute or so, at the maximum age as shipped.
_READ_BEFORE_START = timedelta(seconds=120)
# Longer than the time between two moves, so that no cooldown falls between them.
_FRESH = timedelta(seconds=50)


class DemoChange(msgspec.Struct, frozen=True):
    """What a start does, by provider/id: made, there already, or left alone since one of that id is not the demo's."""

    made: tuple[str, ...]
    kept: tuple[str, ...]
    foreign: tuple[str, ...]


def start_demo(*, now: datetime, dry_run: bool = False) -> DemoChange:
    """Make what is missing of the demo fleet and let it be read for the first time; `dry_run` writes nothing.

    A connection of the same id that someone else made is left alone. Said twice, the second changes nothing.
    """
    with deciding_write() as write:
        missing, kept, foreign = _sort_out()
        write.changed = bool(missing) and not dry_run
        if write.changed:
            for one in missing:
                _make(one, now)
            _record(first_readings(fleet=missing, observed_at=now - _READ_BEFORE_START), now)
            move_demo(now=now)
    return DemoChange(*(tuple(map(_name, ones)) for ones in (missing, kept, foreign)))


def move_demo(*, now: datetime) -> int:
    """Read the demo fleet as it is now and return how many readings were new; 0 where there is no fleet.

    Said twice for one instant, the second changes nothing.
    """
    if not demo_connections().exists():
        return 0
    with deciding_write() as write:
        # Locked, so that none of them can be stopped and its id taken by someone else while this goes on.
        rows = {(row.provider, row.connection_id): row for row in locked(demo_connections())}
        fleet = [one for one in _fleet() if _key(one) in rows]
        by_id = {one.connection_id: rows[_key(one)] for one in fleet}
        new = _record(readings_at(fleet=fleet, instant=now), now)
        reported = cooldowns_at(fleet=fleet, instant=now, within=_FRESH)
        for cooldown in reported:
            set_cooldown(
                connection=by_id[cooldown.connection_id],
                model=None,
                cause=cooldown.cause,
                asked_until=cooldown.asked_until,
                effective_until=cooldown.effective_until,
                set_by="demo",
                origin=_ORIGIN,
                reported_at=cooldown.reported_at,
                failure_count=1,
                actor=DEMO,
                reason=_ORIGIN,
                now=now,
            )
        write.changed = bool(new or reported)
    return new


def stop_demo(*, now: datetime, dry_run: bool = False) -> tuple[str, ...]:
    """Take the whole demo fleet out of routing and return it by provider/id; `dry_run` writes nothing.

    The connections are deleted as any other: out of routing, not out of the books (SPEC 3). Their simulated windows,
    readings and cooldowns, which measured nothing, are deleted for good. Said twice, the second changes nothing.
    """
    with deciding_write() as write:
        rows = list(locked(demo_connections()))
        write.changed = bool(rows) and not dry_run
        if write.changed:
            for row in rows:
                _remove(row, now)
    return tuple(map(str, rows))


def _sort_out() -> tuple[list[DemoConnection], list[DemoConnection], list[DemoConnection]]:
    """Return what of the fleet is missing, what is there, and what cannot be since its id is someone else's."""
    owned = {(row.provider, row.connection_id) for row in demo_connections()}
    live = set(Connection.objects.live().values_list("provider", "connection_id"))
    ids = {connection_id for _, connection_id in live if connection_id != NOAUTH}
    missing, kept, foreign = [], [], []
    for one in _fleet():
        if _key(one) in owned:
            kept.append(one)
        elif one.connection_id in ids or _key(one) in live:
            foreign.append(one)
        else:
            missing.append(one)
    return missing, kept, foreign


def _make(one: DemoConnection, now: datetime) -> None:
    create_connection(
        connection_id=one.connection_id,
        provider=one.provider,
        auth_type=one.auth_type,
        label=one.label,
        actor=DEMO,
        reason=_STARTED,
        now=now,
    )


def _remove(row: Connection, now: datetime) -> None:
    remember_accounts(keys=[row.pk], cause=Cause.OPERATOR, now=now)
    clear_cooldowns(connection=row, causes=None, actor=DEMO, reason=_STOPPED, now=now)
    for window in QuotaWindow.objects.filter(connection=row):
        stamp(instance=window, actor=DEMO, reason=_STOPPED, now=now)
        window.delete()
    delete_connection(connection=row, actor=DEMO, reason=_STOPPED, now=now)


def _record(readings: Sequence[DemoReading], now: datetime) -> int:
    """Record readings, each connection's as all there are of it, and return how many had an effect."""
    complete = sorted({reading.connection_id for reading in readings})
    answer = record_readings(items=[_item(one) for one in readings], complete_for=complete, actor=DEMO, now=now)
    return answer.accepted + answer.superseded


def _item(reading: DemoReading) -> ReadingItem:
    return reading_item(
        connection_id=reading.connection_id,
        window=reading.window,
        observed_at=reading.observed_at,
        remaining_percent=reading.remaining_percent,
        status=ReadingStatus.UNKNOWN if reading.remaining_percent is None else None,
        reset_at=reading.reset_at,
        model=reading.model,
    )


def _fleet() -> list[DemoConnection]:
    """Return the fleet with its providers named as rows name them: an operator may have made one an alias."""
    aliases = dict(ProviderAlias.objects.values_list("alias", "provider"))
    return [
        msgspec.structs.replace(one, provider=canonical_provider(raw=one.provider, aliases=aliases)) for one in FLEET
    ]


def _key(one: DemoConnection) -> tuple[str, str]:
    return one.provider, one.connection_id


def _name(one: DemoConnection) -> str:
    return "/".join(_key(one))
