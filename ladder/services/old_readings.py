"""Remove readings for good that no verdict and no page needs any more (Q5)."""

from datetime import datetime

from ladder.core.pace import life_of, start_by_name
from ladder.core.thinning import forgettable_readings
from ladder.models import QuotaWindow
from ladder.selectors.connection_page import read_earlier_resets
from ladder.services.pruning import BATCH, Progress, Removed, nobody
from ladder.services.thinning import remove_readings, windows_read_before
from omniroute_admin.common.core.periods import Part
from omniroute_admin.common.services.horizons import move_horizon, note_removed


def prune_readings(*, before: datetime, now: datetime, batch: int = BATCH, progress: Progress = nobody) -> Removed:
    """Remove the readings older than `before` but those that are still needed; see `forgettable_readings`.

    The whole present life of a window stays, however long it is: its line and its pace are drawn from it. No verdict
    changes, so the revision stays.
    """
    windows, count = windows_read_before(before), 0
    if windows:
        move_horizon(name=Part.READINGS, before=before, now=now)
    for window in windows:
        removals = remove_readings(
            window=window,
            older_than=min(before, _life_start(window, now) or before),
            which=lambda rows: forgettable_readings(newest_first=rows, before=before),
            batch=batch,
            removed=lambda gone: note_removed(name=Part.READINGS, count=gone, now=now),
        )
        for gone in removals:
            count += gone
            progress(gone)
    return Removed("ladder_quotareading", count)


def _life_start(window: QuotaWindow, now: datetime) -> datetime | None:
    """Return when the present life of a window began, as its page reckons it."""
    reset_at = window.reset_at
    if reset_at is None or reset_at <= now:
        return None
    is_named = start_by_name(window=window.window, reset_at=reset_at) is not None
    earlier = {} if is_named else read_earlier_resets(keys=[window.pk], now=now)
    life = life_of(window=window.window, reset_at=reset_at, earlier_reset_at=earlier.get(window.pk))
    return None if life is None else life.started_at
