"""Routers and a person that go on calling, whatever happens, and write down what they are told."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from omniroute_admin.bench.client import Client
from tests.omniroute_admin.faults.installation import PATIENCE, Installation, instant
from tests.processes import until

CANDIDATES = [
    {"provider": "claude", "model": "opus", "connection_id": "plan"},
    {"provider": "openrouter", "model": "deepseek", "allowed_connection_ids": ["key"]},
]
GOOD = {200, 201, 204, 304}
CUT = 0
"""The status of a call that was not answered."""


class Told(NamedTuple):
    """What one call was told, and when: instants of a clock that nothing sets."""

    kind: str
    begun: float
    ended: float
    status: int
    body: bytes

    @property
    def code(self) -> str:
        return str(json.loads(self.body).get("code", "")) if self.body.startswith(b"{") else ""


class Kind(NamedTuple):
    """One kind of call: how the n-th is asked, and whether an answer acknowledges what it said."""

    name: str
    ask: Callable[[int], bytes]
    acknowledges: Callable[[dict[str, Any]], bool] = lambda answer: False


def store_what_calls_are_about(at: Installation) -> None:
    """Store a plan that is usable and a cheap key."""
    # A price is current from its start: one of today is none where a clock is set back an hour.
    since = {"effective_from": (present() - timedelta(days=2)).isoformat()}
    for body in (
        {"provider": "openrouter", "model": "deepseek", "input_usd_per_million": "0.5"},
        {"provider": "claude", "model": "opus", "input_usd_per_million": "15"},
    ):
        at.call("POST", "catalog/prices", _json(since | body))
    for name, provider, auth_type in (("plan", "claude", "oauth"), ("key", "openrouter", "apikey")):
        at.call(
            "POST",
            "connections",
            _json({"connection_id": name, "provider": provider, "auth_type": auth_type}),
        )
    at.call("PATCH", "settings", _json({"max_reading_age_seconds": 3600}))


Now = Callable[[], datetime]


def present() -> datetime:
    """Return what the clock of this machine says."""
    return datetime.now(UTC)


def kinds_of(at: Installation, now: Now) -> list[Kind]:
    """Return every kind of call a router or a page makes all day; their clock is `now`."""
    return [
        Kind("get", lambda _: at.keyed("GET", "pools/auto/thrifty")),
        Kind("post", lambda _: at.keyed("POST", "pools/auto/subscription", _json({"candidates": CANDIDATES}))),
        Kind("readings", lambda n: at.keyed("POST", "telemetry/readings", _reading(n, now())), _accepts),
        Kind("usage", lambda n: at.keyed("POST", "telemetry/usage", _event(n, now())), _accepts),
        Kind("holds", lambda n: at.keyed("POST", "holds", _hold(n)), lambda answer: answer.get("hold_id") is not None),
        Kind("page", lambda _: at.visit("/")),
    ]


PAGES = {"page"}


def _percent(n: int) -> float:
    """Return a percentage that no other call says: 10 and a millionth for each."""
    return round(10 + n / 1_000_000, 6)


# Where what a kind sends is stored, and the name that the n-th has there.
STORED: dict[str, tuple[str, Callable[[int], Any]]] = {
    "readings": ("SELECT remaining_percent FROM ladder_quotareading", _percent),
    "usage": ("SELECT event_id FROM ladder_usageevent", lambda n: f"event-{n}"),
    "holds": ("SELECT hold_id FROM ladder_spendhold", lambda n: f"hold-{n}"),
}


def _reading(n: int, at: datetime) -> bytes:
    said = {"remaining_percent": _percent(n), "observed_at": at.isoformat()}
    reading = {"connection_id": "plan", "window": "5h", **said}
    return _json({"readings": [reading]})


def _event(n: int, now: datetime) -> bytes:
    at = (now - timedelta(seconds=1)).isoformat()
    event = {"connection_id": "key", "model": "deepseek", "occurred_at": at, "event_id": f"event-{n}"}
    return _json({"events": [{**event, "cost_usd": "0.000100"}]})


def _hold(n: int) -> bytes:
    hold = {"hold_id": f"hold-{n}", "connection_id": "key", "model": "deepseek", "estimated_cost_usd": "0.01"}
    return _json({**hold, "ttl_seconds": 30})


def _accepts(answer: dict[str, Any]) -> bool:
    # One that is older than the present one is kept as well: in the history.
    return bool(answer.get("accepted", 0) + answer.get("superseded", 0) == 1)


def _json(body: Any) -> bytes:
    return json.dumps(body).encode()


class Load:
    """A thread for each kind of call, which asks again as soon as it was answered."""

    def __init__(self, at: Installation, now: Now) -> None:
        self._at, self._is_over = at, threading.Event()
        self.told: list[Told] = []
        self.acknowledged: dict[str, list[int]] = {}
        self.kinds = kinds_of(at, now)
        self._threads = [threading.Thread(target=self._go_on, args=(kind,)) for kind in self.kinds]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def is_answered(self, *, times: int = 3) -> float:
        """Return the present instant when every kind was answered that often from it on."""
        since = instant()
        for kind in self.kinds:
            until(lambda kind=kind: len(self.between(since, None, kind.name)) >= times, f"answers to {kind.name}")
        return since

    def between(self, begun: float, ended: float | None = None, *kinds: str) -> list[Told]:
        """Return what those calls were told that were wholly made between two instants."""
        return [
            one
            for one in list(self.told)
            if one.begun >= begun and (ended is None or one.ended <= ended) and (not kinds or one.kind in kinds)
        ]

    def _go_on(self, kind: Kind) -> None:
        number = 0
        with Client(port=self._at.port, patience=PATIENCE) as client:
            while not self._is_over.is_set():
                number += 1
                self._note(kind, number, client)

    def _note(self, kind: Kind, number: int, client: Client) -> None:
        begun = instant()
        try:
            answer = client.send(kind.ask(number))
        except OSError as error:
            self.told.append(Told(kind.name, begun, instant(), CUT, str(error).encode()))
            # Nobody is there: looking again at once would take the machine from who is about to come back.
            self._is_over.wait(0.05)
            return
        if answer.status in GOOD and answer.body.startswith(b"{") and kind.acknowledges(answer.json()):
            self.acknowledged.setdefault(kind.name, []).append(number)
        self.told.append(Told(kind.name, begun, instant(), answer.status, answer.body))


@contextmanager
def under_load(at: Installation, *, now: Now = present) -> Iterator[Load]:
    """Call all the while, from before the block until it ends; the calls go well at its beginning."""
    store_what_calls_are_about(at)
    at.sign_in()
    load = Load(at, now)
    load.start()
    try:
        load.is_answered()
        assert bad(load.told) == []
        yield load
    finally:
        load.end()


def bad(told: list[Told]) -> list[tuple[str, int, str, bytes]]:
    """Return the calls that did not go well."""
    return [(one.kind, one.status, one.code, one.body[:200]) for one in told if one.status not in GOOD]


def refusals(told: list[Told]) -> set[tuple[int, str]]:
    """Return the statuses and codes of the calls that did not go well."""
    return {(status, code) for _, status, code, _ in bad(told)}


def check_nothing_is_lost(at: Installation, load: Load) -> None:
    """Check that everything that was acknowledged is stored, and that the ledger adds up."""
    for kind, (statement, name_of) in STORED.items():
        stored = {float(one) if isinstance(name_of(0), float) else one for one in at.values(statement)}
        assert load.acknowledged[kind], kind
        assert {name_of(number) for number in load.acknowledged[kind]} - stored == set(), kind
    at.manage("check_ledger")
