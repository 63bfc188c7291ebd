"""Money (M1 to M9): budget windows, when a rung closes and opens, what an event costs."""

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from zoneinfo import ZoneInfo

import msgspec

from billing_catalog.core.values import Price
from ladder.core.instants import NEVER
from ladder.core.values import Budget, Period, Weekday

MICRO = Decimal("0.000001")
MILLION = Decimal(1_000_000)
_WEEKDAYS = list(Weekday)


Span = tuple[datetime, datetime]
"""A stretch of time, [start, end)."""


class BudgetWindow(msgspec.Struct, frozen=True):
    """One window of a budget, [start, end); `counted_from` is later than the start after a reset (M9)."""

    start: datetime
    end: datetime
    counted_from: datetime


def budget_window(
    *, period: Period, week_starts_on: Weekday, zone: ZoneInfo, at: datetime, reset_at: datetime | None = None
) -> BudgetWindow:
    """Return the window that an instant falls into (M3): whole local days, of 23 or 25 hours too."""
    today = at.astimezone(zone).date()
    # A clock that is set back over midnight shows the old date a second time: that day is over all the same.
    if at >= _midnight(today + timedelta(days=1), zone):
        today += timedelta(days=1)
    first, following = _days(period=period, week_starts_on=week_starts_on, today=today)
    start, end = _midnight(first, zone), _midnight(following, zone)
    counted_from = start if reset_at is None else max(start, reset_at)
    return BudgetWindow(start, end, counted_from)


def _days(*, period: Period, week_starts_on: Weekday, today: date) -> tuple[date, date]:
    if period is Period.DAILY:
        return today, today + timedelta(days=1)
    if period is Period.WEEKLY:
        first = today - timedelta(days=(today.weekday() - _WEEKDAYS.index(week_starts_on)) % 7)
        return first, first + timedelta(days=7)
    first = today.replace(day=1)
    return first, (first + timedelta(days=32)).replace(day=1)


def _midnight(day: date, zone: ZoneInfo) -> datetime:
    """Return the first instant of a local day; in a gap the old offset names just that instant."""
    return datetime(day.year, day.month, day.day, tzinfo=zone).astimezone(UTC)


def is_off(budget: Budget) -> bool:
    """Tell whether the rung is off: a budget of zero, which is not the same as none (M1)."""
    return budget.amount_usd is not None and budget.amount_usd <= 0


def is_spent(*, budget: Budget, at: datetime) -> bool:
    """Tell whether spend and active holds have reached the budget (M2); without accounting never."""
    if budget.amount_usd is None or budget.spent_usd is None:
        return False
    return _spent(budget, at) + held_usd(budget=budget, at=at) >= budget.amount_usd


def _spent(budget: Budget, at: datetime) -> Decimal:
    """Return the spend of the window that `at` falls into: past the present one's end it starts from zero."""
    over = budget.window_end is not None and at >= budget.window_end
    return Decimal(0) if over or budget.spent_usd is None else budget.spent_usd


def held_usd(*, budget: Budget, at: datetime) -> Decimal:
    """Return the sum of the holds that are active at an instant."""
    return sum((hold.amount_usd for hold in budget.holds if hold.expires_at > at), Decimal(0))


def money_instants(budget: Budget) -> list[datetime]:
    """Return the instants at which the rung could close or open by itself: holds end, the window ends (P9)."""
    ends = [hold.expires_at for hold in budget.holds]
    return ends if budget.window_end is None else [*ends, budget.window_end]


def closed_spans(*, budget: Budget, now: datetime) -> tuple[Span, ...]:
    """Return when a rung is closed, from `now` on and by itself, as [start, end); an end of NEVER is not known (M2).

    Holds end, and the spend of the next window starts from zero: that opens a rung, or closes one whose refunds made
    room for holds that outlast the window.
    """
    if budget.amount_usd is None or budget.spent_usd is None:
        return ()
    held = held_usd(budget=budget, at=now)
    ends = [(hold.expires_at, hold.amount_usd) for hold in budget.holds]
    if budget.window_end is not None:
        ends.append((budget.window_end, Decimal(0)))
    spans: list[Span] = []
    since = now if _spent(budget, now) + held >= budget.amount_usd else None
    for instant, amount in sorted(end for end in ends if end[0] > now):
        held -= amount
        is_closed = _spent(budget, instant) + held >= budget.amount_usd
        if since is not None and not is_closed:
            spans.append((since, instant))
        since = (since or instant) if is_closed else None
    return tuple(spans) if since is None else (*spans, (since, NEVER))


def left_usd(*, budget: Budget, at: datetime) -> Decimal | None:
    """Return what is left of a budget beside spend and active holds, never below zero; None without a limit."""
    if budget.amount_usd is None:
        return None
    return max(budget.amount_usd - _spent(budget, at) - held_usd(budget=budget, at=at), Decimal(0))


def hold_fits(*, budget: Budget, amount_usd: Decimal, at: datetime) -> bool:
    """Tell whether a hold would stay within the budget (M8)."""
    if budget.amount_usd is None or budget.spent_usd is None:
        return True
    return _spent(budget, at) + held_usd(budget=budget, at=at) + amount_usd <= budget.amount_usd


def cost_of(*, price: Price, input_tokens: int, output_tokens: int, cached_input_tokens: int) -> Decimal | None:
    """Return what an event costs in USD, to six places, or None without a known price (M7).

    `input_tokens` includes the cached ones; without a price of their own those cost as much as the others.
    """
    if price.input_usd_per_million is None or price.output_usd_per_million is None:
        return None
    cached_price = price.cached_input_usd_per_million
    cached_price = price.input_usd_per_million if cached_price is None else cached_price
    cached = min(cached_input_tokens, input_tokens)
    total = (
        (input_tokens - cached) * price.input_usd_per_million
        + cached * cached_price
        + output_tokens * price.output_usd_per_million
    )
    return (total / MILLION).quantize(MICRO, rounding=ROUND_HALF_UP)


def dearest(prices: Iterable[Price]) -> Price | None:
    """Return the dearest known input and output price of a rung's models as one price (M7), or None."""
    rows = list(prices)
    inputs = [row.input_usd_per_million for row in rows if row.input_usd_per_million is not None]
    outputs = [row.output_usd_per_million for row in rows if row.output_usd_per_million is not None]
    if not inputs or not outputs:
        return None
    return Price("", "", NEVER, None, max(inputs), max(outputs))
