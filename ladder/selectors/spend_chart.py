"""Reading how the spend of the paid rungs grew (SPEC 5, Spend; M2, M4)."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db.models import Q, QuerySet, Sum

from ladder.core.money import Span
from ladder.core.spend.curve import Spent, reached_at
from ladder.core.values import MoneyKind, Rung
from ladder.mapping import rung_named
from ladder.models import LedgerSum, UsageEvent
from ladder.selectors.slots import HOUR, MINUTE, slot_of, slot_start
from ladder.selectors.spend import Spans, happened_in

_BY_THE_MINUTE = timedelta(days=2)
_LENGTHS = {MINUTE: timedelta(minutes=1), HOUR: timedelta(hours=1)}


def read_booked(*, spans: Spans) -> dict[Rung, list[Spent]]:
    """Sum what drew on the budgets of rungs, each in its own stretch, by pieces of time in order; one query.

    Pieces are minutes in a stretch of two days, or where a stretch does not begin with an hour; else hours. A piece
    stands at its first instant, but none before its stretch.
    """
    size = _size(spans)
    pieces: dict[tuple[str, str], Decimal] = {}
    for slot, word, usd in _each(spans, _by_slot(size)):
        pieces[slot, word] = pieces.get((slot, word), Decimal(0)) + usd
    booked: dict[Rung, list[Spent]] = {}
    for slot, word in sorted(pieces):
        rung = rung_named(word)
        at = max(slot_start(slot), spans[rung][0])
        booked.setdefault(rung, []).append(Spent(at, pieces[slot, word]))
    return booked


def _by_slot(size: int) -> Callable[[QuerySet[Any, Any]], QuerySet[Any, Any]]:
    def cut(rows: QuerySet[Any, Any]) -> QuerySet[Any, Any]:
        named = rows.annotate(slot=slot_of("booked_at", size=size)).values("slot", "rung")
        return named.annotate(usd=Sum("booked_usd")).values_list("slot", "rung", "usd")

    return cut


def _size(spans: Spans) -> int:
    is_short = all(end - start <= _BY_THE_MINUTE for start, end in spans.values())
    is_odd = any(start.minute or start.second or start.microsecond for start, _ in spans.values())
    return MINUTE if is_short or is_odd else HOUR


def _each(spans: Spans, told: Callable[[QuerySet[Any, Any]], QuerySet[Any, Any]]) -> QuerySet[Any, Any]:
    """Return what is told of the rows that drew on budgets, and of old ones that are kept as sums; one query."""
    starts, ends = zip(*spans.values(), strict=True)
    happened = happened_in(start=min(starts), end=max(ends), spans=spans)
    drawn = happened & Q(money_kind=MoneyKind.BUDGET.value, rung__in=[rung.word for rung in spans])
    events, sums = (told(model._default_manager.filter(drawn).order_by()) for model in (UsageEvent, LedgerSum))
    return events.union(sums, all=True)


def read_reached(
    *, booked: Mapping[Rung, list[Spent]], limits: Mapping[Rung, Decimal], spans: Spans
) -> dict[Rung, datetime]:
    """Return the exact instant at which the spend of each rung first came to its limit; a query where one did.

    `booked` is what `read_booked` returned for these spans: it tells in which piece of time that was.
    """
    pieces = {rung: _piece(booked.get(rung, []), limit, spans) for rung, limit in limits.items()}
    inside = {rung: span for rung, (span, _) in ((r, p) for r, p in pieces.items() if p is not None)}
    if not inside:
        return {}
    rows: dict[Rung, list[Spent]] = {}
    told = _each(inside, lambda each: each.values_list("booked_at", "id", "rung", "booked_usd"))
    for at, _, word, usd in sorted(told):
        rows.setdefault(rung_named(word), []).append(Spent(at, usd))
    found = {
        rung: reached_at(booked=rows.get(rung, []), limit=limits[rung], before=piece[1])
        for rung, piece in pieces.items()
        if piece is not None
    }
    return {rung: at for rung, at in found.items() if at is not None}


def _piece(booked: list[Spent], limit: Decimal, spans: Spans) -> tuple[Span, Decimal] | None:
    """Return the piece in which a limit was reached, and what was spent before it."""
    at = reached_at(booked=booked, limit=limit)
    if at is None:
        return None
    before = sum((one.usd for one in booked if one.at < at), Decimal(0))
    return (at, at + _LENGTHS[_size(spans)]), before
