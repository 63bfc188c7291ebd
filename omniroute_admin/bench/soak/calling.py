"""Calls at a steady rate, whether they are answered in time or not: who is slow finds the next ones waiting."""

import itertools
import math
import threading
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from omniroute_admin.bench.client import Client
from omniroute_admin.bench.soak.kinds import Kind, Talk
from omniroute_admin.bench.soak.verdict import Call

_PATIENCE = 30.0
GRACE = 30.0
"""Seconds after the end of a run in which calls that were due in it are still made."""

_IDLE = 10.0
_NO_ANSWER = 0
_MOST_EXAMPLES = 5


class Calls:
    """One kind of call at its rate: what was answered, how fast, and what went wrong.

    A call is timed from when it was due, so that a server that stops for a second is charged with every call that
    waited for it.
    """

    def __init__(self, kind: Kind, *, per_second: float, port: int) -> None:
        self.kind, self.per_second = kind, per_second
        self.made: list[Call] = []
        self.statuses: Counter[int] = Counter()
        self.examples: list[str] = []
        self._port, self._numbers, self._taking = port, itertools.count(), threading.Lock()

    @property
    def errors(self) -> int:
        """Return how many calls were answered with another status than a good one, or not at all."""
        return sum(count for status, count in self.statuses.items() if status not in self.kind.good)

    def not_made(self, *, length: float) -> int:
        """Return how many calls were due within `length` seconds and not made: the server takes fewer than that."""
        return max(0, math.ceil(length * self.per_second) - len(self.made))

    def threads(self, *, began: float, length: float, stop: threading.Event) -> list[threading.Thread]:
        """Return the threads that make the calls from `began` on, for `length` seconds or until they are stopped."""
        what: dict[str, Any] = {"began": began, "length": length, "stop": stop}
        return [
            threading.Thread(target=self._go_on, args=(self.kind.make(number),), kwargs=what, daemon=True)
            for number in range(self.kind.talks)
        ]

    def _go_on(self, talk: Talk, *, began: float, length: float, stop: threading.Event) -> None:
        last = 0.0
        with Client(port=self._port, patience=_PATIENCE) as client:
            while time.monotonic() < began + length + GRACE:
                with self._taking:
                    due = next(self._numbers) / self.per_second
                if due >= length or stop.wait(max(0.0, began + due - time.monotonic())):
                    return
                if due - last > _IDLE:  # the server closes what says nothing for 30 s
                    client.close()
                last = due
                self._call(talk, client)
                self.made.append(Call(due, time.monotonic() - began - due))

    def _call(self, talk: Talk, client: Client) -> None:
        try:
            answer = client.send(talk.ask())
        except OSError as error:
            self._note(_NO_ANSWER, repr(error))
            return
        talk.hear(answer)
        self._note(answer.status, answer.body[:300].decode(errors="replace"))

    def _note(self, status: int, body: str) -> None:
        with self._taking:
            self.statuses[status] += 1
            if status not in self.kind.good and len(self.examples) < _MOST_EXAMPLES:
                self.examples.append(f"{status}: {body}")


def calls_of(kinds: Sequence[Kind], *, times: float, port: int) -> list[Calls]:
    """Return the calls of each kind at so many times its expected rate."""
    return [Calls(kind, per_second=kind.per_second * times, port=port) for kind in kinds]
