"""Reading how the spend of the paid rungs grew (SPEC 5, Spend; M2, M4)."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db.models import QuerySet, Sum

from ladder.core.money import Span
from ladder.core.spend_curve import Spent, reached_at
from ladder.core.values import MoneyKind, Rung
from ladder.mapping import rung_named
from ladder.models import UsageEvent
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
    rows = _rows(spans).annotate(slot=slot_of("booked_at", size=size)).values("rung", "slot")
    booked: dict[Rung, list[Spent]] = {}
    for word, slot, usd in rows.annotate(usd=Sum("booked_usd")).order_by("slot").values_list("rung", "slot", "usd"):
        rung = rung_named(word)
        at = max(slot_start(slot), spans[rung][0])
        booked.setdefault(rung, []).append(Spent(at, usd))
    return booked


def _size(spans: Spans) -> int:
    is_short = all(end - start <= _BY_THE_MINUTE for start, end in spans.values())
    is_odd = any(start.minute or start.second or start.microsecond for start, _ in spans.values())
    return MINUTE if is_short or is_odd else HOUR


def _rows(spans: Spans) -> QuerySet[UsageEvent, Any]:
    starts, ends = zip(*spans.values(), strict=True)
    happened = happened_in(start=min(starts), end=max(ends), spans=spans)
    return UsageEvent.objects.filter(
        happened, money_kind=MoneyKind.BUDGET.value, rung__in=[rung.word for rung in spans]
    ).order_by()


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
    for word, at, usd in _rows(inside).order_by("booked_at", "id").values_list("rung", "booked_at", "booked_usd"):
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
