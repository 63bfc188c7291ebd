"""Writing many rows with their history in a handful of statements; one row at a time would take minutes."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from django.contrib.auth import get_user_model
from django.db import models
from simple_history.utils import bulk_create_with_history, bulk_update_with_history

from omniroute_admin.common.history import LONGEST_REASON, Actor

BATCH = 500

Row = TypeVar("Row", bound=models.Model)


def create_rows(
    *,
    model: type[Row],
    rows: Sequence[Row],
    actor: Actor,
    reason: str,
    now: datetime,
    written: Callable[[int], object] = bool,
) -> None:
    """Insert rows and their history; `written` hears after every batch how many rows it had."""
    for batch in _batches(rows):
        bulk_create_with_history(batch, model, **_who(actor=actor, reason=reason, now=now))
        written(len(batch))


def update_rows(
    *,
    model: type[Row],
    rows: Sequence[Row],
    fields: Sequence[str],
    actor: Actor,
    reason: str,
    now: datetime,
    written: Callable[[int], object] = bool,
) -> None:
    """Save the named fields of rows, with history where the model keeps one."""
    for batch in _batches(rows):
        if hasattr(model, "history"):
            bulk_update_with_history(batch, model, list(fields), **_who(actor=actor, reason=reason, now=now))
        else:
            model._default_manager.bulk_update(batch, list(fields))
        written(len(batch))


def delete_rows(*, model: type[Row], rows: Sequence[Row], actor: Actor, reason: str, now: datetime) -> None:
    """Delete rows of a model with history; the last line of each one's history says who removed it and why."""
    past: Any = model.history.model  # type: ignore[attr-defined]
    who = {"history_user_id": actor.user_id, "history_actor": actor.name, "history_date": now, "history_type": "-"}
    who["history_change_reason"] = reason[:LONGEST_REASON] or None
    for batch in _batches(rows):
        past.objects.bulk_create(
            past(**who, **{column.attname: getattr(row, column.attname) for column in past.tracked_fields})
            for row in batch
        )
        gone = model._default_manager.filter(pk__in=[row.pk for row in batch])
        # Past the signals: they would write the history again, row by row.
        gone._raw_delete(gone.db)


def _batches(rows: Sequence[Row]) -> list[Sequence[Row]]:
    return [rows[start : start + BATCH] for start in range(0, len(rows), BATCH)]


def _who(*, actor: Actor, reason: str, now: datetime) -> dict[str, Any]:
    user = get_user_model()._default_manager.filter(pk=actor.user_id).first() if actor.user_id else None
    return {
        "batch_size": BATCH,
        "default_user": user,
        "default_change_reason": reason or None,
        "default_date": now,
        "custom_historical_attrs": {"history_actor": actor.name},
    }
