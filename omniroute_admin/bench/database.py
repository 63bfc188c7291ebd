"""The database of a run: one of its own, never the installation's."""

from pathlib import Path

from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.db import DatabaseError, connection, connections

from ladder.models import Connection
from omniroute_admin.bench.errors import BenchError
from omniroute_admin.environment import Environment

_OPTION = "--database-url"


def sqlite_url(file: Path) -> str:
    """Return the address of a SQLite file."""
    return f"sqlite:///{file}"


def use_database(url: str, *, may_hold_connections: bool) -> None:
    """Let this process work on another database from now on, with every table made.

    Raises:
        BenchError: it cannot be used, or holds connections and must not; nothing was changed in it then.
    """
    try:
        entry = Environment({_OPTION: url}).database(_OPTION, "")
    except ImproperlyConfigured as error:
        raise BenchError(str(error)) from None
    connections["default"].close()
    del connections["default"]
    connections.settings["default"] = connections.configure_settings({"default": entry})["default"]
    try:
        if _holds_connections() and not may_hold_connections:
            raise BenchError(f"{_OPTION}: that database holds connections. Name an empty one, or say --use-existing.")
        call_command("migrate", interactive=False, verbosity=0)
    except DatabaseError as error:
        raise BenchError(f"{_OPTION}: the database cannot be used: {error}".strip()) from None


def _holds_connections() -> bool:
    with connection.cursor() as cursor:
        tables = connection.introspection.table_names(cursor)
    return Connection._meta.db_table in tables and Connection.objects.exists()
