"""The rows of holds: how usage settles them, and how they ended (M2)."""

from collections.abc import Collection, Mapping
from datetime import datetime

import msgspec

from ladder.core.values import Rung
from ladder.mapping import rung_named
from ladder.models import SpendHold, UsageEvent
from omniroute_admin.common.services.statements import update_many


class HoldEnd(msgspec.Struct, frozen=True):
    """When and how a hold ended: `released`, `settled` or `expired`; `event_id` is the usage that names it, if any."""

    at: datetime
    how: str
    event_id: str | None


def rungs_of_holds(*, hold_ids: Collection[str]) -> set[Rung]:
    """Return the rungs on which these holds reserve; a hold never changes its rung."""
    if not hold_ids:
        return set()
    words = SpendHold.objects.filter(hold_id__in=hold_ids).order_by().values_list("rung", flat=True).distinct()
    return {rung_named(word) for word in words}


def settle_holds(*, events: Mapping[str, UsageEvent]) -> None:
    """Settle the holds that these events name, by hold id, under the locks of their rungs.

    One that was settled already stays so. One that is over or was released is settled in the books only: it reserves
    nothing any more, and keeps its end.
    """
    if not events:
        return
    open_ones = SpendHold.objects.filter(hold_id__in=events, settled_by=None).order_by("pk")
    rows = [[events[hold_id].pk, key] for hold_id, key in open_ones.values_list("hold_id", "pk")]
    update_many(model=SpendHold, columns=["settled_by"], rows=rows)


def end_of_hold(row: SpendHold, *, now: datetime) -> HoldEnd | None:
    """Return how a hold ended, None while it acts. Of several ends the first one was it (M2)."""
    settled = row.settled_by
    ends = [(settled.received_at, "settled")] if settled is not None else []
    # One that expired is marked with its own end as release later.
    if row.released_at is not None and row.released_at < row.expires_at:
        ends.append((row.released_at, "released"))
    if row.expires_at <= now or row.released_at == row.expires_at:
        ends.append((row.expires_at, "expired"))
    if not ends:
        return None
    at, how = min(ends, key=lambda end: end[0])
    return HoldEnd(at, how, None if settled is None else settled.event_id)
