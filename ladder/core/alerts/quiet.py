"""Quiet hours: when what a rule raises is kept for later."""

from collections.abc import Collection
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import msgspec

from ladder.core.values import Weekday

DAYS = tuple(Weekday)
"""The days of the week in the order in which `date.weekday` counts them."""

_ENDS_AT_MOST = 16
"""Two ends a day for a week and one more: what is quiet for longer than that is quiet for ever."""


class QuietHours(msgspec.Struct, frozen=True):
    """From `start` to the next `end` on the clocks of a zone, on the days on which they begin; the same is a day."""

    start: time
    end: time
    zone: ZoneInfo
    days: Collection[Weekday] = DAYS


def quiet_until(*, quiet: QuietHours | None, at: datetime) -> datetime | None:
    """Return when the quiet hours that `at` lies in end, in UTC; None where it lies in none.

    The end itself is not quiet any more. Hours that follow one another without a gap end with the last of them.
    """
    if quiet is None:
        return None
    until = at
    for _ in range(_ENDS_AT_MOST):
        end = _end(quiet, until)
        if end is None:
            break
        until = end
    return until if until > at else None


def _end(quiet: QuietHours, at: datetime) -> datetime | None:
    today = at.astimezone(quiet.zone).date()
    spans = (_span(quiet, today - timedelta(days=back)) for back in (2, 1, 0))
    return max((end for begin, end in spans if begin <= at < end), default=None)


def _span(quiet: QuietHours, day: date) -> tuple[datetime, datetime]:
    """Return the hours that begin on a day; none (an empty span) where the day is no quiet one."""
    begin = _instant(day, quiet.start, quiet.zone)
    if DAYS[day.weekday()] not in quiet.days:
        return begin, begin
    last = day if quiet.end > quiet.start else day + timedelta(days=1)
    return begin, _instant(last, quiet.end, quiet.zone)


def _instant(day: date, clock: time, zone: ZoneInfo) -> datetime:
    return datetime.combine(day, clock, tzinfo=zone).astimezone(UTC)
