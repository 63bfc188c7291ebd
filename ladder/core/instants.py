"""When an answer changes by itself (P9)."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import TypeVar

T = TypeVar("T")

NEVER = datetime.max.replace(tzinfo=UTC)
"""Stands for "no later instant" inside the core, so that instants compare without asking for None."""

TICK = timedelta(microseconds=1)
"""The grain of time: instants are whole microseconds (SPEC 1)."""


def settle(*, decide: Callable[[datetime], T], instants: Iterable[datetime], now: datetime) -> tuple[T, datetime]:
    """Return what `decide` says now, and the first of `instants` after now at which it says something else.

    `instants` are all those at which it could; NEVER where none of them changes anything.
    """
    present = decide(now)
    later = {instant for instant in instants if instant > now}
    for instant in sorted(later):
        if decide(instant) != present:
            return present, instant
    return present, NEVER


def shift(instant: datetime, delta: timedelta) -> datetime:
    """Return the sum, or NEVER where the calendar ends before it."""
    try:
        return instant + delta
    except OverflowError:
        return NEVER
