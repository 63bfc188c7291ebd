"""The time axis of a chart, and ranges of local days: where days of 23 and 25 hours are days (SPEC 5). Pure."""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import msgspec

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_HOURS_UP_TO = timedelta(hours=50)
_HOURS = (1, 2, 3, 4, 6, 12)
_DAYS = (1, 2, 3, 7, 14, 31)


class Tick(msgspec.Struct, frozen=True):
    """An instant on an axis, and its name there."""

    at: datetime
    word: str


def day_named(text: str) -> date | None:
    """Return the day of a text as in 2026-08-01; None where it names none."""
    try:
        return date.fromisoformat(text) if _DAY.fullmatch(text) else None
    except ValueError:
        return None


def day_start(*, day: date, zone: ZoneInfo) -> datetime:
    """Return the first instant of a local day, in UTC."""
    return datetime.combine(day, time(), tzinfo=zone).astimezone(UTC)


def days_range(*, first: date, last: date, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """Return the stretch of the local days from `first` to `last`, both included, as [start, end)."""
    return day_start(day=first, zone=zone), day_start(day=last + timedelta(days=1), zone=zone)


def ticks(*, start: datetime, end: datetime, zone: ZoneInfo, most: int = 9) -> tuple[Tick, ...]:
    """Return the ticks of an axis over [start, end]: whole local hours or days, at most about `most` of them."""
    if end - start <= _HOURS_UP_TO:
        step = next((hours for hours in _HOURS if (end - start) <= timedelta(hours=hours * most)), _HOURS[-1])
        found = _hours(start, zone, step, end)
    else:
        days = next((days for days in _DAYS if (end - start) <= timedelta(days=days * most)), _DAYS[-1])
        found = _days(start, zone, days, end)
    return tuple(tick for tick in found if start <= tick.at <= end)


def _hours(start: datetime, zone: ZoneInfo, step: int, end: datetime) -> Iterator[Tick]:
    day, last = start.astimezone(zone).date(), datetime.min.replace(tzinfo=UTC)
    while day_start(day=day, zone=zone) <= end:
        for hour in range(0, 24, step):
            at = datetime.combine(day, time(hour), tzinfo=zone).astimezone(UTC)
            if at > last:
                local = at.astimezone(zone)
                yield Tick(at, _day_word(local) if hour == 0 else f"{local:%H:%M}")
                last = at
        day += timedelta(days=1)


def _days(start: datetime, zone: ZoneInfo, step: int, end: datetime) -> Iterator[Tick]:
    day = start.astimezone(zone).date()
    while day_start(day=day, zone=zone) <= end:
        at = day_start(day=day, zone=zone)
        yield Tick(at, _day_word(at.astimezone(zone)))
        day += timedelta(days=step)


def _day_word(local: datetime) -> str:
    return f"{local:%a} {local.day} {local:%b}"
