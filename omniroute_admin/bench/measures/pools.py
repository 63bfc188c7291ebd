"""The pool calls over HTTP, beside views that take and give the same bytes and decide nothing."""

from collections.abc import Iterator, Sequence
from typing import Any

from omniroute_admin.bench.bodies import candidates, pool_body, reading_bodies, recurring_candidates
from omniroute_admin.bench.children import beside
from omniroute_admin.bench.client import Client, request
from omniroute_admin.bench.results import Result
from omniroute_admin.bench.stage import WARM_UP, Act, Stage, alternately, asking, beside_floor

POOLS = ("auto/subscription", "auto/thrifty")
GET_TARGET, UNCHANGED_TARGET, POST_TARGET = 1.3, 1.15, 1.5
POST_CANDIDATES, POST_EACH = 200, 3
_SAME_BYTES = "the same bytes, ready, the key checked"


def measure_client(stage: Stage) -> Iterator[Result]:
    """Measure what the client itself costs, with answers as large as those of the pools."""
    for pool_id in POOLS:
        with stage_client(stage) as client:
            size = len(client.expect(stage.get(f"/api/v1/pools/{pool_id}")).body)
        with beside("echo", size=size) as echo, Client(port=echo.said["port"]) as client:
            (timing,) = alternately(
                stage.options.many_rounds, "client", asking(client, request("GET", "/", headers={}))
            )
        yield Result(name=f"client-{short(pool_id)}", measured=timing, more={"bytes": size})


def measure_get(stage: Stage) -> Iterator[Result]:
    """Measure GET of a pool that did not change."""
    for pool_id in POOLS:
        with stage_client(stage) as client:
            asked = [asking(client, one) for one in _both(stage, pool_id)]
            timings = alternately(stage.options.many_rounds, f"GET {pool_id}", *asked)
        yield beside_floor(name=f"get-{short(pool_id)}", timings=timings, floor_is=_SAME_BYTES, target=GET_TARGET)


def measure_get_revised(stage: Stage) -> Iterator[Result]:
    """Measure GET of a pool just after another connection committed a change: the cost of preparing it anew."""
    for pool_id in POOLS:
        with stage_client(stage) as client, stage_client(stage) as writer:
            asked, floor = (asking(client, one) for one in _both(stage, pool_id))
            timings = alternately(
                stage.options.few_rounds, f"GET {pool_id} revised", after_a_write(stage, writer, asked), floor
            )
        yield beside_floor(name=f"get-revised-{short(pool_id)}", timings=timings, floor_is=_SAME_BYTES, target=None)


def measure_unchanged(stage: Stage) -> Iterator[Result]:
    """Measure 304 for a client that has the pool already."""
    for pool_id in POOLS:
        with stage_client(stage) as client:
            # The floor keeps its answer at the first call, which must be one that has content.
            first, _ = [client.expect(one) for one in _both(stage, pool_id)]
            etag = str(first.header("ETag"))
            paths = (f"/api/v1/pools/{pool_id}", f"/api/v1/bench/unchanged/{pool_id}")
            asked = [asking(client, stage.get(path, **{"If-None-Match": etag}), 304) for path in paths]
            timings = alternately(stage.options.many_rounds, f"304 {pool_id}", *asked)
        yield beside_floor(
            name=f"unchanged-{short(pool_id)}",
            timings=timings,
            floor_is="304, the key checked",
            target=UNCHANGED_TARGET,
        )


def measure_post(stage: Stage) -> Iterator[Result]:
    """Measure POST of candidates: lists of connections that recur, and lists none of which was seen before."""
    listed = recurring_candidates(
        models=stage.fleet.models, connections=stage.fleet.connections, count=POST_CANDIDATES, each=POST_EACH
    )
    yield _post(stage, "post-recurring", [listed])
    yield _post(stage, "post-distinct", [_distinct(stage, seed) for seed in range(stage.options.many_rounds + WARM_UP)])


def _distinct(stage: Stage, seed: int) -> list[dict[str, Any]]:
    return candidates(
        models=stage.fleet.models,
        connections=stage.fleet.connections,
        count=POST_CANDIDATES,
        each=POST_EACH,
        seed=seed,
    )


def _post(stage: Stage, name: str, lists: Sequence[list[dict[str, Any]]]) -> Result:
    bodies = [pool_body(one) for one in lists]

    def sending(path: str, client: Client) -> Act:
        requests = [stage.post(path, body) for body in bodies]
        return lambda turn: client.expect(requests[turn % len(requests)]).seconds

    with stage_client(stage) as client:
        paths = ("/api/v1/pools/auto/thrifty", "/api/v1/bench/pools/auto/thrifty")
        timings = alternately(stage.options.many_rounds, name, *(sending(path, client) for path in paths))
    return Result(
        name=name,
        measured=timings[0],
        floor=timings[1],
        floor_is="the same body decoded, a prepared answer encoded, the key checked",
        target=POST_TARGET,
        more={"bytes": len(bodies[0])},
    )


def _both(stage: Stage, pool_id: str) -> tuple[bytes, bytes]:
    return stage.get(f"/api/v1/pools/{pool_id}"), stage.get(f"/api/v1/bench/pools/{pool_id}")


def after_a_write(stage: Stage, writer: Client, asked: Act) -> Act:
    """Return the act with a change before it, committed through another connection; only the act itself counts."""
    bodies = reading_bodies(stage.fleet.readers, says="percents")

    def act(turn: int) -> float:
        writer.expect(stage.post("/api/v1/telemetry/readings", next(bodies)))
        return asked(turn)

    return act


def stage_client(stage: Stage) -> Client:
    """Return a client of the server of the run."""
    return Client(port=stage.port)


def short(pool_id: str) -> str:
    """Return a pool's name as it stands in the name of a row."""
    return pool_id.removeprefix("auto/")
