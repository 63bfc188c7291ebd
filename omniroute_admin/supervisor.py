"""Keeps child processes running: starts them, restarts one that ends, and ends all of them together."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import FrameType

FIRST_DELAY = 1.0
LONGEST_DELAY = 30.0
SETTLED_AFTER = 30.0
LOOK_EVERY = 0.2
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Program:
    """What to run under which name; `command` begins with the path of a program."""

    name: str
    command: list[str]


@dataclass
class _Child:
    program: Program
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    start_at: float = 0.0
    delay: float = 0.0


def next_delay(*, previous: float, ran_for: float) -> float:
    """Return how many seconds to wait before a restart: 1, 2, 4, ... 30, and 1 again after a run of 30 seconds."""
    if previous == 0 or ran_for >= SETTLED_AFTER:
        return FIRST_DELAY
    return min(previous * 2, LONGEST_DELAY)


@dataclass
class Supervisor:
    """Runs programs until it is told to stop. Each is the head of a session of its own.

    A key press in the terminal therefore reaches this process alone, which then ends the children in order. Where this
    process is killed outright, the kernel ends the children (Linux).
    """

    programs: Iterable[Program]
    environment: Mapping[str, str]
    say: Callable[[str], None]
    patience: float = 10.0
    _stopping: bool = field(default=False, init=False)

    def run(self) -> None:
        """Start everything and return after SIGINT, SIGTERM or SIGHUP, when no child is left."""
        children = [_Child(program) for program in self.programs]
        before = {
            number: signal.signal(number, self._stop) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        }
        try:
            while not self._stopping:
                for child in children:
                    self._look_after(child)
                time.sleep(LOOK_EVERY)
        finally:
            self._end(children)
            for number, handler in before.items():
                signal.signal(number, handler)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._stopping = True

    def _look_after(self, child: _Child) -> None:
        now = time.monotonic()
        if child.process is None:
            if now >= child.start_at:
                self._start(child)
        elif (code := child.process.poll()) is not None:
            child.delay = next_delay(previous=child.delay, ran_for=now - child.started_at)
            child.start_at = now + child.delay
            # Whatever it left behind would hold its port or its queue.
            signal_session(child.process, signal.SIGKILL)
            child.process = None
            self.say(f"{child.program.name} ended with {code}; starting it again in {child.delay:.0f} s")

    def _start(self, child: _Child) -> None:
        child.process = subprocess.Popen(  # noqa: S603 the commands are this product's own
            child.program.command,
            env=dict(self.environment),
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=end_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509 there are no threads here
        )
        child.started_at = time.monotonic()
        self.say(f"{child.program.name} started (process {child.process.pid})")

    def _end(self, children: list[_Child]) -> None:
        living = [child.process for child in children if child.process is not None]
        for process in living:
            # Only the head is told: it ends its own helpers in order.
            if process.poll() is None:
                process.terminate()
        until = time.monotonic() + self.patience
        for process in living:
            try:
                process.wait(timeout=max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                self.say(f"process {process.pid} does not end; killing it")
            signal_session(process, signal.SIGKILL)
            process.wait()


def signal_session(process: subprocess.Popen[bytes], number: int) -> None:
    """Send a signal to a process that heads a session, and to every helper it left behind."""
    # The head of the session gave the group its number; helpers keep the group alive after the head is gone.
    try:
        os.killpg(process.pid, number)
    except (ProcessLookupError, PermissionError):
        return


def end_with_parent() -> None:
    """Ask the kernel to end this process with the one that started it; for a child between fork and exec."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
