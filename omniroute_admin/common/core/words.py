"""Amounts, percent and time as words for people: exact, and the same on every screen (SPEC 1, 5)."""

from datetime import datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_SECONDS_SHOWN_BELOW = 10 * _MINUTE
_WEEKDAY_IS_ENOUGH, _WEEK = timedelta(days=6), timedelta(days=7)


def percent_text(value: Decimal) -> str:
    """Return a percent as it is, without empty decimals: `41 %`, `0.5 %`. Never rounded (SPEC 1)."""
    return f"{_plain(value)} %"


def money_text(value: Decimal) -> str:
    """Return USD with at least two decimals and all that are there: `$1.20`, `$0.004`, `-$2.00`."""
    sign, amount = ("-", -value) if value < 0 else ("", value)
    whole, _, cents = _plain(amount).partition(".")
    return f"{sign}${int(whole):,}.{cents.ljust(2, '0')}"


def _plain(value: Decimal) -> str:
    text = f"{value:f}"
    return (text.rstrip("0").rstrip(".") or "0") if "." in text else text


def span_text(seconds: float) -> str:
    """Return a length of time in its two largest units: `50 s`, `1 min 05 s`, `41 min`, `1 h 27 min`, `3 d 22 h`."""
    left = max(0, int(seconds))
    if left < _MINUTE:
        return f"{left} s"
    if left < _SECONDS_SHOWN_BELOW:
        return f"{left // _MINUTE} min {left % _MINUTE:02d} s"
    if left < _HOUR:
        return f"{left // _MINUTE} min"
    if left < _DAY:
        return f"{left // _HOUR} h {left % _HOUR // _MINUTE:02d} min"
    return f"{left // _DAY} d {left % _DAY // _HOUR} h"


def age_text(*, at: datetime, now: datetime) -> str:
    """Return how long ago an instant was: `22 s ago`; an instant not yet reached counts as just now."""
    return f"{span_text((now - at).total_seconds())} ago"


def until_text(*, at: datetime, now: datetime) -> str:
    """Return how long an instant is away: `in 41 min`; `now` once it is reached."""
    left = (at - now).total_seconds()
    return f"in {span_text(left)}" if left > 0 else "now"


def clock_text(*, at: datetime, now: datetime, zone: ZoneInfo, seconds: bool = False) -> str:
    """Return an instant as a clock reads it in `zone`, with as much of the date as is needed to tell it apart.

    The same day `10:30`; a weekday that can mean one day only `Mon 09:00`; else `1 Sep 02:00`, with the year where it
    is another one.
    """
    local, today = at.astimezone(zone), now.astimezone(zone)
    clock = local.strftime("%H:%M:%S" if seconds else "%H:%M")
    if local.date() == today.date():
        return clock
    if -_WEEKDAY_IS_ENOUGH < at - now < _WEEK:
        return f"{local:%a} {clock}"
    year = f" {local.year}" if local.year != today.year else ""
    return f"{local.day} {local:%b}{year} {clock}"


def count_text(number: int, one: str, many: str) -> str:
    """Return a number with its noun: `1 plan`, `2 plans`."""
    return f"{number:,} {one if number == 1 else many}"
