"""How the readings of the demo fleet move: functions of the instant alone, so that every process tells the same.

A window runs through a cycle of stretches, again and again since the epoch: used up bit by bit, back at its reset.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import ROUND_FLOOR, Decimal

import msgspec

from ladder.core.values import CooldownCause

STEP = timedelta(seconds=10)
"""The grain of the movement: a message delivered twice within one step has one effect."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = timedelta(seconds=1)
_CENT = Decimal("0.01")


class Stretch(msgspec.Struct, frozen=True):
    """A part of a cycle: percent remaining goes in a straight line from `start` to `end`.

    Both None: the reporter says "unknown". Not read: the reporter says nothing of the whole connection.
    """

    seconds: int
    start: Decimal | None
    end: Decimal | None
    is_read: bool = True


class DemoWindow(msgspec.Struct, frozen=True, kw_only=True):
    """A quota window of the demo fleet; `shift` is the seconds after the epoch at which a cycle began."""

    window: str
    stretches: tuple[Stretch, ...]
    shift: int = 0
    model: str | None = None
    resets: bool = True

    @property
    def cycle(self) -> int:
        """Return the length of the cycle in seconds."""
        return sum(stretch.seconds for stretch in self.stretches)


class DemoRest(msgspec.Struct, frozen=True, kw_only=True):
    """A cooldown that comes back in every cycle, `after` seconds into it; all in seconds.

    With `clamped` the quota behind it resets at the end of the cycle, where the cooldown is cut (C1).
    """

    cause: CooldownCause
    cycle: int
    after: int
    asks: int
    clamped: bool = False


class DemoConnection(msgspec.Struct, frozen=True, kw_only=True):
    """A connection of the demo fleet; `read_once` are windows (percent) that are read at the start and never again."""

    connection_id: str
    provider: str
    auth_type: str
    label: str
    windows: tuple[DemoWindow, ...] = ()
    read_once: tuple[tuple[str, Decimal], ...] = ()
    rests: tuple[DemoRest, ...] = ()


class DemoReading(msgspec.Struct, frozen=True, kw_only=True):
    """What the demo's reporter sees of a window; `remaining_percent` None is "unknown"."""

    connection_id: str
    window: str
    observed_at: datetime
    remaining_percent: Decimal | None
    reset_at: datetime | None
    model: str | None


class DemoCooldown(msgspec.Struct, frozen=True, kw_only=True):
    """A cooldown that the demo's router reports; it is asked until, and acts until (C2)."""

    connection_id: str
    cause: CooldownCause
    reported_at: datetime
    asked_until: datetime
    effective_until: datetime


def readings_at(*, fleet: Iterable[DemoConnection], instant: datetime) -> list[DemoReading]:
    """Return what is seen of the fleet at the step of an instant; a connection is seen whole or not at all."""
    observed_at = step_of(instant)
    return [
        reading
        for connection in fleet
        if all(_stretch_at(window, observed_at)[0].is_read for window in connection.windows)
        for reading in (_read(connection, window, observed_at) for window in connection.windows)
    ]


def first_readings(*, fleet: Iterable[DemoConnection], observed_at: datetime) -> list[DemoReading]:
    """Return what is read at the start and never again."""
    return [
        DemoReading(
            connection_id=connection.connection_id,
            window=window,
            observed_at=observed_at,
            remaining_percent=percent,
            reset_at=None,
            model=None,
        )
        for connection in fleet
        for window, percent in connection.read_once
    ]


def cooldowns_at(*, fleet: Iterable[DemoConnection], instant: datetime, within: timedelta) -> list[DemoCooldown]:
    """Return the cooldowns reported at most `within` before an instant.

    Only the fresh ones: a cooldown that an operator clears stays cleared until the next cycle.
    """
    found = [_rest(connection, rest, instant) for connection in fleet for rest in connection.rests]
    return [one for one in found if timedelta(0) <= instant - one.reported_at < within]


def step_of(instant: datetime) -> datetime:
    """Return the beginning of the step in which an instant lies."""
    return instant - (instant - _EPOCH) % STEP


def _rest(connection: DemoConnection, rest: DemoRest, instant: datetime) -> DemoCooldown:
    began_at = instant - (instant - _EPOCH) % (rest.cycle * _SECOND)
    reported_at = began_at + rest.after * _SECOND
    asked_until = reported_at + rest.asks * _SECOND
    ends_at = began_at + rest.cycle * _SECOND
    return DemoCooldown(
        connection_id=connection.connection_id,
        cause=rest.cause,
        reported_at=reported_at,
        asked_until=asked_until,
        effective_until=min(asked_until, ends_at) if rest.clamped else asked_until,
    )


def _read(connection: DemoConnection, window: DemoWindow, observed_at: datetime) -> DemoReading:
    stretch, into = _stretch_at(window, observed_at)
    return DemoReading(
        connection_id=connection.connection_id,
        window=window.window,
        observed_at=observed_at,
        remaining_percent=_percent(stretch, into),
        reset_at=_reset_at(window, observed_at) if window.resets else None,
        model=window.model,
    )


def _stretch_at(window: DemoWindow, instant: datetime) -> tuple[Stretch, int]:
    """Return the stretch of an instant and the whole seconds that have passed in it."""
    into = _into_cycle(window, instant) // _SECOND
    for stretch in window.stretches:
        if into < stretch.seconds:
            return stretch, into
        into -= stretch.seconds
    raise ValueError(f"the window {window.window} has no stretch")


def _reset_at(window: DemoWindow, instant: datetime) -> datetime:
    return instant - _into_cycle(window, instant) + window.cycle * _SECOND


def _into_cycle(window: DemoWindow, instant: datetime) -> timedelta:
    return (instant - _EPOCH - window.shift * _SECOND) % (window.cycle * _SECOND)


def _percent(stretch: Stretch, into: int) -> Decimal | None:
    if stretch.start is None or stretch.end is None:
        return None
    gone = (stretch.end - stretch.start) * into / stretch.seconds
    return (stretch.start + gone).quantize(_CENT, rounding=ROUND_FLOOR)
