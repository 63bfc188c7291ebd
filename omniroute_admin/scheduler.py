"""The scheduler of periodic work: Celery's own, which notices that the clock was set back (SPEC 6)."""

from datetime import timedelta
from typing import Any

from celery.beat import PersistentScheduler, ScheduleEntry
from celery.utils.time import maybe_make_aware

_TOLERATED = timedelta(seconds=1)


class Scheduler(PersistentScheduler):
    """Sends each task in its rhythm, whatever happens to the clock.

    Celery counts from when a task was last sent. After the clock was set back an hour that lies in the future, and
    nothing at all would be sent for an hour.
    """

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Send what is due, and return the seconds until the next look."""
        late = [entry for entry in self.schedule.values() if _was_sent_later_than_now(entry)]
        for entry in late:
            entry.last_run_at = entry.default_now()
        if late:
            self._heap = None  # it is ordered by the old clock
        return float(super().tick(*args, **kwargs))


def _was_sent_later_than_now(entry: ScheduleEntry) -> bool:
    return bool(maybe_make_aware(entry.last_run_at) > maybe_make_aware(entry.default_now()) + _TOLERATED)
