"""How memory and preparing grow with the fleet: each size in a database and a process of its own."""

from collections.abc import Iterator
from typing import Any

from omniroute_admin.bench.children import ask_program, bench_environment
from omniroute_admin.bench.database import sqlite_url
from omniroute_admin.bench.results import Result, timing_of
from omniroute_admin.bench.stage import Stage, turns

FACTOR = 10
_PROGRAM = "omniroute_admin.bench.scaled"


def measure_scale(stage: Stage) -> Iterator[Result]:
    """Measure memory of a connection and the time to prepare, for the fleet and one ten times as large (on SQLite)."""
    sizes = (stage.options.connections, stage.options.connections * FACTOR)
    for place in turns(len(sizes), "scale"):
        yield from _rows(sizes[place], _measured(stage, sizes[place]))


def _measured(stage: Stage, connections: int) -> dict[str, Any]:
    """Build the fleet in one process and measure it in another, whose memory has held nothing of the building."""
    options = stage.options
    url = sqlite_url(stage.var_dir / f"scale-{connections}.sqlite3")
    environment = bench_environment(database_url=url, var_dir=stage.var_dir)
    sizes = {"models": options.models, "providers": options.providers, "mix": options.mix}
    ask_program(_PROGRAM, environment=environment, build={"connections": connections, **sizes})
    return ask_program(_PROGRAM, environment=environment, measure={"rounds": max(3, options.few_rounds // 2)})


def _rows(connections: int, said: dict[str, Any]) -> Iterator[Result]:
    for name, what in (("rebuild", "rebuild"), ("rebuild-after-one-reading", "one_reading")):
        split = {f"{part}_ms": said[f"{what}_{part}_ms"] for part in ("read", "pool")}
        yield Result(name=f"{name}-{connections}", measured=timing_of(said[what]), more=split)
    for name in ("traced", "resident"):
        total = said[f"{name}_bytes"]
        yield Result(
            name=f"memory-per-connection-{name}-{connections}",
            count=total / connections,
            unit="B",
            more={"bytes": total, "connections": connections},
        )
