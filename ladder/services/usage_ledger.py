"""The rows of the ledger that a body touches: those that are there, those it adds, and which claim counts."""

from collections.abc import Collection, Sequence

from django.db.models import Q

from ladder.core.spend.ledger import Booking, Claim, Cost, book, correction_depths, counting_claim
from ladder.models import UsageEvent
from ladder.services.usage_items import UsageItem
from omniroute_admin.common.services.statements import insert_many


class Ledger:
    """Known rows by event id. Make it under the locks of their connections."""

    def __init__(self, *, event_ids: Collection[str], with_corrections: bool) -> None:
        """Read the rows of these ids, and with them whole chains where corrections are about to be added."""
        rows = UsageEvent.objects.select_related("connection")
        found = list(rows.filter(event_id__in=event_ids))
        if with_corrections and found:
            roots = {row.original_id or row.pk for row in found}
            found = list(rows.filter(Q(pk__in=roots) | Q(original__in=roots) | Q(event_id__in=event_ids)))
        self._rows = {row.event_id: row for row in found}
        by_key = {row.pk: row for row in found}
        self._root_of = {row.event_id: by_key.get(row.original_id or row.pk, row).event_id for row in found}
        self._depths = correction_depths(bases={row.event_id: row.corrects_event_id for row in found})
        claims: dict[str, list[Claim]] = {}
        for row in found:
            claims.setdefault(self._root_of[row.event_id], []).append(self._claim_of(row))
        self._counting = {root: counting_claim(said) for root, said in claims.items()}
        self.new: list[UsageEvent] = []

    def find(self, event_id: str) -> UsageEvent | None:
        """Return the row of an event, stored or about to be."""
        return self._rows.get(event_id)

    def original_of(self, event_id: str) -> UsageEvent | None:
        """Return the original that a correction of this event corrects: a correction's own original, else itself."""
        root = self._root_of.get(event_id)
        return None if root is None else self._rows[root]

    def add(self, row: UsageEvent, *, original: UsageEvent | None) -> Booking:
        """Add a row, set what it adds to the totals, and return that."""
        # What a correction corrects is there already: one whose base has not arrived is refused.
        self._depths[row.event_id] = 0 if original is None else self._depths.get(row.corrects_event_id, 1) + 1
        claim = self._claim_of(row)
        root = row.event_id if original is None else original.event_id
        booking = book(claim=claim, counting=self._counting.get(root))
        row.booked_usd, row.estimated_change = booking.usd, booking.estimated_change
        if booking.counts:
            self._counting[root] = claim
        self._rows[row.event_id], self._root_of[row.event_id] = row, root
        self.new.append(row)
        return booking

    def save(self) -> None:
        """Write the new rows, originals first, in one order: two bodies with the same ids do not wait in a circle."""
        ordered = sorted(self.new, key=lambda row: row.event_id)
        _insert([row for row in ordered if row.original is None])
        corrections = [row for row in ordered if row.original is not None]
        if corrections or any(row.hold_id for row in ordered):
            self._find_new_keys()
        for row in corrections:
            # Its key is known only now where it came in the same body.
            row.original = row.original
        _insert(corrections)
        if corrections:
            self._find_new_keys()

    def _claim_of(self, row: UsageEvent) -> Claim:
        return claim_of(row, depth=self._depths.get(row.event_id, 1))

    def _find_new_keys(self) -> None:
        wanted = {row.event_id: row for row in self.new}
        for event_id, key in UsageEvent.objects.filter(event_id__in=wanted).values_list("event_id", "pk"):
            wanted[event_id].pk = key


def _insert(rows: Sequence[UsageEvent]) -> None:
    columns = [column.name for column in UsageEvent._meta.concrete_fields if not column.primary_key]
    names = [column.attname for column in UsageEvent._meta.concrete_fields if not column.primary_key]
    insert_many(model=UsageEvent, columns=columns, rows=([getattr(row, name) for name in names] for row in rows))


def claim_of(row: UsageEvent, *, depth: int) -> Claim:
    """Return what a row that stands so deep in its chain says its original cost."""
    return Claim(depth, row.occurred_at, row.event_id, Cost(row.booked_cost, row.is_estimated))


def says_the_same(row: UsageEvent, item: UsageItem, *, provider: str | None) -> bool:
    """Tell whether an item is the event that is there; `provider`, canonical, may be left unsaid (None)."""
    said = (
        item.connection_id,
        item.model,
        item.occurred_at,
        item.input_tokens,
        item.output_tokens,
        item.cached_input_tokens,
        item.cost_usd,
        item.hold_id or "",
        item.corrects_event_id or "",
    )
    stored = (
        row.connection.connection_id,
        row.model,
        row.occurred_at,
        row.input_tokens,
        row.output_tokens,
        row.cached_input_tokens,
        row.cost_usd,
        row.hold_id,
        row.corrects_event_id,
    )
    # A correction that says nothing of it has its original's.
    is_unsaid = item.is_overage is None and bool(row.corrects_event_id)
    is_same_overage = is_unsaid or (item.is_overage or False) == row.is_overage
    is_same_provider = provider in (None, row.connection.provider)
    return said == stored and is_same_overage and is_same_provider
