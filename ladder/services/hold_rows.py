"""The rows of holds: how usage settles them (M2)."""

from collections.abc import Collection, Mapping

from ladder.core.values import Rung
from ladder.mapping import rung_named
from ladder.models import SpendHold, UsageEvent
from omniroute_admin.common.services.statements import update_many


def rungs_of_holds(*, hold_ids: Collection[str]) -> set[Rung]:
    """Return the rungs on which these holds reserve; a hold never changes its rung."""
    if not hold_ids:
        return set()
    words = SpendHold.objects.filter(hold_id__in=hold_ids).order_by().values_list("rung", flat=True).distinct()
    return {rung_named(word) for word in words}


def settle_holds(*, events: Mapping[str, UsageEvent]) -> None:
    """Settle the holds that these events name, by hold id, under the locks of their rungs.

    One that was settled already stays so; one that is over or was released reserves nothing any more.
    """
    if not events:
        return
    open_ones = SpendHold.objects.filter(hold_id__in=events, settled_by=None, released_at=None).order_by("pk")
    rows = [[events[hold_id].pk, key] for hold_id, key in open_ones.values_list("hold_id", "pk")]
    update_many(model=SpendHold, columns=["settled_by"], rows=rows)
