"""Checks of the database: whether it answers, is of this version, whole, and can take more."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import DatabaseError, Error, connection
from django.db.migrations.recorder import MigrationRecorder

from omniroute_admin.common import clock
from omniroute_admin.doctor.configuration import is_open_to_others
from omniroute_admin.doctor.report import Check, Needs, Said, error, not_applicable, ok, some, warning
from omniroute_admin.selectors.health import shipped_migrations, unapplied_migrations

MANY_CONNECTIONS, TOO_MANY_CONNECTIONS = 0.8, 0.95
SKEW, TOO_MUCH_SKEW = timedelta(seconds=5), timedelta(seconds=60)
"""Up to a minute is borne (SPEC 6)."""

_OWN_APPS = frozenset({"common", "ladder", "billing_catalog", "omniroute_admin"})


def check_reachable(now: datetime) -> Said:
    """Look whether the database answers, and which it is."""
    try:
        connection.ensure_connection()
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except Error as problem:
        return error(
            f"The database does not answer ({str(problem).strip().partition(chr(10))[0]}): every pool is refused.",
            "Start it, or mend DATABASE_URL; processes that run find it again by themselves.",
        )
    version = ".".join(map(str, connection.get_database_version()))
    return ok(f"{connection.display_name} {version} answers.")


def check_migrations(now: datetime) -> Said:
    """Look whether database and product are of one version."""
    missing = unapplied_migrations()
    if missing:
        return error(f"The database lacks {some(missing)}.", "Run: python manage.py migrate")
    applied = {f"{app}.{name}" for app, name in MigrationRecorder(connection).applied_migrations() if app in _OWN_APPS}
    newer = sorted(applied - set(shipped_migrations()))
    if newer:
        return warning(
            f"The database is of a newer version: it has {some(newer)}.",
            "Run the newer version of the product here too.",
        )
    return ok(f"All {len(shipped_migrations())} migrations are applied.")


def check_revision(now: datetime) -> Said:
    """Look whether the one row of the revision is there, without which nothing is decided."""
    row = _one("SELECT value FROM common_revision WHERE id = 1")
    if row is None:
        return error("The row of the revision is gone: nothing can be decided.", "Run: python manage.py migrate")
    return ok(f"The revision is {row[0]}.")


def check_sqlite(now: datetime) -> Said:
    """Look whether the SQLite file is whole and has its write-ahead log."""
    if connection.vendor != "sqlite":
        return not_applicable("The database is no SQLite file.")
    try:
        found = _all("PRAGMA quick_check(3)")
    except DatabaseError as problem:
        found = [(str(problem),)]
    if found != [("ok",)]:
        return error(
            f"The SQLite file is damaged ({some([str(row[0]).partition(chr(10))[0] for row in found])}).",
            "End everything, keep the file, and restore the last backup: manage.py restore --replace --yes FILE",
        )
    (journal,) = _one("PRAGMA journal_mode")
    if journal != "wal":
        return error(
            f"SQLite keeps its journal as {journal!r}, not as a write-ahead log: readers and writers block each other.",
            "Put the file on a disk of this machine, on no network share.",
        )
    return ok("The SQLite file is whole and has its write-ahead log.")


def check_sqlite_mode(now: datetime) -> Said:
    """Look who may read the SQLite file."""
    if connection.vendor != "sqlite":
        return not_applicable("The database is no SQLite file.")
    file = Path(settings.DATABASES["default"]["NAME"])
    if is_open_to_others(file):
        return warning(
            f"Every user of this machine may read {file}, with the hashes of passwords and keys in it.",
            f"Run: chmod 600 {file}*",
        )
    return ok("No other user of this machine may read the database.")


def check_connections(now: datetime) -> Said:
    """Look how many connections PostgreSQL has left."""
    if connection.vendor != "postgresql":
        return not_applicable("SQLite has no limit of connections.")
    (used,) = _one("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'")
    (most,) = _one(
        "SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int"
    )
    says = f"{used} of {most} connections of PostgreSQL are taken."
    if used < MANY_CONNECTIONS * most:
        return ok(says)
    return (error if used >= TOO_MANY_CONNECTIONS * most else warning)(
        says, "Raise max_connections, or run fewer web processes and workers: each holds one (docs/scaling.md)."
    )


def check_clock(now: datetime) -> Said:
    """Compare the clock of the database's machine with this one's."""
    if connection.vendor != "postgresql":
        return not_applicable("The database has this machine's clock.")
    (there,) = _one("SELECT clock_timestamp()")
    # Not `now`: that is some checks old.
    apart = abs(there - clock.now())
    says = f"The clocks of the database and this machine are {apart.total_seconds():.1f} s apart."
    if apart < SKEW:
        return ok(says)
    return (error if apart > TOO_MUCH_SKEW else warning)(
        says, "Let both follow a time server: a minute is borne, and times of PostgreSQL decide nothing here."
    )


def _one(statement: str) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchone()


def _all(statement: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return list(cursor.fetchall())


REACHABLE = Check("database", Needs.NOTHING, check_reachable)
MIGRATED = Check("migrations", Needs.DATABASE, check_migrations)
CHECKS = (
    Check("revision", Needs.TABLES, check_revision),
    Check("sqlite_file", Needs.DATABASE, check_sqlite),
    Check("sqlite_mode", Needs.DATABASE, check_sqlite_mode),
    Check("connections_of_postgresql", Needs.DATABASE, check_connections),
    Check("clock", Needs.DATABASE, check_clock),
)
