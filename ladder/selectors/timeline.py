"""Reading the timeline: what was noted, how far the looks have come, and the state that the next one looks at."""

from datetime import datetime, timedelta
from typing import Any

import msgspec
from django.db.models import Max, QuerySet

from ladder.core.instants import NEVER
from ladder.core.snapshot import Snapshot
from ladder.core.timeline import Key, Picture, Stage
from ladder.core.timeline_causes import Prints, Standing, prints_of
from ladder.core.values import Facts
from ladder.models import Connection, QuotaWindow, RungFlip, RungSample, TimelineCursor
from ladder.selectors.state import read_budgets, read_facts
from omniroute_admin.common.selectors.revision import current_revision, read_snapshot

SKEW = timedelta(minutes=1)
"""How far the clocks of two processes may differ (SPEC 6)."""

_STAGES_AT_MOST = 40


class Seen(msgspec.Struct, frozen=True):
    """What the last look saw."""

    version: int
    at: datetime
    revision: int
    valid_until: datetime | None
    picture: Picture
    prints: Prints


class Sight(msgspec.Struct, frozen=True):
    """All that one look needs, read in one view of the database; `seen` None is the first look of all.

    `start` is where it begins: the last look's instant, or `now` where there was none or the clock went back (SPEC 6).
    """

    seen: Seen | None
    revision: int
    start: datetime
    stages: list[Stage]
    keys: dict[Key, int]
    prints: Prints


def is_picture_current(*, now: datetime) -> bool:
    """Tell whether a look at `now` would find what the last one found, by two indexed reads.

    So it is too where another process has looked later, by a clock that is ahead within the tolerated skew (SPEC 6).
    """
    row = TimelineCursor.objects.filter(pk=1).values_list("at", "revision", "valid_until").first()
    if row is None:
        return False
    at, revision, valid_until = row
    if now < at:
        return at - now <= SKEW
    return revision == current_revision() and (valid_until is None or now < valid_until)


def read_sight(*, now: datetime) -> Sight:
    """Read what the last look saw, and the state from then to `now`."""
    with read_snapshot() as revision:
        seen = _read_seen()
        start = seen.at if seen is not None and seen.at <= now else now
        facts = read_facts(revision=revision, now=start)
        live = Connection.objects.live().order_by().values_list("provider", "connection_id", "pk")
        keys = {(provider, connection_id): pk for provider, connection_id, pk in live}
        stages = _read_stages(facts, start, now)
        prints = prints_of(facts=stages[-1].snapshot.facts, keys=keys, acts=_read_acts(), at=now)
    return Sight(seen, revision, start, stages, keys, prints)


def _read_seen() -> Seen | None:
    row = TimelineCursor.objects.filter(pk=1).first()
    if row is None:
        return None
    picture = {(pk, rung): Standing(state, code) for pk, rung, state, code in row.picture}
    prints = {int(pk): parts for pk, parts in row.prints.items()}
    return Seen(row.version, row.at, row.revision, row.valid_until, picture, prints)


def _read_stages(facts: Facts, start: datetime, now: datetime) -> list[Stage]:
    """Return the facts from `start` to beyond `now`, read anew where a budget window ended between (M3, M4)."""
    stages: list[Stage] = []
    while True:
        ends = [budget.window_end for budget in facts.budgets.values() if budget.window_end is not None]
        stages.append(Stage(Snapshot(facts), min(ends, default=NEVER)))
        if stages[-1].until > now:
            return stages
        at = stages[-1].until if len(stages) < _STAGES_AT_MOST else now
        facts = msgspec.structs.replace(facts, budgets=read_budgets(now=at))


def _read_acts() -> dict[int, int]:
    """Return by connection the newest act on one of its windows: only what an operator does to them is history."""
    return dict(QuotaWindow.history.order_by().values_list("connection_id").annotate(Max("history_id")))


def flips_between(
    *, start: datetime, end: datetime, kind: str | None = None, connection: Connection | None = None
) -> QuerySet[RungFlip, Any]:
    """Return the flips in [start, end) in the order in which they happened, with their connections.

    Of one `kind` (`connection` or `rung`) and of one connection only, where those are given.
    """
    rows = RungFlip.objects.filter(at__gte=start, at__lt=end).select_related("connection").order_by("at", "id")
    rows = rows if kind is None else rows.filter(kind=kind)
    return rows if connection is None else rows.filter(connection=connection)


def samples_between(*, start: datetime, end: datetime, rung: str | None = None) -> QuerySet[RungSample, Any]:
    """Return the samples in [start, end), oldest first; those of one rung only, where it is given."""
    rows = RungSample.objects.filter(at__gte=start, at__lt=end).order_by("at", "rung")
    return rows if rung is None else rows.filter(rung=rung)
