"""Remove what is old of the timeline; no decision depends on any of it (SPEC 3)."""

from datetime import datetime

from django.db import transaction
from django.db.models import Model

from ladder.models import RungFlip, RungSample
from ladder.services.pruning import Removed, Run, delete_keys, keys_in_order
from omniroute_admin.common.core.periods import Part
from omniroute_admin.common.services.horizons import move_horizon, note_removed


def prune_timeline(*, before: datetime, run: Run) -> tuple[Removed, ...]:
    """Remove the samples and the flips that are older than `before`."""
    return tuple(Removed(model._meta.db_table, _prune(model, before, run)) for model in (RungSample, RungFlip))


def _prune(model: type[Model], before: datetime, run: Run) -> int:
    old, count = model._default_manager.filter(at__lt=before), 0
    if run.dry_run:
        return old.count()
    for keys in keys_in_order(old, batch=run.batch):
        with transaction.atomic():
            move_horizon(name=Part.HISTORY, before=before, now=run.now)
            delete_keys(model, keys)
            note_removed(name=Part.HISTORY, count=len(keys), now=run.now)
        count += len(keys)
        run.progress(len(keys))
    return count
