"""Whether scheduler and worker live, told by their heartbeat."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec
from django.conf import settings

from omniroute_admin.common.models import Heartbeat

CHAIN, SCHEDULER, WORKER = "beat", "scheduler", "worker"

PROCESSES: Mapping[str, str] = {CHAIN: "chain", SCHEDULER: "scheduler", WORKER: "worker"}
"""Whose heartbeats there are, and what the metrics call them: the chain is scheduler, broker and worker together."""

MISSED_BEATS = 3
GRACE = timedelta(seconds=60)
_TICK = timedelta(microseconds=1)


class PeriodicState(StrEnum):
    """Whether scheduler and worker live; `starting` is the first minute of a process, in which nobody is late."""

    RUNNING = "running"
    STARTING = "starting"
    LATE = "late"


class PeriodicWork(msgspec.Struct, frozen=True):
    """The last heartbeat (None: there never was one), what it tells, and when it will be late if no other comes."""

    last_beat_at: datetime | None
    state: PeriodicState
    late_at: datetime | None


def periodic_work(*, now: datetime, started_at: datetime) -> PeriodicWork:
    """Return the last heartbeat; it is late after three missed ones, but not in the first minute since `started_at`."""
    beat = Heartbeat.objects.filter(name=CHAIN).values_list("beat_at", flat=True).first()
    allowed = timedelta(seconds=MISSED_BEATS * settings.HEARTBEAT_SECONDS)
    if beat is not None and now - beat <= allowed:
        return PeriodicWork(beat, PeriodicState.RUNNING, beat + allowed + _TICK)
    if timedelta(0) <= now - started_at <= GRACE:
        return PeriodicWork(beat, PeriodicState.STARTING, started_at + GRACE + _TICK)
    return PeriodicWork(beat, PeriodicState.LATE, None)
