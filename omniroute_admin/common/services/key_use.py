"""When a key was last used: coarse, written after the answer went out, and never a reason to fail (SPEC 4)."""

import logging
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from django.db import Error, connection, transaction

_COARSE = timedelta(minutes=1)
_PATIENCE_MILLISECONDS = 100
_UPDATE = "UPDATE common_apikey SET last_used_at = %s WHERE id = %s AND (last_used_at IS NULL OR last_used_at < %s)"
_log = logging.getLogger(__name__)

_noted: dict[int, datetime] = {}
_waiting: deque[tuple[int, datetime]] = deque(maxlen=1_000)


def note_use(*, key_id: int, now: datetime) -> None:
    """Remember that a key was used; at most once a minute per key this leads to a write, after the answer."""
    last = _noted.get(key_id)
    if last is None or abs(now - last) >= _COARSE:
        _noted[key_id] = now
        _waiting.append((key_id, now))


def write_uses(**_: Any) -> None:
    """Write what was noted; connected to the end of a request. It moves no revision and writes no history."""
    while _waiting:
        try:
            key_id, at = _waiting.popleft()
        except IndexError:  # another thread took the last one
            return
        try:
            _write(key_id, at)
        except Error as error:
            _log.debug("the last use of key %s was not written: %s", key_id, type(error).__name__)


def forget_uses() -> None:
    """Drop what this process noted; tests need it, for their databases share ids."""
    _noted.clear()
    _waiting.clear()


def _write(key_id: int, at: datetime) -> None:
    value = connection.ops.adapt_datetimefield_value(at)
    with impatient(), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_UPDATE, [value, key_id, value])


@contextmanager
def impatient() -> Iterator[None]:
    """Wait only a moment for SQLite's one write lock: a busy database loses a time of use, not a worker's 20 s."""
    if connection.vendor != "sqlite" or connection.in_atomic_block:
        yield
        return
    with connection.cursor() as cursor:
        usual = cursor.execute("PRAGMA busy_timeout").fetchone()[0]
        cursor.execute(f"PRAGMA busy_timeout = {_PATIENCE_MILLISECONDS}")
        try:
            yield
        finally:
            cursor.execute(f"PRAGMA busy_timeout = {int(usual)}")
