"""Thin the history by age, and change no present verdict by it (Q5)."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

import msgspec
from django.db import transaction

from ladder.core.cooldown import RETRY_AFTER_CAP
from ladder.core.readings.thinning import PastReading, superfluous_readings
from ladder.core.values import ReadingStatus
from ladder.models import Connection, QuotaReading, QuotaWindow, RefusalReport
from ladder.services.live_connections import locked

KEEP_ALL_FOR = timedelta(days=7)
"""Readings younger than this all stay: as far back as the screens show every one."""

BATCH = 2000
"""How many rows one transaction deletes at most: reporters wait no longer for it than that takes."""


class ThinningReport(msgspec.Struct, frozen=True):
    """How many windows have readings old enough, and how many readings went."""

    windows: int
    deleted: int


def thin_readings(*, now: datetime, keep_all_for: timedelta = KEEP_ALL_FOR, batch: int = BATCH) -> ThinningReport:
    """Delete of the readings older than `keep_all_for` those that nothing needs, `batch` in one transaction at most.

    What stays is judged among the old ones alone: a younger one that is corrected later must not be what an older one
    was given up for. Done again, it finds nothing more to delete. No verdict changes, so the revision stays.
    """
    older_than = now - keep_all_for
    windows = windows_read_before(older_than)
    deleted = sum(
        sum(remove_readings(window=one, older_than=older_than, which=_superfluous, batch=batch)) for one in windows
    )
    return ThinningReport(windows=len(windows), deleted=deleted)


def _superfluous(newest_first: Iterator[PastReading]) -> list[int]:
    return superfluous_readings(newest_first=newest_first)


def windows_read_before(at: datetime) -> list[QuotaWindow]:
    """Return the windows that have readings older than an instant; two queries."""
    old = QuotaReading.objects.filter(observed_at__lt=at)
    return list(QuotaWindow.objects.filter(pk__in=old.order_by().values("window")).order_by("pk"))


def remove_readings(
    *,
    window: QuotaWindow,
    older_than: datetime,
    which: Callable[[Iterator[PastReading]], list[int]],
    batch: int,
    removed: Callable[[int], None] = lambda count: None,
) -> Iterator[int]:
    """Delete those of a window's older readings that `which` names, `batch` in one transaction, and yield how many.

    `removed` is called in the transaction.
    """
    while True:
        with transaction.atomic():
            # The lock of whoever writes readings: none is corrected while this looks which ones can go.
            locked(Connection.objects.filter(pk=window.connection_id)).get()
            gone = which(newest_readings_first(window_key=window.pk, older_than=older_than))
            QuotaReading.objects.filter(pk__in=gone[:batch]).delete()
            removed(len(gone[:batch]))
        yield len(gone[:batch])
        if len(gone) <= batch:
            return


def newest_readings_first(*, window_key: int, older_than: datetime) -> Iterator[PastReading]:
    """Yield the readings of a window that are older than an instant, the newest first; one query."""
    rows = QuotaReading.objects.filter(window=window_key, observed_at__lt=older_than).order_by("-observed_at")
    columns = ("id", "observed_at", "remaining_percent", "unlimited", "status", "reset_at")
    for pk, observed_at, percent, unlimited, status, reset_at in rows.values_list(*columns):
        yield PastReading(pk, observed_at, percent, unlimited, ReadingStatus(status), reset_at)


def thin_refusals(*, now: datetime, batch: int = BATCH) -> int:
    """Delete reports of refusals that no cooldown can stand on any more and return how many; see `RefusalReport`."""
    old = RefusalReport.objects.filter(occurred_at__lt=now - RETRY_AFTER_CAP - timedelta(days=1))
    keys = list(old.order_by().values_list("pk", flat=True))
    for start in range(0, len(keys), batch):
        RefusalReport.objects.filter(pk__in=keys[start : start + batch]).delete()
    return len(keys)
