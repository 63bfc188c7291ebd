"""How often readings arrive: counting them for less long leaves `subscription` empty most of the time (Settings)."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median_low

FEWEST = 3
"""So many gaps are needed before any of them is called usual."""


def usual_gap(windows: Iterable[Sequence[datetime]]) -> timedelta | None:
    """Return the usual gap between two readings of one window: the median; None where there are fewer than FEWEST.

    Each window gives the instants of its readings, in any order.
    """
    gaps = [
        later - earlier
        for instants in windows
        for ordered in (sorted(instants),)
        for earlier, later in pairwise(ordered)
    ]
    return median_low(gaps) if len(gaps) >= FEWEST else None
