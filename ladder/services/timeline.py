"""Write the timeline (SPEC 3): flips, samples, and what becomes of them with age. No decision depends on any of it."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import msgspec
from django.db import transaction
from django.db.models import Min
from django.db.models.functions import TruncHour

from ladder.core.instants import NEVER
from ladder.core.occupancy import RungOccupancy, build_occupancy
from ladder.core.timeline import Flip, Picture, Walk, find_flips, walk
from ladder.models import RungFlip, RungSample, TimelineCursor
from ladder.selectors.state import get_snapshot
from ladder.selectors.timeline import Sight, is_picture_current, read_sight

MINUTELY_FOR = timedelta(days=30)
"""How long samples are kept for every minute; older ones are kept for every hour."""

SAMPLES_FOR = timedelta(days=180)
FLIPS_FOR = timedelta(days=365)

_BATCH = 500


class Thinned(msgspec.Struct, frozen=True):
    """How many rows age took."""

    samples: int
    flips: int


def note_flips(*, now: datetime) -> int:
    """Note what changed on the ladder since the last look and return how many flips that were.

    Reading and working out hold no lock; the flips and how far the looks have come are then written together, and only
    if no other process did so meanwhile. So each flip is written once, and a look that dies loses nothing. The
    revision never moves, and where nothing changed nothing is written.
    """
    if is_picture_current(now=now):
        return 0
    sight = read_sight(now=now)
    walked = walk(stages=sight.stages, keys=sight.keys, start=sight.start, now=now)
    flips = _flips(sight, walked, now)
    with transaction.atomic():
        if not _advance(sight, walked, now):
            return 0
        # A clock that was set back comes to the same instants again; what is noted of them stands.
        RungFlip.objects.bulk_create(_rows(flips, sight.revision), batch_size=_BATCH, ignore_conflicts=True)
    return len(flips)


def _flips(sight: Sight, walked: Walk, now: datetime) -> list[Flip]:
    if sight.seen is None:
        return []
    return find_flips(
        picture=sight.seen.picture,
        before=sight.seen.prints,
        after=sight.prints,
        steps=walked.steps,
        keys=sight.keys,
        now=now,
    )


def _advance(sight: Sight, walked: Walk, now: datetime) -> bool:
    """Store what this look saw and return True, or False where another look has done so since this one began."""
    values = {
        "at": now,
        "revision": sight.revision,
        "valid_until": None if walked.valid_until == NEVER else walked.valid_until,
        "picture": _picture_rows(walked.steps[-1].picture),
        "prints": sight.prints,
    }
    if sight.seen is None:
        return TimelineCursor.objects.get_or_create(pk=1, defaults=values)[1]
    mine = TimelineCursor.objects.filter(pk=1, version=sight.seen.version)
    return mine.update(version=sight.seen.version + 1, **values) == 1


def _picture_rows(picture: Picture) -> list[tuple[int, str, str, str | None]]:
    return [(pk, rung, standing.state, standing.code) for (pk, rung), standing in sorted(picture.items())]


def _rows(flips: Iterable[Flip], revision: int) -> list[RungFlip]:
    return [
        RungFlip(
            at=flip.at,
            kind="rung" if flip.connection is None else "connection",
            connection_id=flip.connection,
            rung=flip.rung,
            from_state=flip.from_state,
            to_state=flip.to_state,
            code=flip.code,
            cause=flip.cause.value,
            revision=revision,
        )
        for flip in flips
    ]


def sample_occupancy(*, now: datetime) -> int:
    """Keep how each rung stands in the minute of `now` and return how many rows were new: five, or none.

    Said twice in one minute the first stands.
    """
    minute = now.replace(second=0, microsecond=0)
    if RungSample.objects.filter(at=minute).exists():
        return 0
    occupancy = build_occupancy(snapshot=get_snapshot(now=now), now=now)
    rows = [_sample(rung, minute, serving=occupancy.serving_rung) for rung in occupancy.rungs]
    RungSample.objects.bulk_create(rows, ignore_conflicts=True)
    return len(rows)


def _sample(rung: RungOccupancy, minute: datetime, *, serving: str | None) -> RungSample:
    return RungSample(
        at=minute,
        rung=rung.rung,
        usable=rung.usable,
        total=rung.total,
        is_serving=rung.rung == serving,
        left_usd=None if rung.budget is None else rung.budget.left_usd,
    )


def thin_timeline(*, now: datetime) -> Thinned:
    """Drop what age takes: samples beyond 30 days but the first of each hour, all beyond 180 days, flips beyond 365.

    Said twice, the second drops nothing.
    """
    with transaction.atomic():
        dropped, _ = RungSample.objects.filter(at__lt=now - SAMPLES_FOR).delete()
        older = RungSample.objects.filter(at__lt=now - MINUTELY_FOR).order_by()
        hourly = older.annotate(hour=TruncHour("at", tzinfo=UTC)).values("rung", "hour")
        thinned, _ = older.exclude(pk__in=hourly.annotate(first=Min("pk")).values("first")).delete()
        flips, _ = RungFlip.objects.filter(at__lt=now - FLIPS_FOR).delete()
    return Thinned(dropped + thinned, flips)
