"""Calls to services that may never answer."""

import threading
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


class OutOfTime(Exception):  # noqa: N818 - named for what it tells
    """The call did not come back in time."""


def within(seconds: float, call: Callable[[], Result]) -> Result:
    """Return what a call returns, or raise what it raises.

    It runs in a thread of its own, so that one that hangs beyond all timeouts of its own is left behind and holds
    nobody; it must not touch the database.

    Raises:
        OutOfTime: it took longer.
    """
    results: list[Result] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:  # noqa: BLE001 - raised again where it was asked for
            failures.append(error)

    thread = threading.Thread(target=run, name="delivery", daemon=True)
    thread.start()
    thread.join(seconds)
    if failures:
        raise failures[0]
    if not results:
        raise OutOfTime
    return results[0]
