"""The revision: writes move it last, reads take it first (SPEC 3)."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction

_BUMP = "UPDATE common_revision SET value = value + 1 WHERE id = 1"
_READ = "SELECT value FROM common_revision WHERE id = 1"


class DecidingWrite:
    """A write under way; set `changed` to False where nothing that a decision depends on was changed."""

    changed: bool = True


@contextmanager
def deciding_write() -> Iterator[DecidingWrite]:
    """Run a transaction that ends by moving the revision, so that its order is commit order (SPEC 3).

    Nested in another one, only the outermost moves it. The lock on the row is held to the commit, therefore the
    next writer's number is larger than that of whatever it could have overtaken.
    """
    outer = getattr(connection, "_deciding_write", None)
    if outer is not None:
        # A write of its own, so that a nested call which changed nothing cannot keep the outer one's revision back.
        yield DecidingWrite()
        return
    write = DecidingWrite()
    connection._deciding_write = write  # type: ignore[attr-defined]
    try:
        with transaction.atomic():
            yield write
            if write.changed:
                with connection.cursor() as cursor:
                    cursor.execute(_BUMP)
    finally:
        connection._deciding_write = None  # type: ignore[attr-defined]


def current_revision() -> int:
    """Return the revision as the present transaction sees it; one indexed read."""
    with connection.cursor() as cursor:
        cursor.execute(_READ)
        return int(cursor.fetchone()[0])


@contextmanager
def read_snapshot() -> Iterator[int]:
    """Open one consistent view of the database and yield its revision, read first (SPEC 3).

    Inside a transaction already open (a write, a test) that transaction is the view.
    """
    if connection.in_atomic_block:
        yield current_revision()
    elif connection.vendor == "postgresql":
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield current_revision()
    else:
        with _deferred_transaction():
            yield current_revision()


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
