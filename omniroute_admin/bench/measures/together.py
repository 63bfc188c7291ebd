"""Pool calls while something else goes on: readings arrive, pages are open, another process writes."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from omniroute_admin.bench.bodies import Reader, Said, one_reading, pool_body
from omniroute_admin.bench.children import beside, serving
from omniroute_admin.bench.client import Client
from omniroute_admin.bench.errors import BenchError
from omniroute_admin.bench.measures.pages import poll_path
from omniroute_admin.bench.measures.pools import POOLS, short, stage_client
from omniroute_admin.bench.results import Result
from omniroute_admin.bench.stage import Fleet, Stage, turns, watch
from omniroute_admin.common.selectors.revision import current_revision

PER_SECOND, PAGES, POLL_SECONDS = 50, 50, 3.0
ARRIVING_TARGET = 3.0
_FLIPPING = 50
_QUIET = "the same call, with nothing else going on"


def measure_arriving(stage: Stage) -> Iterator[Result]:
    """Measure GET while readings arrive that change a percent each, and while each changes a verdict."""
    kinds: tuple[tuple[Said, list[Reader]], ...] = (
        ("percents", stage.fleet.readers),
        ("verdicts", stage.fleet.single_readers[:_FLIPPING]),
    )
    for pool_id in POOLS:
        for says, readers in kinds:
            what = {"key": stage.key, "readers": readers, "per_second": PER_SECOND, "says": says}
            name = f"get-{short(pool_id)}-while-{says}-arrive"
            yield _shifted(stage, name, pool_id, ARRIVING_TARGET, "readings", what)
            _mend(stage, readers)


def measure_pages_open(stage: Stage) -> Iterator[Result]:
    """Measure GET while many pages are open that poll."""
    with stage_client(stage) as client:
        path = poll_path(stage, client)
    what = {"cookie": stage.cookie, "path": path, "pages": PAGES, "every": POLL_SECONDS}
    for pool_id in POOLS:
        yield _shifted(stage, f"get-{short(pool_id)}-while-{PAGES}-pages-poll", pool_id, None, "polls", what)


def _shifted(stage: Stage, name: str, pool_id: str, target: float | None, kind: str, what: dict[str, Any]) -> Result:
    asked = stage.get(f"/api/v1/pools/{pool_id}")
    with stage_client(stage) as client:
        client.expect(asked)
        quiet = watch(client, asked, seconds=stage.options.seconds)
        with beside(kind, port=stage.port, **what) as other:
            watched = watch(client, asked, seconds=stage.options.seconds)
        said = other.said
    return Result(
        name=name,
        measured=watched.timing,
        floor=quiet.timing,
        floor_is=_QUIET,
        by="p95",
        target=target,
        more={**said, "stopped": watched.stopped},
        failure=None if watched.timing is not None else "no call was answered",
    )


def _mend(stage: Stage, readers: list[Reader]) -> None:
    """Make the windows usable again, so that the next measure finds the fleet as the first did."""
    with stage_client(stage) as client:
        for reader in readers[:_FLIPPING]:
            client.expect(stage.post("/api/v1/telemetry/readings", one_reading(reader, is_usable=True)))


def measure_two_processes(stage: Stage) -> Iterator[Result]:
    """Count old answers of one server process after a write that another had acknowledged."""
    reader = stage.fleet.readers[0]
    with ExitStack() as stack:
        ports = [
            stack.enter_context(
                serving(workers=1, environment=stage.environment, log=stage.var_dir / f"server-{name}.log")
            )
            for name in ("one", "other")
        ]
        clients = [stack.enter_context(Client(port=port)) for port in ports]
        old = 0
        for turn in turns(stage.options.tries, "two processes"):
            writer, asked = clients[turn % 2], clients[1 - turn % 2]
            # Not in step with the sides, so that each side writes and reads both answers in both ways.
            is_usable = turn // 2 % 2 == 1
            answer = writer.expect(stage.post("/api/v1/telemetry/readings", one_reading(reader, is_usable=is_usable)))
            if answer.json()["accepted"] != 1:
                raise BenchError(f"the reading was not accepted: {answer.body[:300]!r}")
            old += _is_old(stage, asked, reader, is_usable=is_usable, is_get=turn // 4 % 2 == 0)
    _mend(stage, [reader])
    yield Result(
        name="two-processes-old-answers",
        count=old,
        unit=f"of {stage.options.tries:,}",
        target=0,
        more={"tries": stage.options.tries},
    )


def _is_old(stage: Stage, client: Client, reader: Reader, *, is_usable: bool, is_get: bool) -> bool:
    """Tell whether a pool is older than what was committed before it was asked for: by its revision, or by content."""
    committed = current_revision()
    path = "/api/v1/pools/auto/subscription"
    asked = stage.get(path) if is_get else stage.post(path, _candidate(stage.fleet, reader))
    answer = client.expect(asked)
    listed = {one for entry in answer.json()["candidates"] for one in entry["allowed_connection_ids"]}
    return int(answer.header("X-Ladder-Revision") or 0) < committed or (reader[0] in listed) is not is_usable


def _candidate(fleet: Fleet, reader: Reader) -> bytes:
    provider = next(name for name, ids in fleet.connections.items() if reader[0] in ids)
    return pool_body(
        [{"provider": provider, "model": fleet.models[provider][0], "allowed_connection_ids": [reader[0]]}]
    )
