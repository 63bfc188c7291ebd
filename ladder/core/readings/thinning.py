"""Which readings of a window's history can go without any verdict, under any settings, coming out differently (Q5)."""

from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal

import msgspec

from ladder.core.values import ReadingStatus

_LOWEST = Decimal(0)
"""Exhausted by the word: out under every exit cutoff, as zero percent is."""

_HIGHEST = Decimal(101)
"""Unlimited: in under every re-entry floor, even that of 100 percent."""


class PastReading(msgspec.Struct, frozen=True):
    """A reading of the history; percent remaining, None where it gave no number."""

    id: int
    observed_at: datetime
    remaining_percent: Decimal | None
    unlimited: bool
    status: ReadingStatus
    reset_at: datetime | None = None

    @property
    def level(self) -> Decimal | None:
        """Return where it stands between out and in; None: it never decides the held state."""
        if self.status is ReadingStatus.EXHAUSTED:
            return _LOWEST
        return _HIGHEST if self.unlimited else self.remaining_percent


def superfluous_readings(*, newest_first: Iterable[PastReading]) -> list[int]:
    """Return the ids of the readings of one window that can go, given all of a certain age.

    Kept are those lower, or higher, than all newer ones: whatever band is set, the newest reading outside it is one of
    them (Q5). Kept is too, for the charts, the newest of every hour.
    """
    reach = _Reach()
    hour: datetime | None = None
    gone: list[int] = []
    for one in newest_first:
        its_hour = one.observed_at.replace(minute=0, second=0, microsecond=0)
        if not any(reach.widen(one.level)) and its_hour == hour:
            gone.append(one.id)
        hour = its_hour
    return gone


NEWEST_KEPT = 6
"""So many of the newest readings of a window tell its usual gap."""


def forgettable_readings(*, newest_first: Iterable[PastReading], before: datetime) -> list[int]:
    """Return the ids of the readings of one window that can go for good, given all older than its present life.

    Kept are those that any verdict may need, as above (Q5), and what a page tells of the past: the newest ones; of each
    that is higher than all newer ones the next one after it, since which the window is used up; and the newest that
    speaks of a reset before any later instant, from which a life is reckoned that no name tells. `before` is the age
    from which on they are old: a reset before it is one before any instant to come.
    """
    reach = _Reach()
    gone: dict[int, None] = {}
    after: int | None = None
    for place, one in enumerate(newest_first):
        is_lower, is_higher = reach.widen(one.level)
        if is_higher and after is not None:
            gone.pop(after, None)
        is_needed = is_lower or is_higher or place < NEWEST_KEPT
        if not reach.tells_reset(one.reset_at, before) and not is_needed:
            gone[one.id] = None
        after = one.id
    return list(gone)


class _Reach:
    """How low and how high the readings went so far, newest first, and of which resets they spoke."""

    def __init__(self) -> None:
        self._lowest: Decimal | None = None
        self._highest: Decimal | None = None
        self._reset: datetime | None = None

    def widen(self, level: Decimal | None) -> tuple[bool, bool]:
        """Take a level in and tell whether it is lower, and whether it is higher, than all before."""
        is_lower = level is not None and (self._lowest is None or level < self._lowest)
        is_higher = level is not None and (self._highest is None or level > self._highest)
        self._lowest = level if is_lower else self._lowest
        self._highest = level if is_higher else self._highest
        return is_lower, is_higher

    def tells_reset(self, reset_at: datetime | None, before: datetime) -> bool:
        """Tell whether a reset is the one that a newest reading before some later instant speaks of."""
        if reset_at is None or (self._reset is not None and (self._reset <= before or reset_at >= self._reset)):
            return False
        self._reset = reset_at
        return True
