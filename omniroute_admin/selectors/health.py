"""What the health pages report, read from the database."""

from functools import cache

from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder


def unapplied_migrations() -> list[str]:
    """Return the names of the migrations that this version ships and the database lacks, as `app.name`."""
    applied = set(MigrationRecorder(connection).applied_migrations())
    return sorted(f"{app}.{name}" for app, name in _shipped_migrations() - applied)


def shipped_migrations() -> list[str]:
    """Return the names of the migrations that this version ships, as `app.name`."""
    return sorted(f"{app}.{name}" for app, name in _shipped_migrations())


@cache
def _shipped_migrations() -> frozenset[tuple[str, str]]:
    return frozenset(MigrationLoader(None).disk_migrations)
