"""Builds or measures one size of fleet in this process: `python -m omniroute_admin.bench.scaled`.

One line of JSON in: what to do. One line out: seconds and bytes.
"""

import gc
import json
import statistics
import sys
import tracemalloc
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Any

import django


def main() -> None:
    """Do what the line of the input says."""
    (act, told), *_ = json.loads(sys.stdin.readline()).items()
    django.setup()
    print(json.dumps({"build": _build, "measure": _measure}[act](**told)), flush=True)


def _build(**sizes: Any) -> dict[str, Any]:
    """Write a fleet into an empty database."""
    from django.core.management import call_command

    from omniroute_admin.bench.fleet import write_fleet
    from omniroute_admin.bench.plan import plan_fleet
    from omniroute_admin.common import clock

    call_command("migrate", interactive=False, verbosity=0)
    write_fleet(plan_fleet(**sizes), now=clock.now())
    return {}


def _measure(*, rounds: int) -> dict[str, Any]:
    from omniroute_admin.bench.stage import read_fleet
    from omniroute_admin.common import clock

    _prepare_nothing()
    # First of all: memory that was used before and is free again would hide what the snapshot takes.
    said: dict[str, Any] = {"resident_bytes": _growth(_resident), **_timed("rebuild", rounds, _forget)}
    said |= _timed("one_reading", rounds, _reader(read_fleet(now=clock.now()).readers))
    tracemalloc.start()
    return said | {"traced_bytes": _growth(lambda: tracemalloc.get_traced_memory()[0])}


def _prepare_nothing() -> None:
    """Import and use what preparing needs, for an empty fleet."""
    from ladder.core.ids import POOL_IDS
    from ladder.core.pool import build_pool
    from ladder.core.snapshot import Snapshot
    from ladder.core.values import Facts, PoolOptions
    from ladder.models import Connection
    from ladder.selectors import state
    from omniroute_admin.common import clock

    state.forget_snapshot()
    Connection.objects.filter(pk=0).exists()
    snapshot, pool_id = Snapshot(Facts()), POOL_IDS["auto/thrifty"]
    build_pool(snapshot=snapshot, pool_id=pool_id, candidates=None, options=PoolOptions(), now=clock.now())


def _prepare() -> tuple[float, float]:
    """Prepare a snapshot and its thrifty pool, and return the seconds of each."""
    from ladder.core.ids import POOL_IDS
    from ladder.core.pool import build_pool
    from ladder.core.values import PoolOptions
    from ladder.selectors.state import get_snapshot
    from omniroute_admin.common import clock

    now = clock.now()
    began = perf_counter()
    snapshot = get_snapshot(now=now)
    read = perf_counter()
    build_pool(snapshot=snapshot, pool_id=POOL_IDS["auto/thrifty"], candidates=None, options=PoolOptions(), now=now)
    return read - began, perf_counter() - read


def _forget() -> None:
    from ladder.selectors.state import forget_snapshot

    forget_snapshot()


def _reader(readers: list[tuple[str, str]]) -> Callable[[], None]:
    """Return what records one reading of a new percent, of one window after the other."""
    from ladder.api.telemetry import decode_readings
    from ladder.services.readings import record_readings
    from omniroute_admin.bench.bodies import reading_bodies
    from omniroute_admin.bench.fleet import ACTOR
    from omniroute_admin.common import clock

    bodies = reading_bodies(readers, says="percents")

    def act() -> None:
        items, complete_for = decode_readings(next(islice(bodies, 1)))
        record_readings(items=items, complete_for=complete_for, actor=ACTOR, now=clock.now())

    return act


def _timed(name: str, rounds: int, disturb: Callable[[], None]) -> dict[str, Any]:
    taken = []
    for _ in range(rounds):
        disturb()
        taken.append(_prepare())
    read, pool = (statistics.median(part) * 1000 for part in zip(*taken, strict=True))
    return {
        name: [sum(one) for one in taken],
        f"{name}_read_ms": round(read, 3),
        f"{name}_pool_ms": round(pool, 3),
    }


def _growth(used: Callable[[], int]) -> int:
    """Return by how many bytes the process grows with a prepared snapshot."""
    _forget()
    gc.collect()
    before = used()
    _prepare()
    gc.collect()
    return used() - before


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


if __name__ == "__main__":
    main()
