"""Write the timeline (SPEC 3): flips, samples, and what becomes of them with age. No decision depends on any of it."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from django.db import transaction
from django.db.models import Min
from django.db.models.functions import TruncHour

from ladder.core.instants import NEVER
from ladder.core.occupancy import RungOccupancy, build_occupancy
from ladder.core.timeline.causes import Prints, prints_of
from ladder.core.timeline.flips import Flip, Picture, Telling, with_late_flips
from ladder.core.timeline.teller import tell
from ladder.models import RungFlip, RungSample, TimelineCursor, TimelineTrace
from ladder.selectors.state import get_snapshot
from ladder.selectors.timeline import Sight, is_picture_current, read_sight

MINUTELY_FOR = timedelta(days=30)
"""How long samples are kept for every minute; older ones are kept for every hour."""

_BATCH = 500
_WRITES_AT_MOST = 500
_LOOKS_AT_MOST = 10


def note_flips(*, now: datetime) -> int:
    """Note what changed on the ladder since the last look and return how many flips that were.

    Reading and working out hold no lock; the flips, how far the looks have come and the end of the traces they were
    told from are then written together, and only if no other process did so meanwhile. So each flip is written once,
    and a look that dies loses nothing. The revision never moves, and where nothing changed nothing is written. Where
    more was written than one look takes, looks follow each other, and what is left then waits for the next call.
    """
    count = 0
    for _ in range(_LOOKS_AT_MOST):
        if is_picture_current(now=now):
            break
        sight = read_sight(now=now, most_writes=_WRITES_AT_MOST)
        noted = _note(sight)
        if noted is None:
            break
        count += noted
        if sight.is_last:
            break
    return count


def _note(sight: Sight) -> int | None:
    """Note what one look saw; None where another look came before."""
    seen = sight.seen
    telling = tell(
        moment=sight.moment,
        writes=sight.writes,
        seen=None if seen is None else seen.picture,
        told=sight.told,
        start=sight.start,
        now=sight.end,
    )
    prints = _prints(sight)
    flips: Sequence[Flip] = ()
    if seen is not None:
        flips = with_late_flips(telling=telling, seen=seen.picture, before=seen.prints, after=prints, now=sight.end)
    with transaction.atomic():
        if not _advance(sight, telling, prints):
            return None
        # A clock that was set back comes to the same instants again; what is noted of them stands.
        RungFlip.objects.bulk_create(_rows(flips, sight.revision), batch_size=_BATCH, ignore_conflicts=True)
        if sight.last_trace is not None:
            # Traces are numbered in commit order: none that this look could not see has a lower key.
            TimelineTrace.objects.filter(pk__lte=sight.last_trace).delete()
    return len(flips)


def _prints(sight: Sight) -> Prints:
    """Return the prints of the facts at the end of a telling, which carried the moment there."""
    accounts = sight.moment.accounts
    keys = {(one.provider, one.connection_id): key for key, one in accounts.items()}
    return prints_of(facts=sight.moment.facts(), keys=keys, acts=sight.acts, at=sight.end)


def _advance(sight: Sight, telling: Telling, prints: Prints) -> bool:
    """Store what this look saw and return True, or False where another look has done so since this one began."""
    values = {
        "at": sight.end,
        # While traces are left the picture is of no revision that anything is at now or later.
        "revision": sight.revision if sight.is_last else sight.revision - 1,
        "valid_until": None if telling.valid_until == NEVER else telling.valid_until,
        "picture": _picture_rows(telling.picture),
        "prints": prints,
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
            revision=revision if flip.revision is None else flip.revision,
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


def thin_timeline(*, now: datetime) -> int:
    """Drop the samples beyond 30 days but the first of each hour, and return how many went.

    Said twice, the second drops nothing.
    """
    with transaction.atomic():
        older = RungSample.objects.filter(at__lt=now - MINUTELY_FOR).order_by()
        hourly = older.annotate(hour=TruncHour("at", tzinfo=UTC)).values("rung", "hour")
        thinned, _ = older.exclude(pk__in=hourly.annotate(first=Min("pk")).values("first")).delete()
    return thinned
