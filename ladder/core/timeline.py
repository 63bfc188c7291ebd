"""The timeline: which connection changed its state, which rung began or ceased to serve, exactly when, why (SPEC 3).

Between two looks time changes the ladder at instants that the facts tell, so those flips carry their exact instant,
however late the look. What a write changed is dated by the look that found it. A change that came and went between two
looks leaves no flip: nothing that is kept tells of it.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from itertools import pairwise

import msgspec

from ladder.core.instants import NEVER
from ladder.core.occupancy import Occupancy, build_occupancy
from ladder.core.snapshot import Snapshot
from ladder.core.timeline_causes import Cause, Prints, Standing, cause_of_time, cause_of_write
from ladder.core.values import Facts, Rung

RUNG_ITSELF = 0
"""Stands in a spot for "the rung, whoever is on it"; no row has that key."""

STEPS_AT_MOST = 200
"""How many instants one look walks over; what time changed after the last of them is dated by the look."""

Key = tuple[str, str]
"""Provider and connection id, which the facts name a connection by."""

Spot = tuple[int, str]
"""What flips: the key of a connection's row, or RUNG_ITSELF, and the rung's word."""

Picture = Mapping[Spot, Standing]
"""What each spot is at one instant. All five rungs are in it; a connection only where it stands."""

NOT_THERE = Standing("")
"""What a spot is that is not in the picture."""

_INDEX = {rung.word: int(rung) for rung in Rung}


class Serving(StrEnum):
    """Whether a rung is the one that auto/thrifty serves from."""

    SERVING = "serving"
    IDLE = "idle"


class Stage(msgspec.Struct, frozen=True):
    """The facts that hold until an instant, exclusive: a new stage begins where a budget window ends (M3)."""

    snapshot: Snapshot
    until: datetime


class Step(msgspec.Struct, frozen=True):
    """The ladder at an instant, and the facts under which time ran up to it."""

    at: datetime
    picture: Picture
    facts: Facts


class Walk(msgspec.Struct, frozen=True):
    """The steps from one instant to another, never none; the last one holds until `valid_until`, exclusive."""

    steps: tuple[Step, ...]
    valid_until: datetime


class Flip(msgspec.Struct, frozen=True):
    """One change: `connection` None is the rung itself; an empty state is "not there". `code` is the new state's."""

    at: datetime
    connection: int | None
    rung: str
    from_state: str
    to_state: str
    code: str | None
    cause: Cause


class _Change(msgspec.Struct, frozen=True):
    """A spot that became something else; `since` None says that a write did it, else time did it after `since`."""

    spot: Spot
    at: datetime
    was: Standing
    became: Standing
    facts: Facts
    since: datetime | None = None

    @property
    def is_of_rung(self) -> bool:
        return self.spot[0] == RUNG_ITSELF


def picture_of(*, occupancy: Occupancy, keys: Mapping[Key, int]) -> Picture:
    """Return what each spot is; `keys` gives the row of each connection."""
    picture = {
        (keys[place.provider, place.connection_id], place.rung): Standing(place.state.value, place.code)
        for place in occupancy.places
    }
    for rung in Rung:
        serves = rung.word == occupancy.serving_rung
        picture[RUNG_ITSELF, rung.word] = Standing((Serving.SERVING if serves else Serving.IDLE).value)
    return picture


def walk(*, stages: Sequence[Stage], keys: Mapping[Key, int], start: datetime, now: datetime) -> Walk:
    """Walk from `start` to `now` over every instant at which time alone could change the ladder (P9).

    The stages follow each other without a gap: the first holds at `start`, the last beyond `now`.
    """
    steps: list[Step] = []
    at, before = start, stages[0].snapshot.facts
    while at <= now:
        stage = next(stage for stage in stages if at < stage.until)
        occupancy = build_occupancy(snapshot=stage.snapshot, now=at)
        steps.append(Step(at, picture_of(occupancy=occupancy, keys=keys), before))
        until = min(occupancy.valid_until or NEVER, stage.until)
        is_too_far = len(steps) == STEPS_AT_MOST and until < now
        at, before = now if is_too_far else until, stage.snapshot.facts
    return Walk(tuple(steps), at)


def find_flips(
    *,
    picture: Picture,
    before: Prints,
    after: Prints,
    steps: Sequence[Step],
    keys: Mapping[Key, int],
    now: datetime,
) -> list[Flip]:
    """Return what changed since `picture`, which was at the first step's instant, in the order in which it happened.

    `before` and `after` are the prints of the facts then and now. Where the present facts say at the picture's own
    instant something else than it does, a write changed it, and one flip at `now` tells what has become of the spot.
    """
    changes = list(_changes(picture, steps, now))
    names = {pk: key for key, pk in keys.items()}
    flips = [_flip(one, _cause(one, before, after, names)) for one in changes if not one.is_of_rung]
    of_rungs = [one for one in changes if one.is_of_rung]
    for one in of_rungs:
        told = _told_by(flips, _moved_rung(one, of_rungs), one.at)
        flips.append(_flip(one, told or _cause(one, before, after, names)))
    return sorted(flips, key=lambda flip: (flip.at, flip.connection is None, flip.connection or 0, _INDEX[flip.rung]))


def _changes(picture: Picture, steps: Sequence[Step], now: datetime) -> Iterator[_Change]:
    spots = {spot for seen in (picture, *(step.picture for step in steps)) for spot in seen}
    for spot in sorted(spots):
        was = picture.get(spot, NOT_THERE)
        became = steps[-1].picture.get(spot, NOT_THERE)
        if steps[0].picture.get(spot, NOT_THERE) == was:
            yield from _passed(spot, steps)
        elif became != was:
            yield _Change(spot, now, was, became, steps[-1].facts)


def _passed(spot: Spot, steps: Sequence[Step]) -> Iterator[_Change]:
    """Yield the changes of one spot that time made, each at its instant."""
    for earlier, later in pairwise(steps):
        was, became = earlier.picture.get(spot, NOT_THERE), later.picture.get(spot, NOT_THERE)
        if was != became:
            yield _Change(spot, later.at, was, became, later.facts, earlier.at)


def _cause(change: _Change, before: Prints, after: Prints, names: Mapping[int, Key]) -> Cause:
    pk, rung = change.spot
    if change.since is None:
        return cause_of_write(was=change.was, became=change.became, before=before, after=after, pk=pk)
    return cause_of_time(
        was=change.was,
        became=change.became,
        facts=change.facts,
        name=names.get(pk),
        rung=rung,
        since=change.since,
        until=change.at,
    )


def _moved_rung(change: _Change, of_rungs: Sequence[_Change]) -> str:
    """Return the lower of the rungs between which serving moved: what happened there moved it."""
    together = [one.spot[1] for one in of_rungs if one.at == change.at]
    return min(together, key=_INDEX.__getitem__)


def _told_by(flips: Sequence[Flip], rung: str, at: datetime) -> Cause | None:
    """Return why connections flipped at an instant, those of the rung first; None where none did."""
    causes = [(flip.rung != rung, flip.cause) for flip in flips if flip.at == at and flip.connection is not None]
    return min(causes, key=lambda told: told[0])[1] if causes else None


def _flip(change: _Change, cause: Cause) -> Flip:
    pk, rung = change.spot
    return Flip(change.at, pk or None, rung, change.was.state, change.became.state, change.became.code, cause)
