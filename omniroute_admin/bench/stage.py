"""What a measure works with: the fleet, a server that runs, and who may ask it."""

import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path

import msgspec
from tqdm import tqdm

from ladder.core.ids import POOL_IDS
from ladder.core.pool import build_pool
from ladder.core.values import PoolOptions
from ladder.selectors.state import get_snapshot
from omniroute_admin.bench.bodies import Reader
from omniroute_admin.bench.client import Client, request
from omniroute_admin.bench.ending import go_on
from omniroute_admin.bench.errors import BenchError
from omniroute_admin.bench.options import Options
from omniroute_admin.bench.results import Result, Timing, timing_of

Act = Callable[[int], float]
"""Does something once, told which turn it is, and returns how many seconds it took."""

WARM_UP = 5
_PAUSE = 0.02
_OK = 200


class Fleet(msgspec.Struct, frozen=True):
    """Whom requests speak of: models and connections by provider, and the windows of plans that are usable."""

    models: dict[str, list[str]]
    connections: dict[str, list[str]]
    readers: list[Reader]

    @property
    def single_readers(self) -> list[Reader]:
        """Return one window of each usable plan."""
        return list({reader[0]: reader for reader in self.readers}.values())

    @property
    def places(self) -> list[tuple[str, str]]:
        """Return every connection with a model of its provider."""
        return [(one, self.models[provider][0]) for provider, ids in self.connections.items() for one in ids]


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """One run. `environment` is that of a process of the product on the database of the run."""

    options: Options
    fleet: Fleet
    port: int
    key: str
    cookie: str
    var_dir: Path
    environment: Mapping[str, str]

    def get(self, path: str, **headers: str) -> bytes:
        """Return a GET with the key of the run."""
        return request("GET", path, headers={"Authorization": f"Bearer {self.key}", **headers})

    def post(self, path: str, body: bytes) -> bytes:
        """Return a POST with the key of the run."""
        return request("POST", path, headers={"Authorization": f"Bearer {self.key}"}, body=body)

    def visit(self, path: str) -> bytes:
        """Return a GET of the person who is signed in."""
        return request("GET", path, headers={"Cookie": f"sessionid={self.cookie}"})


def read_fleet(*, now: datetime) -> Fleet:
    """Read whom requests can speak of.

    Raises:
        BenchError: no plan is usable, or no connection's provider has a model: there is nothing to measure.
    """
    snapshot = get_snapshot(now=now)
    stored = snapshot.inventory(now=now)
    ids: dict[str, list[str]] = {}
    for one in snapshot.facts.connections:
        if one.provider in stored.by_provider and not one.is_implied:
            ids.setdefault(one.provider, []).append(one.connection_id)
    pool = build_pool(
        snapshot=snapshot, pool_id=POOL_IDS["auto/subscription"], candidates=None, options=PoolOptions(), now=now
    )
    usable = {one for entry in pool.candidates for one in entry.allowed_connection_ids or ()}
    readers = [
        (one.connection_id, window.window)
        for one in snapshot.facts.connections
        if one.connection_id in usable
        for window in one.windows
        if window.is_reported and not window.unlimited
    ]
    if not readers:
        raise BenchError("no plan of the fleet is usable: give more connections, or subscription more weight.")
    return Fleet({provider: [one.model for one in stored.by_provider[provider]] for provider in ids}, ids, readers)


def turns(count: int, what: str) -> Iterator[int]:
    """Yield 0, 1, ... below `count`, with a bar on a terminal."""
    for turn in tqdm(range(count), desc=what, file=sys.stderr, disable=None, leave=False, position=1):
        go_on()
        yield turn


def alternately(count: int, what: str, *acts: Act, warm_up: int = WARM_UP, may_swap: bool = True) -> list[Timing]:
    """Do several things in turn, so that what disturbs one disturbs all, and return the timing of each.

    Turns below zero are for warming up and not counted. `may_swap=False` keeps the order: one needs what another did.
    """
    samples: list[list[float]] = [[] for _ in acts]
    for turn in range(-warm_up, 0):
        for act in acts:
            act(turn)
    for turn in turns(count, what):
        # Whoever comes second finds the caches of the first: they change places.
        for place in reversed(range(len(acts))) if may_swap and turn % 2 else range(len(acts)):
            samples[place].append(acts[place](turn))
    return [timing_of(taken) for taken in samples]


def asking(client: Client, asked: bytes, *statuses: int) -> Act:
    """Return the act of sending one request whose answer has one of these statuses (200 where none is named)."""
    return lambda _: client.expect(asked, *statuses).seconds


class Watched(msgspec.Struct, frozen=True):
    """How long the answers took that came, and how many did not come in time or were no answers."""

    timing: Timing | None
    stopped: int


def watch(client: Client, asked: bytes, *, seconds: float) -> Watched:
    """Ask again and again for a while, with short pauses of chance between."""
    chance = random.Random(seconds)  # noqa: S311 - pauses, no secret
    taken: list[float] = []
    stopped = 0
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            answer = client.send(asked)
            if answer.status == _OK:
                taken.append(answer.seconds)
            else:
                stopped += 1
        except OSError:
            stopped += 1
        time.sleep(chance.uniform(0, _PAUSE))
    return Watched(timing_of(taken) if taken else None, stopped)


def beside_floor(*, name: str, timings: list[Timing], floor_is: str, target: float | None) -> Result:
    """Return the row of something and its floor, which were measured in turn."""
    measured, floor = timings
    return Result(name=name, measured=measured, floor=floor, floor_is=floor_is, target=target)
