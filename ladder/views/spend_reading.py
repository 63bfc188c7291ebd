"""Everything the spend page and its files are made of, read for what is asked (SPEC 5, 5)."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

import msgspec
from django.db.models import Q

from ladder.core.money import BudgetWindow, Span
from ladder.core.spend.columns import SpendTotals
from ladder.core.spend.curve import CurvePoint, Spent, spend_curve
from ladder.core.values import PAID_RUNGS, Rung
from ladder.models import RungBudget
from ladder.selectors.spend import Spans, SpendBy, SpendPage, happened_in, read_spend_lines
from ladder.selectors.spend_chart import read_booked, read_reached
from ladder.selectors.spend_windows import (
    BudgetTerms,
    WindowPage,
    WindowSpend,
    read_budget_rows,
    read_present_spend,
    read_window_spend,
    terms_of,
    windows_touching,
)
from ladder.views.spend_query import BREAKDOWNS, BY_WINDOW, Asked, stretch_of


class Stretch(msgspec.Struct, frozen=True):
    """What time is looked at: [start, end), and of each rung its own part of it where `spans` says so."""

    start: datetime
    end: datetime
    spans: Spans | None = None


class RungSpend(msgspec.Struct, frozen=True):
    """What a rung's money did, beside its budget; `window` where it is the present window that is told."""

    rung: Rung
    totals: SpendTotals
    terms: BudgetTerms
    window: BudgetWindow | None = None


class Curve(msgspec.Struct, frozen=True):
    """The line of a paid rung's spend in [start, end) up to `until`, and when it first reached its budget."""

    rung: Rung
    terms: BudgetTerms
    start: datetime
    end: datetime
    until: datetime
    points: tuple[CurvePoint, ...]
    reached_at: datetime | None = None


class Overview(msgspec.Struct, frozen=True):
    """The stretch, each rung's totals, and the curves of the paid ones; `present` are the present windows if read."""

    stretch: Stretch
    rungs: tuple[RungSpend, ...]
    curves: tuple[Curve, ...]
    present: Mapping[Rung, WindowSpend] | None = None


def read_overview(*, asked: Asked, now: datetime, zone: ZoneInfo) -> Overview:
    """Read totals and curves; five queries."""
    days = stretch_of(asked, zone=zone)
    return _of_windows(now) if days is None else _of_days(days, now)


def read_stretch(*, asked: Asked, now: datetime, zone: ZoneInfo) -> Stretch:
    """Return the time that is asked for; three queries where it is that of the budgets' windows."""
    days = stretch_of(asked, zone=zone)
    return _stretch(read_present_spend(now=now)) if days is None else Stretch(*days)


def _stretch(present: Mapping[Rung, WindowSpend]) -> Stretch:
    spans = {rung: (one.window.counted_from, one.window.end) for rung, one in present.items()}
    return Stretch(min(start for start, _ in spans.values()), max(end for _, end in spans.values()), spans)


def _of_windows(now: datetime) -> Overview:
    present = read_present_spend(now=now)
    stretch = _stretch(present)
    rungs = tuple(RungSpend(rung, one.totals, one.terms, one.window) for rung, one in sorted(present.items()))
    paid = {rung: (present[rung].window.counted_from, present[rung].window.end) for rung in PAID_RUNGS}
    booked = read_booked(spans=paid)
    limits = {rung: present[rung].terms.amount_usd for rung in PAID_RUNGS}
    asked = {rung: limit for rung, limit in limits.items() if limit}
    reached = read_reached(booked=booked, limits=asked, spans=paid)
    curves = tuple(
        _curve(
            rung, present[rung].terms, span, now, booked=booked.get(rung, []), counts_from=[], reached=reached.get(rung)
        )
        for rung, span in sorted(paid.items())
    )
    return Overview(stretch, rungs, curves, present)


def _of_days(days: Span, now: datetime) -> Overview:
    rows = read_budget_rows()
    lines = read_spend_lines(by=[SpendBy.RUNG], start=days[0], end=days[1], now=now).lines
    totals = {line.rung: line.totals for line in lines}
    rungs = tuple(RungSpend(rung, totals.get(rung, SpendTotals()), terms_of(rows[rung])) for rung in Rung)
    windows = {rung: windows_touching(rows[rung], start=days[0], end=days[1]) for rung in sorted(PAID_RUNGS)}
    booked = read_booked(spans={rung: (ones[0].start, days[1]) for rung, ones in windows.items()})
    curves = tuple(
        _curve(
            rung,
            terms_of(rows[rung]),
            days,
            now,
            booked=booked.get(rung, []),
            counts_from=_counts_from(rows[rung], ones),
        )
        for rung, ones in windows.items()
    )
    return Overview(Stretch(*days), rungs, curves)


def _counts_from(row: RungBudget, windows: list[BudgetWindow]) -> list[datetime]:
    """Return where the count begins: with each window, and anew after a reset (M9)."""
    resets = [row.counted_from] if row.counted_from is not None else []
    inside = [at for at in resets if windows[0].start < at < windows[-1].end]
    return sorted({*(window.start for window in windows), *inside})


def _curve(
    rung: Rung,
    terms: BudgetTerms,
    span: Span,
    now: datetime,
    *,
    booked: Sequence[Spent],
    counts_from: Sequence[datetime],
    reached: datetime | None = None,
) -> Curve:
    start, end = span
    until = max(start, min(now, end))
    happened = [one for one in booked if one.at < until]
    points = spend_curve(booked=happened, counts_from=counts_from, start=start, end=until)
    return Curve(rung, terms, start, end, until, points, reached)


def happened_of(*, asked: Asked, stretch: Stretch) -> Q:
    """Return the condition of the rows of the ledger that are asked for."""
    return asked.among.condition() & happened_in(start=stretch.start, end=stretch.end, spans=stretch.spans)


def read_lines(
    *, asked: Asked, stretch: Stretch, now: datetime, offset: int = 0, limit: int | None = None
) -> SpendPage:
    """Read a part of the breakdown; two queries."""
    return read_spend_lines(
        by=BREAKDOWNS[asked.by],
        start=stretch.start,
        end=stretch.end,
        now=now,
        among=asked.among,
        order=asked.order,
        limit=limit,
        offset=offset,
        spans=stretch.spans,
    )


def read_windows(*, asked: Asked, stretch: Stretch, now: datetime, offset: int, limit: int) -> WindowPage:
    """Read a part of the windows, newest first: the present ones where no days are asked for; three queries."""
    if stretch.spans is None:
        start, end = stretch.start, stretch.end
        return read_window_spend(start=start, end=end, now=now, among=asked.among, offset=offset, limit=limit)
    present = read_present_spend(now=now, among=asked.among)
    lines = sorted(present.values(), key=lambda one: one.window.start, reverse=True)
    return WindowPage(lines[offset : offset + limit], len(lines))


def is_by_window(asked: Asked) -> bool:
    """Tell whether the breakdown is by windows."""
    return asked.by == BY_WINDOW
