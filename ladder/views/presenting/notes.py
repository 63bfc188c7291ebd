"""What an operator should know beside the ladder itself: no worker is seen, no reading ever came (SPEC 5)."""

import msgspec

from ladder.core.occupancy import Occupancy
from ladder.core.values import Rung
from omniroute_admin.common.core.screen import Glance, Moment
from omniroute_admin.common.selectors.heartbeat import PeriodicState, PeriodicWork


class Note(msgspec.Struct, frozen=True):
    """One note: what is the matter, since when, what goes on all the same, and what mends it."""

    words: str
    since: Moment | None
    meaning: str
    remedy: str
    command: str


def notes(*, occupancy: Occupancy, work: PeriodicWork, glance: Glance) -> tuple[Note, ...]:
    """Return the notes of this moment, none in good weather."""
    return tuple(note for note in (_worker(work, glance), _readings(occupancy)) if note is not None)


def _worker(work: PeriodicWork, glance: Glance) -> Note | None:
    if work.state is not PeriodicState.LATE:
        return None
    return Note(
        words="No worker has been seen" if work.last_beat_at else "No worker has ever been seen here",
        since=glance.ago(work.last_beat_at) if work.last_beat_at else None,
        meaning="Decisions, budgets and the ledger go on; the timeline, charts and price updates wait.",
        remedy="Start worker and scheduler; all of it runs with",
        command="python manage.py quickstart",
    )


def _readings(occupancy: Occupancy) -> Note | None:
    """Return the note that no plan has a reading, where there are plans to read."""
    plans = [place for place in occupancy.places if place.rung == Rung.SUBSCRIPTION.word]
    if not plans or any(place.window is not None for place in plans):
        return None
    return Note(
        words="No reading has ever arrived",
        since=None,
        meaning="auto/subscription stays empty until one does (it fails closed); auto/thrifty tries the plans unseen.",
        remedy="A router or a script reports quota with",
        command="POST /api/v1/telemetry/readings",
    )
