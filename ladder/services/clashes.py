"""Two processes that write the same name at the same moment: the second looks again, and finds it there."""

from collections.abc import Callable
from typing import TypeVar

from django.db import IntegrityError, transaction

from omniroute_admin.common.services.revision import DecidingWrite, deciding_write

T = TypeVar("T")
_TRIES = 5


def write_looking_again(act: Callable[[DecidingWrite], T]) -> T:
    """Return what `act` returns in a deciding write; where another process took a name in between it acts anew.

    Raises:
        IntegrityError: it clashes every time, so that no other process is the cause.
    """
    for _ in range(_TRIES - 1):
        try:
            return _once(act)
        except IntegrityError:
            continue
    return _once(act)


def _once(act: Callable[[DecidingWrite], T]) -> T:
    with deciding_write() as write, transaction.atomic():
        return act(write)
