"""The revision is moved by the last statement of every deciding write (SPEC 3)."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction

_BUMP = "UPDATE common_revision SET value = value + 1 WHERE id = 1"
_SHOW = "UPDATE common_revision SET shown = shown + 1 WHERE id = 1"


class DecidingWrite:
    """A write under way; set `changed` to False where nothing that a decision depends on was changed.

    `shown` says that something was which screens show all the same: the token of what they show moves then.
    """

    changed: bool = True
    shown: bool = False


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
            if write.changed or write.shown:
                with connection.cursor() as cursor:
                    cursor.execute(_BUMP if write.changed else _SHOW)
    finally:
        connection._deciding_write = None  # type: ignore[attr-defined]
