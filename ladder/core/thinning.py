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
    lowest: Decimal | None = None
    highest: Decimal | None = None
    hour: datetime | None = None
    gone: list[int] = []
    for one in newest_first:
        level, its_hour = one.level, one.observed_at.replace(minute=0, second=0, microsecond=0)
        is_lower = level is not None and (lowest is None or level < lowest)
        is_higher = level is not None and (highest is None or level > highest)
        if not is_lower and not is_higher and its_hour == hour:
            gone.append(one.id)
        lowest = level if is_lower else lowest
        highest = level if is_higher else highest
        hour = its_hour
    return gone
