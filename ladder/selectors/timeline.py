"""Reading the timeline: what was noted, how far the looks have come, and the state that the next one looks at."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
from django.db.models import Max, QuerySet

from ladder.core.timeline.causes import Prints, Standing
from ladder.core.timeline.flips import RUNG_ITSELF, Picture, Spot
from ladder.core.timeline.trail import Moment, Write, catalogue_of, undo
from ladder.mapping import rung_named
from ladder.models import Connection, QuotaWindow, RungBudget, RungFlip, RungSample, TimelineCursor
from ladder.selectors.ledger import read_budget_windows
from ladder.selectors.state import read_facts
from ladder.selectors.trail import read_newest_first, read_oldest_keys
from omniroute_admin.common.selectors.revision import current_revision, read_snapshot

SKEW = timedelta(minutes=1)
"""How far the clocks of two processes may differ (SPEC 6)."""


_JUST_AFTER = timedelta(milliseconds=1)
"""Within it lie the flips that are told after others of the same instant."""


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

    It looks from `start` (the last look's instant, or `end` where there was none or the clock went back, SPEC 6) to
    `end`. `moment` is that of `start`, before all of the `writes`, which are the oldest that nobody has told of, in
    commit order, the last with the key `last_trace`. `told` has the last noted flip of each spot that has one which is
    not before all of them. `prints` are those of the facts at the end.
    """

    seen: Seen | None
    revision: int
    start: datetime
    end: datetime
    moment: Moment
    writes: list[Write]
    last_trace: int | None
    is_last: bool
    told: dict[Spot, datetime]
    acts: dict[int, int]


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


def read_sight(*, now: datetime, most_writes: int) -> Sight:
    """Read what the last look saw, the writes since, at most so many, and the moment before them."""
    with read_snapshot() as revision:
        seen = _read_seen()
        start = seen.at if seen is not None and seen.at <= now else now
        moment = _read_moment(revision, start, now)
        keys = read_oldest_keys(most=most_writes + 1)
        is_last, keys = len(keys) <= most_writes, keys[:most_writes]
        writes = undo(moment=moment, writes=read_newest_first(), keep=most_writes)
        return Sight(
            seen=seen,
            revision=revision,
            start=start,
            end=now if is_last else max(start, *(min(one.at, now) for one in writes)),
            moment=moment,
            writes=writes,
            last_trace=keys[-1] if keys else None,
            is_last=is_last,
            told=_read_told(writes, start, now),
            acts=_read_acts(),
        )


def _read_moment(revision: int, start: datetime, now: datetime) -> Moment:
    """Read the facts as the rows say them now, back to `start` where time is in them."""
    facts = read_facts(revision=revision, now=start)
    live = Connection.objects.live().order_by().values_list("provider", "connection_id", "pk")
    keys = {(provider, connection_id): pk for provider, connection_id, pk in live}
    return Moment(
        accounts={keys[one.provider, one.connection_id]: one for one in facts.connections},
        settings=facts.settings,
        breakers=dict(facts.breakers),
        budgets={
            rung_named(row.rung): read_budget_windows(row=row, start=start, now=now)
            for row in RungBudget.objects.order_by("rung")
        },
        catalogue=catalogue_of(facts),
    )


def _read_told(writes: Sequence[Write], start: datetime, now: datetime) -> dict[Spot, datetime]:
    """Return the last flip of each spot that has one since the oldest write; none where no write is older than looks.

    Flips beyond `now` are those of a clock that was set back, but for what is told just after an instant.
    """
    since = min((one.at for one in writes), default=None)
    if since is None or since > start:
        return {}
    rows = RungFlip.objects.filter(at__gte=since, at__lte=now + _JUST_AFTER).order_by("at", "id")
    return {(pk or RUNG_ITSELF, rung): at for pk, rung, at in rows.values_list("connection_id", "rung", "at")}


def _read_seen() -> Seen | None:
    row = TimelineCursor.objects.filter(pk=1).first()
    if row is None:
        return None
    picture = {(pk, rung): Standing(state, code) for pk, rung, state, code in row.picture}
    prints = {int(pk): parts for pk, parts in row.prints.items()}
    return Seen(row.version, row.at, row.revision, row.valid_until, picture, prints)


def _read_acts() -> dict[int, int]:
    """Return by connection the newest act on one of its windows: only what an operator does to them is history."""
    return dict(QuotaWindow.history.order_by().values_list("connection_id").annotate(Max("history_id")))


def flips_between(
    *, start: datetime, end: datetime, kind: str | None = None, connection: Connection | None = None
) -> QuerySet[RungFlip, Any]:
    """Return the flips in [start, end) in the order in which they happened.

    Of one `kind` (`connection` or `rung`) and of one connection only, where those are given.
    """
    rows = RungFlip.objects.filter(at__gte=start, at__lt=end).order_by("at", "id")
    rows = rows if kind is None else rows.filter(kind=kind)
    return rows if connection is None else rows.filter(connection=connection)


def samples_between(*, start: datetime, end: datetime, rung: str | None = None) -> QuerySet[RungSample, Any]:
    """Return the samples in [start, end), oldest first; those of one rung only, where it is given."""
    rows = RungSample.objects.filter(at__gte=start, at__lt=end).order_by("at", "rung")
    return rows if rung is None else rows.filter(rung=rung)
