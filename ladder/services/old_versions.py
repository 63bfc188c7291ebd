"""Remove what is old of who changed what, and keep what is still asked of it (SPEC 3; M6).

Of each row the version that held at the horizon stays, and so does its last one, live or deleted. What prices events
stays as far back as events are still taken, or corrected.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any

from django.contrib.admin.models import LogEntry
from django.contrib.sessions.models import Session as FormerSession
from django.db import models, transaction
from django.db.models import Count

from ladder.models import Connection, UsageEvent
from ladder.services.pruning import Removed, Run
from omniroute_admin.common.core.forgetting import PastVersion, forgettable_versions
from omniroute_admin.common.core.periods import Part
from omniroute_admin.common.kinds import Kind, all_kinds
from omniroute_admin.common.models_sign_in import Session
from omniroute_admin.common.selectors.horizons import audit_name, horizon_of
from omniroute_admin.common.services.horizons import move_horizon, note_removed

_PRICES_BY: dict[str, tuple[str, ...]] = {
    "billing": ("provider", "auth_type"),
    "tier-override": ("provider", "model_pattern"),
    "free-provider": ("provider",),
    "price-source": ("provider",),
    "thresholds": (),
    "connection": (),
}
"""The kinds by which an event is judged as of its instant, and what a version of each speaks of (M6)."""

_SPEAKS_OF = {**_PRICES_BY, "price": ("provider", "model", "source")}
"""Of a price: whether a list ever told it decides whether `sync_prices` brings it back."""

_ROWS_AT_ONCE = 200


def prune_versions(*, before: datetime, run: Run) -> tuple[Removed, ...]:
    """Remove the versions that are older than `before`, kind by kind, the log of the admin, and sessions that ended.

    The history of a connection that is not deleted stays whole: an import reads from it what somebody edited.
    """
    priced_from = _priced_from()
    removed = []
    for kind in all_kinds():
        since = before if kind.key not in _PRICES_BY else None if priced_from is None else min(before, priced_from)
        count = 0 if since is None else _prune_kind(kind, since, run)
        removed.append(Removed(kind.model._meta.db_table, count))
    log = LogEntry.objects.filter(action_time__lt=before)
    # Those of Django's own table too, in which they were before.
    ended = [model.objects.filter(expire_date__lt=run.now) for model in (Session, FormerSession)]
    return *removed, _remove(log, run), *(_remove(rows, run) for rows in ended)


def _priced_from() -> datetime | None:
    """Return the earliest instant whose catalogue an event or a correction may ask for, None where it is any instant.

    What happened before the horizon of the ledger is taken only where it corrects an event that is still there.
    """
    horizon = horizon_of(Part.LEDGER)
    oldest = UsageEvent.objects.order_by("booked_at").values_list("booked_at", flat=True).first()
    return horizon if horizon is None or oldest is None else min(horizon, oldest)


def _prune_kind(kind: Kind, before: datetime, run: Run) -> int:
    count = 0
    for ids in _forgettable(kind, before, run.batch):
        count += len(ids) if run.dry_run else _forget(kind, ids, before, run)
    return count


def _forget(kind: Kind, ids: list[int], before: datetime, run: Run) -> int:
    name = audit_name(kind.key)
    with transaction.atomic():
        move_horizon(name=name, before=before, now=run.now)
        gone: int = kind.versions.filter(history_id__in=ids).delete()[0]
        note_removed(name=name, count=gone, now=run.now)
    run.progress(gone)
    return gone


def _forgettable(kind: Kind, before: datetime, batch: int) -> Iterator[list[int]]:
    for rows in _in_parts(_rows(kind, before), _ROWS_AT_ONCE):
        versions = kind.versions.filter(id__in=rows).order_by("id", "history_id")
        columns = ("history_id", "history_date", "history_type", *_SPEAKS_OF.get(kind.key, ()))
        told = versions.values_list("id", *columns)
        gone = [
            history_id
            for _, ones in groupby(told, key=lambda row: row[0])
            for history_id in forgettable_versions(versions=[_version(*row[1:]) for row in ones], before=before)
        ]
        yield from _in_parts(gone, batch)


def _version(history_id: int, at: datetime, kind: str, *key: Any) -> PastVersion:
    return PastVersion(history_id, at, kind == "-", key)


def _rows(kind: Kind, before: datetime) -> list[int]:
    """Return the keys of the rows that have several old versions."""
    old = kind.versions.filter(history_date__lte=before)
    if kind.key == "connection":
        old = old.exclude(id__in=Connection.objects.live().order_by().values("pk"))
    several = old.values("id").annotate(count=Count("history_id")).filter(count__gt=1)
    return sorted(several.values_list("id", flat=True))


def _remove(rows: models.QuerySet[Any], run: Run) -> Removed:
    table = rows.model._meta.db_table
    if run.dry_run:
        return Removed(table, rows.count())
    count = 0
    while keys := list(rows.order_by("pk").values_list("pk", flat=True)[: run.batch]):
        rows.filter(pk__in=keys).delete()
        count += len(keys)
        run.progress(len(keys))
    return Removed(table, count)


def _in_parts(keys: Sequence[int], size: int) -> Iterable[list[int]]:
    return (list(keys[start : start + size]) for start in range(0, len(keys), size))
