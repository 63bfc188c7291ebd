"""The sign of life of periodic processes."""

from datetime import datetime

from omniroute_admin.common.models import Heartbeat


def record_beat(*, name: str, now: datetime) -> None:
    """Note that the process of that name lived at `now` (aware, UTC). Repeating it changes only the time."""
    Heartbeat.objects.update_or_create(name=name, defaults={"beat_at": now})
