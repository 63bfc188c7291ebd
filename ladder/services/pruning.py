"""What the parts of a pruning have in common: short transactions, one after the other, each leaving nothing half done.

Each part can be stopped at any instant, killed too, and said again does the rest; done to its end, it finds nothing.
"""

from collections.abc import Callable, Iterator
from datetime import datetime

import msgspec
from django.db import models

from omniroute_admin.common.services.statements import delete_many

BATCH = 1_000
"""How many rows one transaction removes at most: whoever writes waits no longer for it than that takes."""

Progress = Callable[[int], None]
"""Is told after each transaction how many rows it removed."""


class Removed(msgspec.Struct, frozen=True):
    """How many rows of a table went, or would go."""

    table: str
    rows: int


def nobody(_count: int) -> None:
    """Hear of progress, and tell nobody."""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One pruning: when it is, how large its steps are, who hears of them; a dry run counts and writes nothing."""

    now: datetime
    batch: int = BATCH
    progress: Progress = nobody
    dry_run: bool = False


def keys_in_order(rows: models.QuerySet[models.Model], *, batch: int) -> Iterator[list[int]]:
    """Yield the keys of rows by batches in their order, however many are removed, or stay, in between."""
    last: int | None = None
    while True:
        further = rows if last is None else rows.filter(pk__gt=last)
        keys = list(further.order_by("pk").values_list("pk", flat=True)[:batch])
        if not keys:
            return
        last = keys[-1]
        yield keys


def delete_keys(model: type[models.Model], keys: list[int]) -> None:
    """Delete rows by their keys alone; what may not be changed by anybody else has no other way out."""
    delete_many(model=model, ids=keys)
