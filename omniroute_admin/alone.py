"""One at a time: what must not be done by two processes at once, on one machine or on several."""

import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from django.db import connection

_KEY_BYTES = 8


@contextmanager
def alone(what: str, *, say: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock of that name on the database for the block; whoever comes second waits, and `say` tells so.

    The lock ends with the process that holds it, however it ends. PostgreSQL keeps it itself, in a session of its own
    (a pool that shares sessions between transactions cannot); for SQLite it is on a file beside the database.

    Raises:
        DatabaseError: PostgreSQL does not answer.
        OSError: the file cannot be made.
    """
    waiting = f"another process is at it ({what}): waiting for its end"
    if connection.vendor == "postgresql":
        with _locked_by_postgresql(what, lambda: say(waiting)):
            yield
    elif connection.vendor == "sqlite" and not connection.is_in_memory_db():  # type: ignore[attr-defined]
        name = Path(str(connection.settings_dict["NAME"]))
        with _locked_by_file(name.with_name(f".{name.name}.{what}.lock"), lambda: say(waiting)):
            yield
    else:
        yield


@contextmanager
def _locked_by_postgresql(what: str, wait: Callable[[], None]) -> Iterator[None]:
    key = int.from_bytes(hashlib.sha256(f"omniroute_admin {what}".encode()).digest()[:_KEY_BYTES], signed=True)
    session = connection.copy()
    try:
        with session.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_lock(%s)", [key])
            if not cursor.fetchone()[0]:
                wait()
                cursor.execute("SELECT pg_advisory_lock(%s)", [key])
        yield
    finally:
        session.close()


@contextmanager
def _locked_by_file(file: Path, wait: Callable[[], None]) -> Iterator[None]:
    descriptor = os.open(file, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            wait()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
