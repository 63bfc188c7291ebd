"""The revision is moved by the last statement of every deciding write (SPEC 3)."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import datetime

from django.db import connection, transaction

_BUMP = "UPDATE common_revision SET value = value + 1 WHERE id = 1 RETURNING value"
_STEP = "INSERT INTO common_revisionstep (revision, rows) VALUES (%s, %s)"
_PRUNE = "DELETE FROM common_revisionstep WHERE revision < %s"
_SHOW = "UPDATE common_revision SET shown = shown + 1 WHERE id = 1"
_LOCK = "SELECT value FROM common_revision WHERE id = 1"


STEPS_KEPT = 1_024
"""A process that is further behind than this reads everything again."""

_MOST_ROWS = 500
"""Where more connections were touched at once, reading everything again is cheaper."""


class DecidingWrite:
    """A write under way; set `changed` to False where nothing that a decision depends on was changed.

    `shown` says that something was which screens show all the same: the token of what they show moves then. `kept` is
    what a watcher remembers of it, and `wide_at` the instant of one that may change anything at all. `touched` are the
    keys of connections where nothing but the state of these was changed; None is "anything may have been".
    """

    changed: bool = True
    shown: bool = False
    wide_at: datetime | None = None
    kept: object = None
    touched: Collection[int] | None = None


class Watcher:
    """Someone further up who is to hear of writes that know nothing of it. It must refuse nothing."""

    def __init__(
        self, *, before_wide: Callable[[DecidingWrite], None], before_end: Callable[[DecidingWrite], None]
    ) -> None:
        """Take what is called before a wide write changes anything, and before any write ends."""
        self.before_wide = before_wide
        self.before_end = before_end


_watchers: list[Watcher] = []


def watch_writes(watcher: Watcher) -> None:
    """Let a watcher hear of every deciding write of this process, once, at start."""
    _watchers.append(watcher)


def present_write() -> DecidingWrite | None:
    """Return the outermost deciding write that this thread is in, or None."""
    return getattr(connection, "_deciding_write", None)


def lock_revision() -> int:
    """Return the revision, locked up to the end of the transaction: whoever else is about to end a write waits.

    It belongs to the end of a write. What is numbered under it is numbered in commit order.
    """
    with connection.cursor() as cursor:
        cursor.execute(f"{_LOCK} FOR UPDATE" if connection.features.has_select_for_update else _LOCK)
        return int(cursor.fetchone()[0])


@contextmanager
def deciding_write(*, wide_at: datetime | None = None) -> Iterator[DecidingWrite]:
    """Run a transaction that ends by moving the revision, so that its order is commit order (SPEC 3).

    Nested in another one, only the outermost moves it. The lock on the row is held to the commit, therefore the
    next writer's number is larger than that of whatever it could have overtaken. `wide_at` says that the write, of that
    instant, may change what every connection is judged by: watchers look at it before and after.
    """
    outer = present_write()
    if outer is not None:
        _widen(outer, wide_at)
        # A write of its own, so that a nested call which changed nothing cannot keep the outer one's revision back.
        yield DecidingWrite()
        return
    write = DecidingWrite()
    connection._deciding_write = write  # type: ignore[attr-defined]
    try:
        with transaction.atomic():
            _widen(write, wide_at)
            yield write
            for watcher in _watchers:
                watcher.before_end(write)
            if write.changed or write.shown:
                _move(write)
    finally:
        connection._deciding_write = None  # type: ignore[attr-defined]


def _move(write: DecidingWrite) -> None:
    """Move the revision, or the count of what only screens show, and tell what the step touched."""
    with connection.cursor() as cursor:
        if not write.changed:
            cursor.execute(_SHOW)
            return
        cursor.execute(_BUMP)
        value = int(cursor.fetchone()[0])
        cursor.execute(_STEP, [value, _rows(write.touched)])
        if value % STEPS_KEPT == 0:
            cursor.execute(_PRUNE, [value - STEPS_KEPT])


def _rows(touched: Collection[int] | None) -> str | None:
    return None if touched is None or len(touched) > _MOST_ROWS else ",".join(map(str, sorted(touched)))


def _widen(write: DecidingWrite, at: datetime | None) -> None:
    if at is not None and write.wide_at is None:
        write.wide_at = at
        for watcher in _watchers:
            watcher.before_wide(write)
