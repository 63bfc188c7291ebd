"""Pool calls of a good client while others misbehave."""

from collections.abc import Iterator

from omniroute_admin.bench.abuse import ABUSES
from omniroute_admin.bench.children import beside, serving
from omniroute_admin.bench.client import Client
from omniroute_admin.bench.results import Result
from omniroute_admin.bench.stage import Stage, watch

PATIENCE = 5.0
"""Seconds a good client waits before it takes a call for stopped."""


def measure_abuse(stage: Stage) -> Iterator[Result]:
    """Measure what is left to a good client beside bad ones, each kind alone and then all at once."""
    for name, manners in [*((name, [name]) for name in ABUSES), ("all", list(ABUSES))]:
        yield from _abused(stage, name, manners)


def _abused(stage: Stage, name: str, manners: list[str]) -> Iterator[Result]:
    asked = stage.get("/api/v1/pools/auto/subscription")
    # A server of its own: what is left of the bad clients must not reach the next measure.
    with serving(
        workers=stage.options.workers, environment=stage.environment, log=stage.var_dir / "server-abused.log"
    ) as port:
        with Client(port=port) as client:
            client.expect(asked)
            quiet = watch(client, asked, seconds=stage.options.seconds)
        with (
            beside("abuse", port=port, key=stage.key, manners=manners) as bad,
            Client(port=port, patience=PATIENCE) as good,
        ):
            watched = watch(good, asked, seconds=stage.options.seconds)
        said = bad.said
    answered = 0 if watched.timing is None else watched.timing.n
    if watched.timing is not None:
        yield Result(
            name=f"abuse-{name}",
            measured=watched.timing,
            floor=quiet.timing,
            floor_is="the same call, with nothing else going on",
            by="p95",
            more=said,
        )
    yield Result(
        name=f"abuse-{name}-stopped",
        count=watched.stopped,
        unit=f"of {watched.stopped + answered}",
        target=0,
        more={"patience_seconds": PATIENCE},
    )
