"""Read by every Python that starts with this folder on its path: its clock follows a file that a test writes."""

import os
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import time_machine

_EVERY, _NEAR = 0.01, timedelta(seconds=0.1)


def _follow(file: Path) -> None:
    moved = time_machine.travel(datetime.now(UTC), tick=True).start()
    true = time_machine.escape_hatch.datetime.datetime
    waits = threading.Event()
    while True:
        by = timedelta(seconds=float(file.read_text()))
        # Looked at again each time: on a busy machine a moment passes between reading the clock and setting it.
        if abs(datetime.now(UTC) - true.now(UTC) - by) > _NEAR:
            moved.move_to(true.now(UTC) + by, tick=True)
        waits.wait(_EVERY)


def _start() -> None:
    threading.Thread(target=_follow, args=(Path(os.environ["TESTS_CLOCK"]),), daemon=True).start()


if "TESTS_CLOCK" in os.environ:
    _start()
    # The web server forks its workers, and no thread goes with them.
    os.register_at_fork(after_in_child=_start)
