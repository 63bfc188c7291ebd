"""The revision is read first, and what is decided from is read in the same view of the database (SPEC 3)."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import local

from django.db import connection, transaction

_view = local()
_READ = "SELECT value FROM common_revision WHERE id = 1"
_STEPS = "SELECT rows FROM common_revisionstep WHERE revision > %s AND revision <= %s"
_READ_BOTH = "SELECT value, shown FROM common_revision WHERE id = 1"


def current_revision() -> int:
    """Return the revision as the present transaction sees it; one indexed read."""
    with connection.cursor() as cursor:
        cursor.execute(_READ)
        return int(cursor.fetchone()[0])


def current_token() -> tuple[int, int]:
    """Return the revision, and the count of what screens show beyond it; one indexed read."""
    with connection.cursor() as cursor:
        cursor.execute(_READ_BOTH)
        value, shown = cursor.fetchone()
        return int(value), int(shown)


def touched_since(*, revision: int, now_at: int) -> set[int] | None:
    """Return the keys of the connections whose state alone changed in the steps after `revision` up to `now_at`.

    None where anything else may have, or where a step is not told.
    """
    with connection.cursor() as cursor:
        cursor.execute(_STEPS, [revision, now_at])
        steps = [rows for (rows,) in cursor.fetchall()]
    if len(steps) != now_at - revision or any(rows is None for rows in steps):
        return None
    return {int(key) for rows in steps for key in rows.split(",") if key}


@contextmanager
def read_snapshot() -> Iterator[int]:
    """Open one consistent view of the database and yield its revision, read first (SPEC 3).

    Inside a transaction already open (a write, a test) that transaction is the view.
    """
    with read_view():
        yield current_revision()


@contextmanager
def read_present() -> Iterator[tuple[int, int]]:
    """Open one consistent view as `read_snapshot` does and yield `current_token()` of it, read first."""
    with read_view():
        yield current_token()


@contextmanager
def read_view() -> Iterator[None]:
    """Open one consistent view as `read_snapshot` does, for what stands on no revision."""
    if connection.in_atomic_block:
        yield
    elif connection.vendor == "postgresql":
        with _repeatable_reads(), transaction.atomic(), _telling():
            yield
    else:
        with _deferred_transaction(), _telling():
            yield


def is_in_view() -> bool:
    """Tell whether this thread reads in a view that was opened here: several statements of it see the same.

    A transaction that was open before is none, as it may have rows of its own that are undone.
    """
    return getattr(_view, "is_open", False)


@contextmanager
def _telling() -> Iterator[None]:
    _view.is_open = True
    try:
        yield
    finally:
        _view.is_open = False


@contextmanager
def _repeatable_reads() -> Iterator[None]:
    """Let the transaction that PostgreSQL begins next read all of it as of its first statement, and write nothing.

    It is said with the BEGIN itself, which spares a way there and back for each view.
    """
    from psycopg import IsolationLevel

    connection.ensure_connection()
    raw = connection.connection
    raw.isolation_level, raw.read_only = IsolationLevel.REPEATABLE_READ, True
    try:
        yield
    finally:
        # One that broke is thrown away with what was set on it.
        if not raw.closed:
            raw.isolation_level = raw.read_only = None


@contextmanager
def _deferred_transaction() -> Iterator[None]:
    """Open a reading transaction on SQLite; `atomic()` would take the write lock (IMMEDIATE)."""
    connection.ensure_connection()
    with connection.cursor() as cursor:
        cursor.execute("BEGIN DEFERRED")
        try:
            yield
        finally:
            cursor.execute("ROLLBACK")
