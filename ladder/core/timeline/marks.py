"""Marks on the timeline: in which lane something that happened stands, and how many stand together (SPEC 5, 6)."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from enum import StrEnum
from zoneinfo import ZoneInfo

import msgspec

from ladder.core.money import budget_window
from ladder.core.timeline.causes import Cause
from ladder.core.values import Period, Weekday


class Lane(StrEnum):
    """What kind of thing happened."""

    CHANGE = "change"
    RESET = "reset"
    SETTING = "setting"
    CATALOGUE = "catalogue"
    OPERATOR = "operator"


BUDGET_ENDS = "budget-window:"
"""Begins the name of "a window of this rung's budget ended"."""


class Happened(msgspec.Struct, frozen=True):
    """So many things of one kind at an instant, or from it on within one slot; `what` names them in one word."""

    at: datetime
    lane: Lane
    what: str
    count: int = 1


class Mark(msgspec.Struct, frozen=True):
    """What is drawn as one mark: the first instant of it, and how many of what."""

    at: datetime
    lane: Lane
    counts: tuple[tuple[str, int], ...]

    @property
    def count(self) -> int:
        """Return how many there are in all."""
        return sum(count for _, count in self.counts)


class BudgetVersion(msgspec.Struct, frozen=True):
    """What a budget's window was from an instant on; without a limit nobody minds where it ends (`is_limited`)."""

    since: datetime
    period: Period
    week_starts_on: Weekday
    zone: ZoneInfo
    is_limited: bool


def lane_of_flip(cause: str) -> Lane:
    """Return the lane of a connection's flip: resets stand apart."""
    return Lane.RESET if cause == Cause.RESET else Lane.CHANGE


def window_ends(*, versions: Sequence[BudgetVersion], start: datetime, end: datetime) -> Iterator[datetime]:
    """Yield the instants in [start, end) at which a window of a budget ended, by what it was then (M3, M4).

    Versions are in order; the first holds for all time before it too.
    """
    at = start
    while versions and at < end:
        version = next((one for one in reversed(versions) if one.since <= at), versions[0])
        until = min((one.since for one in versions if one.since > at), default=end)
        window = budget_window(period=version.period, week_starts_on=version.week_starts_on, zone=version.zone, at=at)
        if window.end <= until and window.end < end and version.is_limited:
            yield window.end
        at = min(window.end, until)


def gather(*, happened: Iterable[Happened], start: datetime, end: datetime, slots: int) -> tuple[Mark, ...]:
    """Return the marks of [start, end), at most one for each lane in each of so many slots, in order."""
    length = (end - start) / slots
    found: dict[tuple[int, Lane], list[Happened]] = {}
    for one in happened:
        if start <= one.at < end:
            found.setdefault(((one.at - start) // length, one.lane), []).append(one)
    marks = [_mark(lane, ones) for (_, lane), ones in found.items()]
    return tuple(sorted(marks, key=lambda mark: (mark.at, list(Lane).index(mark.lane))))


def _mark(lane: Lane, ones: Sequence[Happened]) -> Mark:
    counts: Counter[str] = Counter()
    for one in ones:
        counts[one.what] += one.count
    return Mark(min(one.at for one in ones), lane, tuple(sorted(counts.items(), key=lambda part: (-part[1], part[0]))))
