"""Old rows of the ledger become sums that say the same of every total (M2, M4, M5).

The stretches of time that totals are asked for begin and end with local days, and the days of every zone do so at a
quarter of an hour; or they begin where a budget was reset (M9). So the rows of one quarter, cut at resets, always stand
in the same totals.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal

import msgspec

from ladder.core.spend.ledger import Claim, Cost, correction_depths, counting_claim

QUARTER = timedelta(minutes=15)
_MINUTE = timedelta(minutes=1)
_NOTHING = Decimal(0)

Cuts = Mapping[str, Sequence[datetime]]
"""By the word of a rung the instants at which a quarter is cut, in order."""


class Place(msgspec.Struct, frozen=True):
    """What totals tell apart: the key of a connection, model, word of a rung, kind of money."""

    connection: int
    model: str
    rung: str
    money_kind: str


class PastRow(msgspec.Struct, frozen=True):
    """A row of the ledger: `original` is the key of what it corrects, None of an original; the rest as it is kept."""

    pk: int
    event_id: str
    original: int | None
    corrects_event_id: str
    place: Place
    occurred_at: datetime
    booked_at: datetime
    booked_usd: Decimal
    booked_cost: Decimal
    is_estimated: bool
    estimated_change: int

    @property
    def estimated_usd(self) -> Decimal:
        """Return what the row adds to what is only estimated, as the totals of spend reckon it (M7)."""
        if self.is_estimated:
            return self.booked_cost if self.estimated_change == 1 else self.booked_usd
        return self.booked_usd - self.booked_cost if self.estimated_change == -1 else _NOTHING


class FoldedSum(msgspec.Struct, frozen=True):
    """What some rows of one place add together, standing at `booked_at`.

    `usd` is all of it and `estimated_usd` what of it is only estimated; `events` are originals, `estimates` how many of
    them count as estimated, `rows` corrections too. `last_at` is the last instant of any of them.
    """

    place: Place
    booked_at: datetime
    usd: Decimal
    estimated_usd: Decimal
    rows: int
    events: int
    estimates: int
    last_at: datetime

    def plus(self, other: "FoldedSum") -> "FoldedSum":
        """Return both together; they are of one place and stand at one instant."""
        return FoldedSum(
            self.place,
            self.booked_at,
            self.usd + other.usd,
            self.estimated_usd + other.estimated_usd,
            self.rows + other.rows,
            self.events + other.events,
            self.estimates + other.estimates,
            max(self.last_at, other.last_at),
        )


class Folded(msgspec.Struct, frozen=True):
    """The sums, the keys of the rows that are in them, and the events whose rows contradict each other: those stay."""

    sums: tuple[FoldedSum, ...] = ()
    originals: tuple[int, ...] = ()
    corrections: tuple[int, ...] = ()
    refused: tuple[str, ...] = ()


def cuts_of(resets: Iterable[datetime]) -> tuple[datetime, ...]:
    """Return where a rung's quarters are cut: at each reset, and at the end of its minute, as charts go by minutes."""
    found = set()
    for at in resets:
        minute = at.replace(second=0, microsecond=0)
        found |= {at, minute if minute == at else minute + _MINUTE}
    return tuple(sorted(found))


def piece_start(*, at: datetime, cuts: Sequence[datetime]) -> datetime:
    """Return the beginning of the piece of time that an instant's row is summed in: its quarter, or a cut in it."""
    quarter = at.replace(minute=at.minute // 15 * 15, second=0, microsecond=0)
    before = bisect_right(cuts, at)
    return max(quarter, cuts[before - 1]) if before else quarter


def fold(*, chains: Iterable[Sequence[PastRow]], cuts: Cuts) -> Folded:
    """Sum whole chains, each an original and then all of its corrections, by place and piece of time.

    A chain that does not add up is left alone: a sum would hide what is wrong with it.
    """
    sums: dict[tuple[Place, datetime], FoldedSum] = {}
    originals, corrections, refused = list[int](), list[int](), list[str]()
    for chain in chains:
        first = chain[0]
        if not _adds_up(chain):
            refused.append(first.event_id)
            continue
        one = _sum_of(chain, piece_start(at=first.booked_at, cuts=cuts.get(first.place.rung, ())))
        key = one.place, one.booked_at
        sums[key] = sums[key].plus(one) if key in sums else one
        originals.append(first.pk)
        corrections += [row.pk for row in chain[1:]]
    return Folded(tuple(sums.values()), tuple(originals), tuple(corrections), tuple(refused))


def _sum_of(chain: Sequence[PastRow], at: datetime) -> FoldedSum:
    return FoldedSum(
        place=chain[0].place,
        booked_at=at,
        usd=sum((row.booked_usd for row in chain), _NOTHING),
        estimated_usd=sum((row.estimated_usd for row in chain), _NOTHING),
        rows=len(chain),
        events=1,
        estimates=sum(row.estimated_change for row in chain),
        last_at=chain[0].booked_at,
    )


def _adds_up(chain: Sequence[PastRow]) -> bool:
    first = chain[0]
    if any((row.place, row.booked_at) != (first.place, first.booked_at) for row in chain):
        return False
    depths = correction_depths(bases={row.event_id: row.corrects_event_id for row in chain})
    if len(depths) != len(chain):
        return False
    counting = counting_claim(_claims(chain, depths)).cost
    found = _sum_of(chain, first.booked_at)
    estimated = counting.usd if counting.is_estimated else _NOTHING
    said = (counting.usd, estimated, int(counting.is_estimated))
    return (found.usd, found.estimated_usd, found.estimates) == said


def _claims(chain: Sequence[PastRow], depths: Mapping[str, int]) -> Iterator[Claim]:
    for row in chain:
        yield Claim(depths[row.event_id], row.occurred_at, row.event_id, Cost(row.booked_cost, row.is_estimated))
