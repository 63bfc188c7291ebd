"""Remove readings for good that no verdict and no page needs any more (Q5)."""

from collections.abc import Iterator
from datetime import datetime

from ladder.core.readings.pace import life_of, start_by_name
from ladder.core.readings.thinning import PastReading, forgettable_readings
from ladder.models import QuotaWindow
from ladder.selectors.connection_page import read_earlier_resets
from ladder.services.pruning import Removed, Run
from ladder.services.thinning import newest_readings_first, remove_readings, windows_read_before
from omniroute_admin.common.core.periods import Part
from omniroute_admin.common.services.horizons import move_horizon, note_removed


def prune_readings(*, before: datetime, run: Run) -> Removed:
    """Remove the readings older than `before` but those that are still needed; see `forgettable_readings`.

    The whole present life of a window stays, however long it is: its line and its pace are drawn from it. No verdict
    changes, so the revision stays.
    """
    count = sum(_prune_window(window, before, run) for window in windows_read_before(before))
    return Removed("ladder_quotareading", count)


def _prune_window(window: QuotaWindow, before: datetime, run: Run) -> int:
    older_than = min(before, _life_start(window, run.now) or before)

    def which(newest_first: Iterator[PastReading]) -> list[int]:
        return forgettable_readings(newest_first=newest_first, before=before)

    def removed(count: int) -> None:
        if count:
            move_horizon(name=Part.READINGS, before=before, now=run.now)
            note_removed(name=Part.READINGS, count=count, now=run.now)

    if run.dry_run:
        return len(which(newest_readings_first(window_key=window.pk, older_than=older_than)))
    total = 0
    for count in remove_readings(window=window, older_than=older_than, which=which, batch=run.batch, removed=removed):
        total += count
        run.progress(count)
    return total


def _life_start(window: QuotaWindow, now: datetime) -> datetime | None:
    """Return when the present life of a window began, as its page reckons it."""
    reset_at = window.reset_at
    if reset_at is None or reset_at <= now:
        return None
    is_named = start_by_name(window=window.window, reset_at=reset_at) is not None
    earlier = {} if is_named else read_earlier_resets(keys=[window.pk], now=now)
    life = life_of(window=window.window, reset_at=reset_at, earlier_reset_at=earlier.get(window.pk))
    return None if life is None else life.started_at
