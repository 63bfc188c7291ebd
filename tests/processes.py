"""Real processes for tests: their environment, and waiting for what they do."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from tests.shared import ROOT

T = TypeVar("T")
GIVE_UP_AFTER = 90.0


def until(look: Callable[[], T | None], what: str) -> T:
    """Return what `look` finds as soon as it finds something; fail where it never does."""
    end = time.monotonic() + GIVE_UP_AFTER
    while time.monotonic() < end:
        if found := look():
            return found
        time.sleep(0.05)
    raise AssertionError(f"waited in vain: {what}")


def environment(**changes: str) -> dict[str, str]:
    """Return this process's environment with changes, for a child that runs the product."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", **changes}


def manage(*arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
    """Run manage.py to its end."""
    command = [sys.executable, str(ROOT / "manage.py"), *arguments]
    return subprocess.run(command, env=environment(**changes), capture_output=True, text=True, check=False)


@contextmanager
def running(command: list[str], log: Path, **changes: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program beside the block and end it after the block, its output in `log`."""
    with log.open("ab") as output:
        child = subprocess.Popen(command, env=environment(**changes), stdout=output, stderr=output, cwd=log.parent)
    try:
        yield child
    finally:
        child.terminate()
        try:
            child.wait(timeout=30)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def is_running(pid: int) -> bool:
    """Tell whether a process lives; one that ended and waits to be collected does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def free_port() -> int:
    """Return a port that nothing listened on a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
