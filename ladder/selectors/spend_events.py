"""Rows of the ledger as a screen lists them: each event and each correction as it was booked (M4, M6, M7)."""

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any

import msgspec
from django.db.models import BooleanField, CharField, DateTimeField, F, Q, QuerySet, Sum, Value

from ladder.models import LedgerSum, UsageEvent
from omniroute_admin.common.core.periods import Part
from omniroute_admin.common.fields import MicroUsdField
from omniroute_admin.common.selectors.horizons import Pruned, read_pruned

_AT_ONCE = 2000
_IS_EVENT = Q(corrects_event_id="")
"""Not by `original`, which says the same: that has an index, and SQLite would read all originals there are by it."""


class LedgerRow(msgspec.Struct, frozen=True):
    """One row: what it says (`cost_usd` as reported), what it was booked as, and what it adds to the totals.

    `sum_of` is 0, but of a row that stands for so many old events, of which only what they add together is kept.
    """

    pk: int
    event_id: str
    occurred_at: datetime
    booked_at: datetime
    received_at: datetime | None
    rung: str
    provider: str
    connection_id: str
    model: str
    input_tokens: int | None
    output_tokens: int | None
    cached_input_tokens: int | None
    cost_usd: Decimal | None
    booked_cost: Decimal
    booked_usd: Decimal
    money_kind: str
    is_estimated: bool
    estimated_change: int
    corrects_event_id: str
    hold_id: str
    sum_of: int = 0


class FoldedEvents(msgspec.Struct, frozen=True):
    """How many old events are kept as sums only, and what was taken out of the ledger when."""

    count: int
    pruned: Pruned


class Correction(msgspec.Struct, frozen=True):
    """One correction of an event: what it claims in full, and what it changed (nothing, where a later one counts)."""

    event_id: str
    occurred_at: datetime
    booked_cost: Decimal
    booked_usd: Decimal
    estimated_change: int


_COLUMNS = {"pk": "id", "provider": "connection__provider", "connection_id": "connection__connection_id"}
_FIELDS = tuple(_COLUMNS.get(name, name) for name in LedgerRow.__struct_fields__ if name != "sum_of")
_TEXT, _USD = CharField(), MicroUsdField()


def list_events(*, happened: Q, offset: int, limit: int) -> list[LedgerRow]:
    """Return a part of the events, newest first; a correction is none of its own; one query."""
    rows = _rows(happened & _IS_EVENT)
    return [LedgerRow(*row) for row in rows[offset : offset + limit]]


def count_events(*, happened: Q) -> int:
    """Return how many events there are; one query."""
    return UsageEvent.objects.filter(happened & _IS_EVENT).count()


def find_folded(*, happened: Q) -> FoldedEvents | None:
    """Return how many events are kept as sums only, None where none are; a query, and one more where some are."""
    count = LedgerSum.objects.filter(happened).aggregate(count=Sum("folded_events"))["count"]
    pruned = read_pruned(Part.LEDGER) if count else None
    return None if pruned is None else FoldedEvents(int(count), pruned)


def each_ledger_row(*, happened: Q) -> Iterator[LedgerRow]:
    """Yield every row, events and corrections, newest first, without holding them together; one query.

    What old events added together is told in rows of their own, so that all rows of any stretch add up to its totals.
    """
    events = UsageEvent.objects.filter(happened).order_by().annotate(sum_of=Value(0)).values_list(*_FIELDS, "sum_of")
    rows = events.union(*_sums(happened), all=True).order_by("-booked_at", "-id")
    for row in rows.iterator(chunk_size=_AT_ONCE):
        yield LedgerRow(*row)


def _sums(happened: Q) -> Iterator[QuerySet[LedgerSum, Any]]:
    """Yield the rows of sums: what was known, and what was only estimated, each by itself."""
    rows = LedgerSum.objects.filter(happened).order_by()
    known, estimated = F("booked_usd") - F("estimated_usd"), F("estimated_usd")
    count = F("folded_events") - F("folded_estimates")
    yield _told(rows.filter(folded_events__gt=F("folded_estimates")), known, count, is_estimated=False)
    yield _told(rows.filter(folded_estimates__gt=0), estimated, F("folded_estimates"), is_estimated=True)


def _told(rows: QuerySet[LedgerSum], usd: Any, count: Any, *, is_estimated: bool) -> QuerySet[LedgerSum, Any]:
    nothing = Value("", output_field=_TEXT)
    said = {
        "event_id": nothing,
        "occurred_at": F("booked_at"),
        "received_at": Value(None, output_field=DateTimeField()),
        "input_tokens": Value(None, output_field=_USD),
        "output_tokens": Value(None, output_field=_USD),
        "cached_input_tokens": Value(None, output_field=_USD),
        "cost_usd": Value(None, output_field=_USD),
        "booked_cost": usd,
        "is_estimated": Value(is_estimated, output_field=BooleanField()),
        "estimated_change": Value(0),
        "corrects_event_id": nothing,
        "hold_id": nothing,
        "sum_of": count,
    }
    named = rows.annotate(**{f"t_{name}": value for name, value in said.items()}, t_booked_usd=usd)
    told = {*said, "booked_usd"}
    return named.values_list(*(f"t_{name}" if name in told else name for name in (*_FIELDS, "sum_of")))


def _rows(happened: Q) -> QuerySet[UsageEvent, Any]:
    return UsageEvent.objects.filter(happened).order_by("-booked_at", "-id").values_list(*_FIELDS)


def read_corrections(*, keys: list[int]) -> dict[int, list[Correction]]:
    """Return the corrections of events by the events' keys, in the order in which they came; one query."""
    found: dict[int, list[Correction]] = {}
    # Ordered here: asked to, SQLite would walk the whole ledger in that order.
    rows = UsageEvent.objects.filter(original__in=keys).order_by()
    for _, key, *row in sorted(rows.values_list("id", "original_id", *Correction.__struct_fields__)):
        found.setdefault(key, []).append(Correction(*row))
    return found
