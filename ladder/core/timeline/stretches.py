"""Which rung served when, from what was kept of it: a sample of every minute, and flips (SPEC 5, 6).

A flip is exact, a sample says that somebody looked. Where nobody looked, nothing is known: that is a gap, whatever a
later look found out about it.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import groupby, pairwise

import msgspec

from ladder.core.values import Rung

MINUTE = timedelta(minutes=1)

REACH = timedelta(minutes=3)
"""How long a sample speaks for the time after it, where the next one is missing."""

THINNED_REACH = timedelta(hours=2)
"""The same where only the first sample of each hour was kept."""

_INDEX = {rung.word: int(rung) for rung in Rung}


class Sample(msgspec.Struct, frozen=True):
    """The rung that served in one minute, None for none; `at` is the minute, cut to its beginning."""

    at: datetime
    serving: str | None


class Turn(msgspec.Struct, frozen=True):
    """A rung that began (`serves`) or ceased to serve."""

    at: datetime
    rung: str
    serves: bool
    cause: str


class Stretch(msgspec.Struct, frozen=True):
    """What served in [start, end): `rung` None is "none did"; not `is_known` is "nobody looked".

    `cause` is why it began, empty where that is not known: at the beginning of what is asked for, or after a gap.
    """

    start: datetime
    end: datetime
    rung: str | None
    cause: str = ""
    is_known: bool = True

    @property
    def length(self) -> timedelta:
        """Return how long it lasted."""
        return self.end - self.start


class _Move(msgspec.Struct, frozen=True):
    """All turns of one instant; two rungs turn together where serving moves from one to the other."""

    at: datetime
    begins: str | None
    ceases: str | None
    cause: str

    def applied_to(self, serving: str | None) -> str | None:
        """Return what serves after it where `serving` did before."""
        if self.begins is not None:
            return self.begins
        return None if serving == self.ceases else serving


def find_stretches(
    *, samples: Sequence[Sample], turns: Sequence[Turn], start: datetime, end: datetime, thinned_before: datetime
) -> tuple[Stretch, ...]:
    """Return what served in [start, end), without a hole and without two equal neighbours.

    Samples and turns may begin before `start`, by THINNED_REACH, so that what runs at the start is known. Those older
    than `thinned_before` were thinned to one an hour. Both may be in any order.
    """
    moves = _moves(turns)
    known: list[Stretch] = []
    for run, over in _runs(sorted(samples, key=lambda sample: sample.at), thinned_before):
        known += _walk(run, [move for move in moves if run[0].at <= move.at < over], over)
    return tuple(_joined(_filled(_cut(known, start, end), start, end)))


def _moves(turns: Iterable[Turn]) -> list[_Move]:
    moves = []
    for at, together in groupby(sorted(turns, key=lambda turn: turn.at), key=lambda turn: turn.at):
        ones = list(together)
        begins = next((turn for turn in ones if turn.serves), None)
        ceases = next((turn for turn in ones if not turn.serves), None)
        cause = (begins or ones[0]).cause
        moves.append(_Move(at, begins.rung if begins else None, ceases.rung if ceases else None, cause))
    return moves


def _runs(samples: Sequence[Sample], thinned_before: datetime) -> Iterator[tuple[list[Sample], datetime]]:
    """Yield samples without a gap between them, and the instant up to which the last one speaks."""
    run: list[Sample] = []
    for sample in samples:
        if run and sample.at > _spoken_until(run[-1], thinned_before):
            yield run, _spoken_until(run[-1], thinned_before)
            run = []
        run.append(sample)
    if run:
        yield run, _spoken_until(run[-1], thinned_before)


def _spoken_until(sample: Sample, thinned_before: datetime) -> datetime:
    return sample.at + (THINNED_REACH if sample.at < thinned_before else REACH)


def _walk(run: Sequence[Sample], moves: Sequence[_Move], over: datetime) -> list[Stretch]:
    """Return the stretches of one run. A sample that no flip explains is a change that no flip tells of."""
    serving = _at_first(run[0], moves)
    points = [(run[0].at, serving, "")]
    begun = 0
    for number, sample in enumerate(run):
        until = run[number + 1].at if number + 1 < len(run) else over
        if not _is_explained(sample, serving, moves, begun):
            serving = sample.serving
            points.append((sample.at, serving, ""))
        while begun < len(moves) and moves[begun].at < until:
            serving = moves[begun].applied_to(serving)
            points.append((moves[begun].at, serving, moves[begun].cause))
            begun += 1
    ends = [*(at for at, _, _ in points[1:]), over]
    return [Stretch(at, end, rung, cause) for (at, rung, cause), end in zip(points, ends, strict=True)]


def _at_first(sample: Sample, moves: Sequence[_Move]) -> str | None:
    """Return what served when a minute began: its sample was taken somewhere in it, perhaps after a flip."""
    if moves and moves[0].at < sample.at + MINUTE:
        return moves[0].ceases
    return sample.serving


def _is_explained(sample: Sample, serving: str | None, moves: Sequence[_Move], begun: int) -> bool:
    """Tell whether the sample shows what served when its minute began, or after one of the minute's moves."""
    while sample.serving != serving:
        if begun == len(moves) or moves[begun].at >= sample.at + MINUTE:
            return False
        serving = moves[begun].applied_to(serving)
        begun += 1
    return True


def _cut(stretches: Iterable[Stretch], start: datetime, end: datetime) -> Iterator[Stretch]:
    for one in stretches:
        if one.end > start and one.start < end and one.end > one.start:
            cause = one.cause if one.start >= start else ""
            yield Stretch(max(one.start, start), min(one.end, end), one.rung, cause)


def _filled(stretches: Iterable[Stretch], start: datetime, end: datetime) -> Iterator[Stretch]:
    at = start
    for one in stretches:
        if one.start > at:
            yield Stretch(at, one.start, None, is_known=False)
        yield one
        at = one.end
    if at < end:
        yield Stretch(at, end, None, is_known=False)


def _joined(stretches: Iterable[Stretch]) -> list[Stretch]:
    joined: list[Stretch] = []
    for one in stretches:
        last = joined[-1] if joined else None
        if last is not None and (last.rung, last.is_known) == (one.rung, one.is_known):
            joined[-1] = msgspec.structs.replace(last, end=one.end)
        else:
            joined.append(one)
    return joined


def coarsen(*, stretches: Sequence[Stretch], most: int) -> tuple[Stretch, ...]:
    """Return the same in at most `most` stretches of equal length, where there are more: each tells the worst of it.

    Worst is what costs most; worse is that none served. What nobody saw is told only where a whole piece is not known.
    """
    if len(stretches) <= most:
        return tuple(stretches)
    start, end = stretches[0].start, stretches[-1].end
    edges = [start + (end - start) * number / most for number in range(most + 1)]
    pieces, begun = [], 0
    for low, high in pairwise(edges):
        while stretches[begun].end <= low:
            begun += 1
        inside = begun
        while inside < len(stretches) and stretches[inside].start < high:
            inside += 1
        worst = max(stretches[begun:inside], key=_badness)
        pieces.append(Stretch(low, high, worst.rung, is_known=worst.is_known))
    return tuple(_joined(pieces))


def _badness(stretch: Stretch) -> int:
    if not stretch.is_known:
        return -1
    return len(_INDEX) if stretch.rung is None else _INDEX[stretch.rung]


def served_for(stretches: Iterable[Stretch]) -> dict[str | None, timedelta]:
    """Return how long each rung served, None for none, of what is known; a rung that never did is left out."""
    lengths: dict[str | None, timedelta] = {}
    for one in stretches:
        if one.is_known:
            lengths[one.rung] = lengths.get(one.rung, timedelta()) + one.length
    return lengths
