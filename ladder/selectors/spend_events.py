"""Rows of the ledger as a screen lists them: each event and each correction as it was booked (M4, M6, M7)."""

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any

import msgspec
from django.db.models import Q, QuerySet

from ladder.models import UsageEvent

_AT_ONCE = 2000
_IS_EVENT = Q(corrects_event_id="")
"""Not by `original`, which says the same: that has an index, and SQLite would read all originals there are by it."""


class LedgerRow(msgspec.Struct, frozen=True):
    """One row: what it says (`cost_usd` as reported), what it was booked as, and what it adds to the totals."""

    pk: int
    event_id: str
    occurred_at: datetime
    booked_at: datetime
    received_at: datetime
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


class Correction(msgspec.Struct, frozen=True):
    """One correction of an event: what it claims in full, and what it changed (nothing, where a later one counts)."""

    event_id: str
    occurred_at: datetime
    booked_cost: Decimal
    booked_usd: Decimal
    estimated_change: int


_FIELDS = tuple(
    {"provider": "connection__provider", "connection_id": "connection__connection_id"}.get(name, name)
    for name in LedgerRow.__struct_fields__
)


def list_events(*, happened: Q, offset: int, limit: int) -> list[LedgerRow]:
    """Return a part of the events, newest first; a correction is none of its own; one query."""
    rows = _rows(happened & _IS_EVENT)
    return [LedgerRow(*row) for row in rows[offset : offset + limit]]


def count_events(*, happened: Q) -> int:
    """Return how many events there are; one query."""
    return UsageEvent.objects.filter(happened & _IS_EVENT).count()


def each_ledger_row(*, happened: Q) -> Iterator[LedgerRow]:
    """Yield every row, events and corrections, newest first, without holding them together; one query."""
    for row in _rows(happened).iterator(chunk_size=_AT_ONCE):
        yield LedgerRow(*row)


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
