"""The pure core in this process: no HTTP, no database, the input decoded, the snapshot prepared."""

import json
from collections.abc import Callable, Iterator
from datetime import datetime
from time import perf_counter

import msgspec

from ladder.api.bodies import CandidateBody
from ladder.core.ids import POOL_IDS
from ladder.core.pool import build_pool
from ladder.core.snapshot import Snapshot
from ladder.core.values import Facts, PoolOptions
from ladder.selectors.state import get_snapshot
from omniroute_admin.bench.bodies import candidates, pool_body, recurring_candidates
from omniroute_admin.bench.results import Result, Timing
from omniroute_admin.bench.stage import Fleet, Stage, alternately
from omniroute_admin.common import clock

CANDIDATES, EACH = 10_000, 5
RECURRING_TARGET, DISTINCT_TARGET, GROWTH_TARGET = 1.0, 3.0, 11.0
JUDGEMENTS = (1_000, 10_000, 100_000)
_THRIFTY = POOL_IDS["auto/thrifty"]
_FLOOR_IS = "json.loads of that request"
Lists = Callable[[int, int], bytes]
"""Makes the body of a request of so many candidates in a turn."""


class Body(msgspec.Struct, frozen=True):
    """A pool call's candidates, without the limit on their number that a call over HTTP has."""

    candidates: list[CandidateBody]


_DECODER = msgspec.json.Decoder(Body)


def measure_core(stage: Stage) -> Iterator[Result]:
    """Measure the decision beside reading the question."""
    now = clock.now()
    snapshot = get_snapshot(now=now)
    for name, lists, target in (
        ("core-recurring", _recurring(stage.fleet), RECURRING_TARGET),
        ("core-distinct", _distinct(stage.fleet), DISTINCT_TARGET),
    ):
        decide, read = _decide_and_read(lambda: snapshot, lists, CANDIDATES, now)
        timings = alternately(stage.options.few_rounds, name, decide, read, warm_up=1, may_swap=False)
        yield Result(
            name=name,
            measured=timings[0],
            floor=timings[1],
            floor_is=_FLOOR_IS,
            target=target,
            more={"candidates": CANDIDATES, "connections_each": EACH},
        )


def measure_growth(stage: Stage) -> Iterator[Result]:
    """Measure how the decision grows with the judgements: recurring and distinct lists, and all of it from nothing."""
    now = clock.now()
    snapshot = get_snapshot(now=now)
    facts = snapshot.facts
    recurring, distinct = _recurring(stage.fleet), _distinct(stage.fleet)
    yield from _growth(stage, "recurring", lambda _: (lambda: snapshot, recurring), now)
    yield from _growth_of_reading(stage, recurring)
    yield from _growth(stage, "distinct", lambda _: (lambda: snapshot, distinct), now)
    yield from _growth(stage, "from-nothing", lambda count: _from_nothing(grown(facts, count), stage.fleet), now)


def _growth_of_reading(stage: Stage, lists: Lists) -> Iterator[Result]:
    """Measure how `json.loads` of the same questions grows: what no decision about them can be asked to stay below."""
    acts = [_reading(lists(count // EACH, 0)) for count in JUDGEMENTS]
    timings = alternately(max(3, stage.options.few_rounds // 2), "growth json.loads", *acts, warm_up=1)
    yield from _grown_rows("json-loads", timings, target=None)


def _reading(body: bytes) -> Callable[[int], float]:
    def read(_: int) -> float:
        began = perf_counter()
        json.loads(body)
        return perf_counter() - began

    return read


def _growth(
    stage: Stage, kind: str, make: Callable[[int], tuple[Callable[[], Snapshot], Lists]], now: datetime
) -> Iterator[Result]:
    acts = []
    for count in JUDGEMENTS:
        decide, _ = _decide_and_read(*make(count), count // EACH, now)
        acts.append(decide)
    timings = alternately(max(3, stage.options.few_rounds // 2), f"growth {kind}", *acts, warm_up=1)
    yield from _grown_rows(kind, timings, target=GROWTH_TARGET)


def _grown_rows(kind: str, timings: list[Timing], *, target: float | None) -> Iterator[Result]:
    for place, (count, timing) in enumerate(zip(JUDGEMENTS, timings, strict=True)):
        before = timings[place - 1] if place else None
        yield Result(
            name=f"growth-{kind}-{count}",
            measured=timing,
            floor=before,
            floor_is="a tenth of the judgements" if place else "",
            target=target if place else None,
            more={"judgements": count},
        )


def _decide_and_read(
    snapshot: Callable[[], Snapshot], lists: Lists, count: int, now: datetime
) -> tuple[Callable[[int], float], Callable[[int], float]]:
    body = [b""]

    def decide(turn: int) -> float:
        body[0] = lists(count, turn)
        listed, prepared = _DECODER.decode(body[0]).candidates, snapshot()
        began = perf_counter()
        build_pool(snapshot=prepared, pool_id=_THRIFTY, candidates=listed, options=PoolOptions(), now=now)
        return perf_counter() - began

    def read(_: int) -> float:
        began = perf_counter()
        json.loads(body[0])
        return perf_counter() - began

    return decide, read


def _recurring(fleet: Fleet) -> Lists:
    kept: dict[int, bytes] = {}

    def lists(count: int, _: int) -> bytes:
        if count not in kept:
            kept[count] = pool_body(
                recurring_candidates(models=fleet.models, connections=fleet.connections, count=count, each=EACH)
            )
        return kept[count]

    return lists


def _distinct(fleet: Fleet) -> Lists:
    def lists(count: int, turn: int) -> bytes:
        return pool_body(
            candidates(
                models=fleet.models, connections=fleet.connections, count=count, each=EACH, seed=count * 1_000 + turn
            )
        )

    return lists


def _from_nothing(facts: Facts, fleet: Fleet) -> tuple[Callable[[], Snapshot], Lists]:
    """Return a snapshot that knows nothing yet, anew each time, and lists that name every connection once."""
    ids: dict[str, list[str]] = {}
    for one in facts.connections:
        ids.setdefault(one.provider, []).append(one.connection_id)
    listed = [
        {
            "provider": provider,
            "model": fleet.models[provider][0],
            "allowed_connection_ids": named[start : start + EACH],
        }
        for provider, named in ids.items()
        for start in range(0, len(named), EACH)
    ]
    body = pool_body(listed)
    return lambda: Snapshot(facts), lambda *_: body


def grown(facts: Facts, count: int) -> Facts:
    """Return the facts with exactly `count` connections: copies under other names, or fewer of them."""
    priced = {price.provider for price in facts.prices}
    known = [one for one in facts.connections if one.provider in priced]
    made = (msgspec.structs.replace(known[number % len(known)], connection_id=f"c{number}") for number in range(count))
    return msgspec.structs.replace(facts, connections=tuple(made))
