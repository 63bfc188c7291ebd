"""Rows of a timeline for tests and pictures: samples, turns of rungs and flips of connections."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from ladder.core.values import Rung
from ladder.models import Connection, RungFlip, RungSample, TimelineCursor

MINUTE = timedelta(minutes=1)
Change = tuple[datetime, str | None, str]
"""When another rung began to serve, which (None: none), and because of what."""


def add_samples(*, start: datetime, end: datetime, serving: str | None, step: timedelta = MINUTE) -> None:
    """Store what a worker notes from minute to minute in [start, end)."""
    rows, at = [], start.replace(second=0, microsecond=0)
    while at < end:
        rows += [
            RungSample(
                at=at, rung=rung.word, usable=int(rung.word == serving), total=1, is_serving=rung.word == serving
            )
            for rung in Rung
        ]
        at += step
    RungSample.objects.bulk_create(rows, ignore_conflicts=True)


def add_turn(at: datetime, *, ceases: str | None, begins: str | None, cause: str = "reading") -> None:
    """Store that serving moved from one rung to another."""
    for rung, states in ((ceases, ("serving", "idle")), (begins, ("idle", "serving"))):
        if rung is not None:
            add_flip(at, rung=rung, states=states, cause=cause)


def add_flip(
    at: datetime,
    *,
    rung: str,
    states: Sequence[str],
    cause: str = "reading",
    connection: Connection | None = None,
    code: str | None = None,
) -> RungFlip:
    """Store one flip; without a connection it is the rung's own."""
    return RungFlip.objects.create(
        at=at,
        kind="connection" if connection else "rung",
        connection=connection,
        rung=rung,
        from_state=states[0],
        to_state=states[1],
        code=code,
        cause=cause,
        revision=1,
    )


def begin_timeline(at: datetime) -> None:
    """Store that a worker has looked."""
    TimelineCursor.objects.get_or_create(pk=1, defaults={"at": at, "revision": 1, "picture": [], "prints": {}})


def add_story(*, start: datetime, end: datetime, serving: str | None, changes: Iterable[Change]) -> None:
    """Store samples and turns of a stretch in which serving changed so."""
    begin_timeline(end)
    for at, becomes, cause in changes:
        add_samples(start=start, end=at, serving=serving)
        add_turn(at, ceases=serving, begins=becomes, cause=cause)
        start, serving = at.replace(second=0, microsecond=0) + MINUTE, becomes
    add_samples(start=start, end=end, serving=serving)
