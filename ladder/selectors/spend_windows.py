"""Spend by the windows of the rungs' budgets, the present ones and those before (M3, M4, M9)."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal

import msgspec
from django.db.models import Case, IntegerField, Q, Value, When

from ladder.core.instants import TICK
from ladder.core.money import BudgetWindow
from ladder.core.spend.columns import SpendTotals
from ladder.core.spend.ledger import OLDEST
from ladder.core.values import Period, Rung
from ladder.mapping import window_at
from ladder.models import RungBudget
from ladder.selectors.spend import EVERYTHING, SpendFilter, read_groups, read_held
from ladder.selectors.timeline import SKEW

LARGEST_PAGE = 500
"""Windows of one page at most: each is a part of the query's text."""


class BudgetTerms(msgspec.Struct, frozen=True):
    """What a rung may spend in one window, None for no limit, and how long that is in which zone (M1, M3)."""

    amount_usd: Decimal | None = None
    period: Period = Period.DAILY
    zone: str = "UTC"


class WindowSpend(msgspec.Struct, frozen=True):
    """What a rung's money did in one window. A rung without a budget has days in UTC, as M3 says where none is set."""

    rung: Rung
    window: BudgetWindow
    totals: SpendTotals
    terms: BudgetTerms = BudgetTerms()


class WindowPage(msgspec.Struct, frozen=True):
    """Some windows, newest first, and of how many they are."""

    lines: Sequence[WindowSpend]
    count: int


class _Span(msgspec.Struct, frozen=True):
    """What of a rung is summed: [start, end)."""

    rung: Rung
    start: datetime
    end: datetime


def read_present_spend(
    *, now: datetime, among: SpendFilter = EVERYTHING, rows: Iterable[RungBudget] | None = None
) -> dict[Rung, WindowSpend]:
    """Sum the present window of each rung, from where it is counted (M9): what is enforced; three queries.

    `rows` are those of all budgets, where the caller has read them in the same view: then two queries. `spent_usd` and
    `held_usd` of a paid rung are those of its budget (M2) where nothing is filtered.
    """
    of_rung = _read_rows(among) if rows is None else _by_rung(rows, among)
    windows = [(rung, window_at(row, at=now)) for rung, row in of_rung.items()]
    spans = [_Span(rung, window.counted_from, window.end) for rung, window in windows]
    spent = _spent(windows, spans, among, now)
    return {one.rung: msgspec.structs.replace(one, terms=terms_of(of_rung[one.rung])) for one in spent}


def read_budget_rows() -> dict[Rung, RungBudget]:
    """Read what each rung's budget is set to; rungs without one have none, in days of UTC (M3); one query."""
    return _read_rows(EVERYTHING)


def terms_of(row: RungBudget) -> BudgetTerms:
    """Return what a budget is set to."""
    return BudgetTerms(row.amount_usd, Period(row.period), row.zone)


def windows_touching(row: RungBudget, *, start: datetime, end: datetime) -> list[BudgetWindow]:
    """Return the windows of a budget that [start, end) touches, as it is set now, oldest first (M4)."""
    return list(_windows_back(row, start=max(start, OLDEST), end=end))[::-1]


def read_window_spend(
    *,
    start: datetime,
    end: datetime,
    now: datetime,
    among: SpendFilter = EVERYTHING,
    limit: int = LARGEST_PAGE,
    offset: int = 0,
) -> WindowPage:
    """Sum every window that [start, end) touches, each whole and from its own start, newest first; three queries.

    The windows are those of the budgets as they are set now (M4). A reset starts a count again and removes nothing:
    here all of its window is told (M9). Holds that act at `now` stand in the present window. Windows that nothing can
    have happened in yet, or before the year 2000, are not listed; one without any event is, with nothing in it.
    """
    windows = [
        (rung, window)
        for rung, row in _read_rows(among).items()
        for window in _windows_back(row, start=max(start, OLDEST), end=min(end, window_at(row, at=now + SKEW).end))
    ]
    # Made rung by rung, and the sort keeps that order.
    windows.sort(key=lambda one: one[1].start, reverse=True)
    page = windows[offset : offset + min(limit, LARGEST_PAGE)]
    spans = [_Span(rung, window.start, window.end) for rung, window in page]
    return WindowPage(list(_spent(page, spans, among, now)), len(windows))


def _read_rows(among: SpendFilter) -> dict[Rung, RungBudget]:
    return _by_rung(RungBudget.objects.all(), among)


def _by_rung(rows: Iterable[RungBudget], among: SpendFilter) -> dict[Rung, RungBudget]:
    stored = {row.rung: row for row in rows}
    rungs = Rung if among.rungs is None else [rung for rung in Rung if rung in among.rungs]
    return {rung: stored.get(rung.word) or RungBudget(rung=rung.word) for rung in rungs}


def _windows_back(row: RungBudget, *, start: datetime, end: datetime) -> Iterator[BudgetWindow]:
    at = end - TICK
    while at >= start:
        window = window_at(row, at=at)
        yield window
        at = window.start - TICK


def _spent(
    windows: Iterable[tuple[Rung, BudgetWindow]], spans: Sequence[_Span], among: SpendFilter, now: datetime
) -> Iterator[WindowSpend]:
    happened = _read_sums(spans, among) if spans else {}
    held = read_held(among=among, columns=["rung"], now=now)
    for number, (rung, window) in enumerate(windows):
        totals = happened.get(number, SpendTotals())
        if window.start <= now < window.end and (rung.word,) in held:
            totals += SpendTotals(held_usd=held[rung.word,])
        yield WindowSpend(rung, window, totals)


def _read_sums(spans: Sequence[_Span], among: SpendFilter) -> dict[int, SpendTotals]:
    """Sum each span, by its place. What lies between them in time and in none of them is left out."""
    inside = [
        When(rung=one.rung.word, booked_at__gte=one.start, booked_at__lt=one.end, then=Value(place))
        for place, one in enumerate(spans)
    ]
    around = Q(booked_at__gte=min(one.start for one in spans), booked_at__lt=max(one.end for one in spans))
    found = read_groups(
        happened=among.condition() & around,
        columns=["place"],
        extra={"place": Case(*inside, output_field=IntegerField())},
    )
    return {place: totals for (place,), totals in found.items() if place is not None}
