"""How fast a quota window is being used up: its life, its even pace, and where the pace so far leads (SPEC 5, 2).

A window's life runs from its start, with 100 percent left, to its reset. Even pace is the straight line from there to
nothing left at the reset. The pace so far is the straight line from the start to the newest reading, and what comes
after it goes on with that. Nothing here decides anything: verdicts are those of ladder.core.quota.

Percent is percent remaining. Shares of time are worked out from whole microseconds.
"""

import calendar
import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from decimal import ROUND_CEILING, Decimal
from enum import StrEnum

import msgspec

from ladder.core.instants import TICK

FULL = Decimal(100)
_UNITS = {
    "m": 60,
    "min": 60,
    "h": 3600,
    "hour": 3600,
    "hours": 3600,
    "d": 86400,
    "day": 86400,
    "days": 86400,
    "w": 604800,
}
_WORDS = {"hourly": 3600, "daily": 86400, "weekly": 604800}
_COUNTED = re.compile(r"([1-9][0-9]{0,3})[ _-]?([a-z]+)")
_MONTHLY = "monthly"
_JANUARY, _DECEMBER = 1, 12


class Basis(StrEnum):
    """Where the length of a window is known from."""

    NAME = "name"
    READINGS = "readings"


class Point(msgspec.Struct, frozen=True):
    """One reading of a window: percent remaining, and the reset that it spoke of."""

    at: datetime
    left: Decimal
    reset_at: datetime | None = None


class Life(msgspec.Struct, frozen=True):
    """From when to when a window lasts, and where its length is known from."""

    started_at: datetime
    reset_at: datetime
    basis: Basis


class Pace(msgspec.Struct, frozen=True):
    """How a window's use compares with even pace at its newest reading, and where it leads.

    `even_left` is what even pace would leave then; `ahead` is how much more than that is used, negative where less.
    `cutoff_at` is when the pace so far reaches the cutoff, None where the reset comes first; `left_at_reset` is what
    that pace leaves at the reset, never below the cutoff line where that is reached.
    """

    even_left: Decimal
    ahead: Decimal
    cutoff_at: datetime | None
    left_at_reset: Decimal


def start_by_name(*, window: str, reset_at: datetime) -> datetime | None:
    """Return when a window that resets then began, by its name; None where the name tells no length.

    `5h`, `7d`, `daily`, `weekly:opus`: what stands before a colon counts. `monthly` began a calendar month before.
    """
    name = window.partition(":")[0].strip().lower()
    if name == _MONTHLY:
        return _month_before(reset_at)
    seconds = _WORDS.get(name) or _counted_seconds(name)
    try:
        return reset_at - timedelta(seconds=seconds) if seconds else None
    except OverflowError:
        return None


def _counted_seconds(name: str) -> int:
    match = _COUNTED.fullmatch(name)
    return int(match[1]) * _UNITS.get(match[2], 0) if match else 0


def _month_before(at: datetime) -> datetime | None:
    year, month = (at.year - 1, _DECEMBER) if at.month == _JANUARY else (at.year, at.month - 1)
    if year < 1:
        return None
    return at.replace(year=year, month=month, day=min(at.day, calendar.monthrange(year, month)[1]))


def life_of(*, window: str, reset_at: datetime | None, earlier_reset_at: datetime | None) -> Life | None:
    """Return the life of a window by its name, else since the reset before, which its readings told of.

    `earlier_reset_at` is the latest reset that has passed. None where nothing tells the length.
    """
    if reset_at is None:
        return None
    named = start_by_name(window=window, reset_at=reset_at)
    if named is not None:
        return Life(named, reset_at, Basis.NAME)
    if earlier_reset_at is not None and earlier_reset_at < reset_at:
        return Life(earlier_reset_at, reset_at, Basis.READINGS)
    return None


def points_within(*, points: Iterable[Point], life: Life, now: datetime) -> list[Point]:
    """Return, in order of time, the readings of this life of the window: those of the one before are left out."""
    return sorted(
        (one for one in points if life.started_at <= one.at <= min(now, life.reset_at)), key=lambda one: one.at
    )


def even_left(*, life: Life, at: datetime) -> Decimal:
    """Return what even pace leaves at an instant, 100 at the start and 0 at the reset."""
    return FULL * _micros(life.reset_at - min(max(at, life.started_at), life.reset_at)) / _length(life)


def pace_of(*, life: Life, newest: Point, cutoff: Decimal, now: datetime) -> Pace | None:
    """Return the pace at the newest reading; None where it belongs to another life, or the reset has passed."""
    if not (life.started_at < newest.at < life.reset_at) or life.reset_at <= now:
        return None
    even = even_left(life=life, at=newest.at)
    return Pace(
        even_left=even,
        ahead=even - newest.left,
        cutoff_at=_cutoff_at(life=life, newest=newest, cutoff=cutoff),
        left_at_reset=max(Decimal(0), _left_at_reset(life=life, newest=newest)),
    )


def _cutoff_at(*, life: Life, newest: Point, cutoff: Decimal) -> datetime | None:
    """Return when the pace so far reaches the cutoff, to the microsecond rounded up; None where not in this life."""
    used, room = FULL - newest.left, newest.left - cutoff
    if used <= 0 or room <= 0:
        return None
    micros = (room * _micros(newest.at - life.started_at) / used).to_integral_value(ROUND_CEILING)
    if micros >= _micros(life.reset_at - newest.at):
        return None
    return newest.at + int(micros) * TICK


def _left_at_reset(*, life: Life, newest: Point) -> Decimal:
    used, passed = FULL - newest.left, _micros(newest.at - life.started_at)
    return newest.left - used * _micros(life.reset_at - newest.at) / passed


def share_of_life(*, life: Life, at: datetime) -> Decimal:
    """Return how much of a life is over at an instant: 0 at the start, 1 at the reset, never outside."""
    return _micros(min(max(at, life.started_at), life.reset_at) - life.started_at) / _length(life)


def ticks_of(*, life: Life, until: datetime, count: int) -> list[datetime]:
    """Return `count` instants that cut the life up to `until` into even parts, the last of them `until` itself.

    The newest reading at or before each of them draws the same line as all readings would, at the width of a screen.
    """
    whole = min(until, life.reset_at) - life.started_at
    if whole <= timedelta(0):
        return []
    return [life.started_at + whole * number // count for number in range(1, count)] + [life.started_at + whole]


def thin_points(*, points: Sequence[Point], at_most: int) -> list[Point]:
    """Return at most so many of the points, evenly chosen, always with the first and the last."""
    if len(points) <= at_most:
        return list(points)
    step = Decimal(len(points) - 1) / (at_most - 1)
    return [points[int(step * number)] for number in range(at_most - 1)] + [points[-1]]


def _length(life: Life) -> Decimal:
    return _micros(life.reset_at - life.started_at)


def _micros(span: timedelta) -> Decimal:
    return Decimal(span // TICK)
