"""What in the ledger contradicts itself: every total is a sum of rows, so the rows of each original must add up."""

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal

import msgspec
from django.db.models import F, Q, QuerySet, Sum

from ladder.core.spend.ledger import Claim, Cost, correction_depths, counting_claim
from ladder.core.values import MoneyKind
from ladder.models import LedgerSum, SpendHold, UsageEvent
from omniroute_admin.common.core.periods import Part
from omniroute_admin.common.selectors.horizons import horizon_of

_BATCH = 2000


class Checked(msgspec.Struct, frozen=True):
    """How many rows were looked at, those that are kept as sums among them, and what is wrong, each in a sentence."""

    rows: int
    faults: tuple[str, ...]


class LedgerSpan(msgspec.Struct, frozen=True):
    """What drew on the budget of one rung in [start, end), by when it happened (M4)."""

    rung: str
    start: datetime
    end: datetime


def check_ledger(*, span: LedgerSpan | None = None) -> Checked:
    """Look at every row, or at those of one span, and name what contradicts the rules of the ledger (M4, M5, M6)."""
    inside = Q() if span is None else _is_in(span)
    rows, sums = UsageEvent.objects.filter(inside), LedgerSum.objects.filter(inside)
    faults = [*_lone_faults(rows), *_chain_faults(rows), *_hold_faults(rows), *_sum_faults(sums)]
    folded = sums.aggregate(rows=Sum("folded_rows"))["rows"]
    return Checked(rows.count() + int(folded or 0), tuple(faults))


def _is_in(span: LedgerSpan) -> Q:
    return Q(money_kind=MoneyKind.BUDGET.value, rung=span.rung, booked_at__gte=span.start, booked_at__lt=span.end)


def _lone_faults(among: QuerySet[UsageEvent]) -> Iterator[str]:
    """Yield originals that add something else than their cost, or stand at another instant than their own."""
    whole = Q(booked_usd=F("booked_cost"), booked_at=F("occurred_at"))
    rows = among.filter(original=None).exclude(whole)
    yield from (f"{name}: an original is not booked whole" for name in _names(rows))
    estimated = Q(is_estimated=True, estimated_change=1) | Q(is_estimated=False, estimated_change=0)
    rows = among.filter(original=None).exclude(estimated)
    yield from (f"{name}: an original does not count its estimate" for name in _names(rows))


def _chain_faults(among: QuerySet[UsageEvent]) -> Iterator[str]:
    """Yield what is wrong with originals that have corrections, and with those."""
    corrected = among.filter(original=None, corrections__isnull=False).distinct().order_by("pk")
    for original in corrected.iterator(chunk_size=_BATCH):
        rows = [original, *original.corrections.order_by("pk")]
        place = (original.booked_at, original.rung, original.money_kind, original.connection_id)
        for row in rows[1:]:
            if (row.booked_at, row.rung, row.money_kind, row.connection_id) != place:
                yield f"{row.event_id}: a correction is booked elsewhere than {original.event_id}"
        depths = correction_depths(bases={row.event_id: row.corrects_event_id for row in rows})
        for row in rows:
            if row.event_id not in depths:
                yield f"{row.event_id}: it does not lead to {original.event_id}, whose correction it is"
        counting = counting_claim([_claim(row, depths.get(row.event_id, 1)) for row in rows]).cost
        added = sum((row.booked_usd for row in rows), Decimal(0))
        if added != counting.usd:
            yield f"{original.event_id}: its rows add up to {added}, and {counting.usd} counts"
        if sum(row.estimated_change for row in rows) != int(counting.is_estimated):
            yield f"{original.event_id}: its rows miscount what is estimated"


def _sum_faults(among: QuerySet[LedgerSum]) -> Iterator[str]:
    """Yield sums that stand where nothing was taken out of the ledger; the database keeps their numbers in order."""
    horizon = horizon_of(Part.LEDGER)
    is_behind = Q(pk__in=[]) if horizon is None else Q(last_at__lt=horizon)
    odd = among.exclude(is_behind & Q(booked_at__lte=F("last_at")))
    for one in odd.order_by("pk").iterator(chunk_size=_BATCH):
        yield f"sum {one.pk} of {one.booked_at.isoformat()}: it cannot be of rows that were taken out of the ledger"


def _hold_faults(among: QuerySet[UsageEvent]) -> Iterator[str]:
    """Yield holds that an event settled which does not name them."""
    rows = SpendHold.objects.filter(settled_by__in=among.order_by()).exclude(settled_by__hold_id=F("hold_id"))
    for hold_id in rows.order_by("pk").values_list("hold_id", flat=True):
        yield f"hold {hold_id}: settled by an event that does not name it"


def _claim(row: UsageEvent, depth: int) -> Claim:
    return Claim(depth, row.occurred_at, row.event_id, Cost(row.booked_cost, row.is_estimated))


def _names(rows: QuerySet[UsageEvent]) -> Iterator[str]:
    return rows.order_by("pk").values_list("event_id", flat=True).iterator(chunk_size=_BATCH)
