"""Remove what is old of the timeline; no decision depends on any of it (SPEC 3)."""

from datetime import datetime

from django.db import transaction

from ladder.models import RungFlip, RungSample
from ladder.services.pruning import BATCH, Progress, Removed, delete_keys, keys_in_order, nobody
from omniroute_admin.common.core.periods import Part
from omniroute_admin.common.services.horizons import move_horizon, note_removed


def prune_timeline(
    *, before: datetime, now: datetime, batch: int = BATCH, progress: Progress = nobody
) -> tuple[Removed, ...]:
    """Remove the samples and the flips that are older than `before`."""
    removed = []
    for model in (RungSample, RungFlip):
        old, count = model._default_manager.filter(at__lt=before), 0
        for keys in keys_in_order(old, batch=batch):
            with transaction.atomic():
                move_horizon(name=Part.HISTORY, before=before, now=now)
                delete_keys(model, keys)
                note_removed(name=Part.HISTORY, count=len(keys), now=now)
            count += len(keys)
            progress(len(keys))
        removed.append(Removed(model._meta.db_table, count))
    return tuple(removed)
