"""How a run is told to end, and that it hears it."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_told: list[int] = []
"""The signals that told the run of this process to end."""


@contextmanager
def ending_as_by_ctrl_c() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the run as Ctrl-C does: in order, with nothing left behind.

    SIGINT too: a shell that starts a run in the background has it ignored, and a run that is told to end should.
    """

    def end(number: int, frame: FrameType | None) -> None:
        _told.append(number)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        _told.clear()
        for number, handler in before.items():
            signal.signal(number, handler)


def go_on() -> None:
    """Return where the run is to go on. Ask before each step.

    Raises:
        KeyboardInterrupt: it was told to end. Python drops what is raised while it clears up after an object, so that
            the signal itself may have come to nothing.
    """
    if _told:
        raise KeyboardInterrupt
