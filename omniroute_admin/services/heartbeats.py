"""The signs of life of periodic processes and tasks."""

from datetime import datetime

from django.db.models import F

from omniroute_admin.common.models import Heartbeat, TaskRun


def record_beat(*, name: str, now: datetime) -> None:
    """Note that the process of that name lived at `now` (aware, UTC). Repeating it changes only the time."""
    Heartbeat.objects.update_or_create(name=name, defaults={"beat_at": now})


def record_run(*, task: str, is_success: bool, took_seconds: float, now: datetime) -> None:
    """Note how a run of a task ended at `now`, and how long it took."""
    said = {"took_milliseconds": round(took_seconds * 1000), "succeeded_at" if is_success else "failed_at": now}
    TaskRun.objects.get_or_create(name=task)
    TaskRun.objects.filter(name=task).update(**said, failures=F("failures") + int(not is_success))
