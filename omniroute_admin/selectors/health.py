"""What the health pages report, read from the database."""

from datetime import datetime, timedelta
from functools import cache

import msgspec
from django.conf import settings
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from omniroute_admin.common.models import Heartbeat

MISSED_BEATS = 3


class PeriodicWork(msgspec.Struct, frozen=True):
    """Whether scheduler and worker live: the last heartbeat, and whether it is late (None: there never was one)."""

    last_beat_at: datetime | None
    is_late: bool


def periodic_work(*, now: datetime) -> PeriodicWork:
    """Return the last heartbeat; it is late after three missed ones, or where there never was one."""
    beat = Heartbeat.objects.filter(name="beat").values_list("beat_at", flat=True).first()
    allowed = timedelta(seconds=MISSED_BEATS * settings.HEARTBEAT_SECONDS)
    return PeriodicWork(last_beat_at=beat, is_late=beat is None or now - beat > allowed)


def unapplied_migrations() -> list[str]:
    """Return the names of the migrations that this version ships and the database lacks, as `app.name`."""
    applied = set(MigrationRecorder(connection).applied_migrations())
    return sorted(f"{app}.{name}" for app, name in _shipped_migrations() - applied)


@cache
def _shipped_migrations() -> frozenset[tuple[str, str]]:
    return frozenset(MigrationLoader(None).disk_migrations)
