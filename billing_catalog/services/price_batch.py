"""Many prices from now on, in a handful of statements; one call each would hold the database for minutes.

What becomes of each is what `create_price` and `update_price` make of it alone.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from billing_catalog.models import LoadedFact, ModelPrice
from billing_catalog.selectors.prices import prices_ahead
from billing_catalog.services.bulk import create_rows, update_rows
from billing_catalog.services.prices import CONTENT, ENDED_PRICE, changed_price, clean_values, ended_key
from billing_catalog.services.rows import refused_as_conflict
from omniroute_admin.common.history import Actor
from omniroute_admin.common.services.revision import deciding_write


class Wanted(msgspec.Struct, frozen=True):
    """One model's price from now on: what of the price in force changes, or, without one, what the new one says.

    The values are good: names canonical, every field checked.
    """

    price: ModelPrice | None
    values: Mapping[str, Any]


def set_prices(*, wanted: Sequence[Wanted], actor: Actor, reason: str, now: datetime) -> None:
    """Give each of these models its price from now on; no model stands there twice.

    Raises:
        Conflict: another writer gave one of them a price at the same moment; nothing is written.
    """
    changed, new = list(_changed(wanted, now)), list(_new([one.values for one in wanted if one.price is None], now))
    ended = [one.price for one in wanted if one.price is not None and one.price.effective_from < now]
    rewritten = [row for row in changed if row.pk is not None]
    for row in ended:
        row.effective_to = now
    by: dict[str, Any] = {"model": ModelPrice, "actor": actor, "reason": reason, "now": now}
    with refused_as_conflict(), deciding_write(wide_at=now):
        update_rows(rows=ended, fields=["effective_to"], **by)
        update_rows(rows=rewritten, fields=CONTENT, **by)
        create_rows(rows=[*(row for row in changed if row.pk is None), *new], **by)
        _forget_ends([*new, *(row for row in changed if row.effective_to is None)])


def _changed(wanted: Iterable[Wanted], now: datetime) -> Iterable[ModelPrice]:
    for one in wanted:
        if one.price is not None:
            row = changed_price(old=one.price, changes=one.values)
            if one.price.effective_from < now:
                row.pk, row.effective_from, row._state.adding = None, now, True
            yield row


def _new(values: Sequence[Mapping[str, Any]], now: datetime) -> Iterable[ModelPrice]:
    """Yield the first prices of models; each ends where one begins that is planned already."""
    planned: dict[tuple[str, str], datetime] = {}
    for row in reversed(prices_ahead(now=now, providers={one["provider"] for one in values}) if values else []):
        planned[row.provider, row.model] = row.effective_from
    for one in values:
        row = ModelPrice(**clean_values(one), effective_from=now)
        row.effective_to = planned.get((row.provider, row.model))
        yield row


def _forget_ends(rows: Iterable[ModelPrice]) -> None:
    """Let sync_prices keep these models again, which somebody gave a price."""
    keys = {ended_key(provider=row.provider, model=row.model) for row in rows}
    marks = LoadedFact.objects.filter(kind=ENDED_PRICE)
    if found := keys.intersection(marks.values_list("key", flat=True)):
        marks.filter(key__in=found).delete()
