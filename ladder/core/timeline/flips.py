"""The timeline: which connection changed its state, which rung began or ceased to serve, exactly when, why (SPEC 3).

It is told from the facts that stood at the last look, the writes since (see `trail`), and the instants at which time
changes the ladder by itself. So every flip carries its exact instant and its cause, however late the look, and what
came and went between two looks is told too.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum

import msgspec

from ladder.core.occupancy import Occupancy
from ladder.core.timeline.causes import Cause, Prints, Standing, cause_by_prints
from ladder.core.values import Rung

RUNG_ITSELF = 0
"""Stands in a spot for "the rung, whoever is on it"; no row has that key."""

Key = tuple[str, str]
"""Provider and connection id, which the facts name a connection by."""

Spot = tuple[int, str]
"""What flips: the key of a connection's row, or RUNG_ITSELF, and the rung's word."""

Picture = Mapping[Spot, Standing]
"""What each spot is at one instant. All five rungs are in it; a connection only where it stands."""

NOT_THERE = Standing("")
"""What a spot is that is not in the picture."""

INDEX_OF_RUNG = {rung.word: int(rung) for rung in Rung}


class Serving(StrEnum):
    """Whether a rung is the one that auto/thrifty serves from."""

    SERVING = "serving"
    IDLE = "idle"


class Change(msgspec.Struct, frozen=True):
    """A spot that became something else."""

    spot: Spot
    was: Standing
    became: Standing


class Flip(msgspec.Struct, frozen=True):
    """One change: `connection` None is the rung itself; an empty state is "not there". `code` is the new state's.

    `revision` is the one that the write made; None where time did it, or where no write tells.
    """

    at: datetime
    connection: int | None
    rung: str
    from_state: str
    to_state: str
    code: str | None
    cause: Cause
    revision: int | None = None


class Telling(msgspec.Struct, frozen=True):
    """The flips between two instants in the order in which they happened, and the picture at the later one.

    The picture stands until `valid_until`, exclusive, if nothing is written. `unexplained` are the spots that were
    something else at the first instant than what was seen there: of them no flip is among these.
    """

    flips: tuple[Flip, ...]
    picture: Picture
    valid_until: datetime
    unexplained: frozenset[Spot] = frozenset()


def picture_of(*, occupancy: Occupancy, keys: Mapping[Key, int]) -> Picture:
    """Return what each spot is; `keys` gives the row of each connection."""
    picture = {
        (keys[place.provider, place.connection_id], place.rung): Standing(place.state.value, place.code)
        for place in occupancy.places
    }
    return picture | rung_spots(occupancy.serving_rung)


def rung_spots(serving: str | None) -> dict[Spot, Standing]:
    """Return what the rungs themselves are while this one serves, or none."""
    return {
        (RUNG_ITSELF, word): Standing((Serving.SERVING if word == serving else Serving.IDLE).value)
        for word in INDEX_OF_RUNG
    }


def differing(first: Picture, second: Picture) -> frozenset[Spot]:
    """Return the spots that are not the same in two pictures."""
    spots = first.keys() | second.keys()
    return frozenset(spot for spot in spots if first.get(spot, NOT_THERE) != second.get(spot, NOT_THERE))


def flip_of(change: Change, *, at: datetime, cause: Cause, revision: int | None = None) -> Flip:
    """Return a change as it is told."""
    pk, rung = change.spot
    was, became = change.was, change.became
    return Flip(at, pk or None, rung, was.state, became.state, became.code, cause, revision)


def in_order(flips: Iterable[Flip]) -> tuple[Flip, ...]:
    """Return flips by instant; those of one instant stay in the order in which they were told."""
    return tuple(sorted(flips, key=lambda flip: flip.at))


def with_late_flips(
    *, telling: Telling, seen: Picture, before: Prints, after: Prints, now: datetime
) -> tuple[Flip, ...]:
    """Return the flips of a telling and one at `now` for each unexplained spot that is not what was seen.

    Something changed it that left no trace, rows written by hand or a clock set back: the look that found it dates it.
    `before` and `after` are the prints of the facts of which the two pictures were taken.
    """
    late: list[Flip] = []
    # The connections first, which tell why the rungs flipped.
    for spot in sorted(telling.unexplained, key=lambda spot: (spot[0] == RUNG_ITSELF, spot[0], INDEX_OF_RUNG[spot[1]])):
        was, became = seen.get(spot, NOT_THERE), telling.picture.get(spot, NOT_THERE)
        if was != became:
            told = next((flip.cause for flip in late if flip.connection is not None), None)
            cause = told if spot[0] == RUNG_ITSELF else None
            cause = cause or cause_by_prints(was=was, became=became, before=before, after=after, pk=spot[0])
            late.append(flip_of(Change(spot, was, became), at=now, cause=cause))
    return in_order((*telling.flips, *late))
