"""Candidates that are judged alike: what became of each connection among them, ready to be read off list by list.

A list that came before is answered from memory, since lists recur as a provider's do. Another one is read as marks, a
small number for each pair: what a row of marks comes to is the same whoever is on the list, and is worked out once.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import compress

from ladder.core.instants import NEVER
from ladder.core.judge import Circumstances, PairOutcome
from ladder.core.reasons import Code
from ladder.core.values import Rung

_SHAPES_KEPT = 20_000
_LISTS_KEPT = 16
"""A provider's connections come in few lists; where callers make up many, the first are remembered and no more."""

_CODES = tuple(Code)
_MARK_OF_CODE = {code: -1 - index for index, code in enumerate(_CODES)}
"""Below zero: out, by code. From zero: in, twice the rung, plus one where the pair may bill past its plan."""

Chosen = tuple[int, str, tuple[bool, ...] | None, bool]
"""A rung, its word, which places of a list are on it (None: all), and whether any of them may bill past its plan."""

Taken = tuple[int, str, tuple[str, ...], bool]
"""The same with the survivors of a list in its order, in the place of their places (P1)."""


class Shape:
    """What a row of marks comes to: survivors by rung (P1), or all on the lowest (P5); how many are out by code."""

    __slots__ = ("by_rung", "counts", "merged")

    def __init__(self, marks: tuple[int, ...]) -> None:
        places = sorted({mark >> 1 for mark in marks if mark >= 0})
        self.by_rung = tuple(_chosen(Rung(place), marks, (place,)) for place in places)
        self.merged = (_chosen(Rung(places[0]), marks, places),) if len(places) > 1 else self.by_rung
        out = [_CODES[-1 - mark] for mark in marks if mark < 0]
        self.counts = {code: out.count(code) for code in out} if marks else {Code.NO_CONNECTIONS: 1}


def _chosen(rung: Rung, marks: tuple[int, ...], places: Sequence[int]) -> Chosen:
    chosen = tuple(mark >= 0 and mark >> 1 in places for mark in marks)
    may_bill = any(mark & 1 for mark, is_chosen in zip(marks, chosen, strict=True) if is_chosen)
    return int(rung), rung.word, None if all(chosen) else chosen, may_bill


@lru_cache(maxsize=_SHAPES_KEPT)
def shape_of(marks: tuple[int, ...]) -> Shape:
    """Return what a row of marks comes to."""
    return Shape(marks)


class Listed:
    """What a list of connections comes to in one scope: survivors by rung, how many are out by code, until when."""

    __slots__ = ("by_rung", "counts", "merged", "until")

    def __init__(self, ids: tuple[str, ...], shape: Shape, until: datetime) -> None:
        chosen = shape.by_rung
        self.until = until
        self.by_rung = _taken(ids, chosen)
        self.merged = self.by_rung if shape.merged is chosen else _taken(ids, shape.merged)
        self.counts = shape.counts


def survivors_of(ids: tuple[str, ...], places: tuple[bool, ...] | None) -> tuple[str, ...]:
    """Return the connections of a list that stand on the chosen places, in its order (P1); None is all of them."""
    return ids if places is None else tuple(compress(ids, places))


def _taken(ids: tuple[str, ...], chosen: Iterable[Chosen]) -> list[Taken]:
    return [(rung, word, survivors_of(ids, places), may_bill) for rung, word, places, may_bill in chosen]


def mark_of(outcome: PairOutcome) -> int:
    """Return the mark of what became of a pair."""
    if outcome.reason is not None or outcome.rung is None:
        return _MARK_OF_CODE[Code.UNKNOWN_CONNECTION if outcome.reason is None else outcome.reason.code]
    return 2 * outcome.rung + outcome.may_bill_past_plan


class Scope:
    """One way of judging the connections of a provider, and what came of those that were asked for.

    `marks` and `ends` are by connection id; `until` is the first of `ends`: before it everything here stands. `lists`
    is what lists came to.
    """

    __slots__ = ("ends", "lists", "marks", "outcomes", "provider", "under", "until")

    def __init__(self, provider: str, under: Circumstances) -> None:
        self.provider = provider
        self.under = under
        self.outcomes: dict[str, PairOutcome] = {}
        self.marks: dict[str, int] = {}
        self.ends: dict[str, datetime] = {}
        self.lists: dict[tuple[str, ...], Listed] = {}
        self.until = NEVER

    def keep(self, outcome: PairOutcome) -> None:
        """Remember what became of a connection."""
        name = outcome.connection_id
        self.outcomes[name] = outcome
        self.marks[name] = mark_of(outcome)
        self.ends[name] = outcome.change_at
        self.until = min(self.until, outcome.change_at)

    def listed(self, ids: tuple[str, ...], marks: tuple[int, ...]) -> Listed | Shape:
        """Return what a list with these marks comes to, and remember it where there is room."""
        shape = shape_of(marks)
        if len(self.lists) >= _LISTS_KEPT:
            return shape
        found = self.lists[ids] = Listed(ids, shape, self.until_of(ids))
        return found

    def without(self, names: Iterable[str]) -> "Scope":
        """Return a copy that knows nothing of some connections; its `until` may be earlier than need be."""
        other = Scope(self.provider, self.under)
        other.outcomes, other.marks, other.ends = dict(self.outcomes), dict(self.marks), dict(self.ends)
        other.until = self.until
        for name in names:
            other._forget(name)
        return other

    def _forget(self, name: str) -> None:
        if self.outcomes.pop(name, None) is not None:
            del self.marks[name], self.ends[name]

    def drop_past(self, now: datetime) -> None:
        """Drop what has changed since it was judged."""
        for name in [name for name, end in self.ends.items() if end <= now]:
            self._forget(name)
        self.lists.clear()
        self.until = min(self.ends.values(), default=NEVER)

    def until_of(self, ids: tuple[str, ...]) -> datetime:
        """Return the first instant at which one of these pairs changes; of a connection nobody knows there is none."""
        try:
            return min(map(self.ends.__getitem__, ids), default=NEVER)
        except KeyError:
            return min((self.ends.get(name, NEVER) for name in ids), default=NEVER)
