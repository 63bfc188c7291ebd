"""What the health pages report, read from the database."""

from datetime import datetime, timedelta
from enum import StrEnum
from functools import cache

import msgspec
from django.conf import settings
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from omniroute_admin.common.models import Heartbeat

MISSED_BEATS = 3
GRACE = timedelta(seconds=60)


class PeriodicState(StrEnum):
    """Whether scheduler and worker live; `starting` is the first minute of a process, in which nobody is late."""

    RUNNING = "running"
    STARTING = "starting"
    LATE = "late"


class PeriodicWork(msgspec.Struct, frozen=True):
    """The last heartbeat (None: there never was one), and what it tells."""

    last_beat_at: datetime | None
    state: PeriodicState


def periodic_work(*, now: datetime, started_at: datetime) -> PeriodicWork:
    """Return the last heartbeat; it is late after three missed ones, but not in the first minute since `started_at`."""
    beat = Heartbeat.objects.filter(name="beat").values_list("beat_at", flat=True).first()
    allowed = timedelta(seconds=MISSED_BEATS * settings.HEARTBEAT_SECONDS)
    if beat is not None and now - beat <= allowed:
        return PeriodicWork(last_beat_at=beat, state=PeriodicState.RUNNING)
    is_young = timedelta(0) <= now - started_at <= GRACE
    return PeriodicWork(last_beat_at=beat, state=PeriodicState.STARTING if is_young else PeriodicState.LATE)


def unapplied_migrations() -> list[str]:
    """Return the names of the migrations that this version ships and the database lacks, as `app.name`."""
    applied = set(MigrationRecorder(connection).applied_migrations())
    return sorted(f"{app}.{name}" for app, name in _shipped_migrations() - applied)


@cache
def _shipped_migrations() -> frozenset[tuple[str, str]]:
    return frozenset(MigrationLoader(None).disk_migrations)
