"""Whether memory is flat, and how samples are told. Pure: numbers in, numbers out."""

from collections.abc import Iterator, Sequence
from statistics import fmean

import msgspec

from omniroute_admin.bench.results import Timing, timing_of

TENTHS = 10
SPAN = 600.0
"""Seconds of the span that growth is told for."""

ALLOWED_SHARE = 0.01
"""Of its own memory, what a process may grow by in each such span."""

TOLERANCE = 4 * 1024 * 1024
"""Bytes it may seem to grow by at any length: pages that the allocator takes and gives back."""

SHORTEST = 120.0
"""Seconds of a run below which nothing is said of memory: what is still starting grows."""

_SETTLING = 1 / 3
_FEWEST = 3


class Sample(msgspec.Struct, frozen=True):
    """What a process held at an instant: seconds since the run began, bytes of its own that were resident."""

    at: float
    held: int


class Call(msgspec.Struct, frozen=True):
    """One call: when it was due, in seconds since the run began, and how long after that it was answered."""

    due: float
    seconds: float


class Growth(msgspec.Struct, frozen=True):
    """How one process grew after it had settled, and the most it may have; all in bytes."""

    first: int
    last: int
    most: int
    per_span: float
    seemed: float
    allowed: float

    @property
    def is_flat(self) -> bool:
        """Tell whether it grew no more than is allowed."""
        return self.seemed <= self.allowed


def growth_of(samples: Sequence[Sample], *, length: float) -> Growth:
    """Return how a process grew in the last two thirds of a run of `length` seconds, by the straight line through them.

    Raises:
        ValueError: there is no sample.
    """
    if not samples:
        raise ValueError("no sample was taken")
    settled = [one for one in samples if one.at >= length * _SETTLING] or list(samples)
    slope = _slope(settled) if len(settled) >= _FEWEST else 0.0
    span = settled[-1].at - settled[0].at
    mean = fmean(one.held for one in settled)
    return Growth(
        first=settled[0].held,
        last=settled[-1].held,
        most=max(one.held for one in samples),
        per_span=slope * SPAN,
        seemed=slope * span,
        allowed=mean * ALLOWED_SHARE * span / SPAN + TOLERANCE,
    )


def _slope(samples: Sequence[Sample]) -> float:
    """Return the bytes a second of the line that least squares draw."""
    middle, mean = fmean(one.at for one in samples), fmean(one.held for one in samples)
    spread = sum((one.at - middle) ** 2 for one in samples)
    return sum((one.at - middle) * (one.held - mean) for one in samples) / spread if spread else 0.0


def tenths_of(calls: Sequence[Call], *, length: float) -> Iterator[Timing | None]:
    """Yield the timing of each tenth of a run; None for one in which nothing was due."""
    parts: list[list[float]] = [[] for _ in range(TENTHS)]
    for call in calls:
        parts[min(TENTHS - 1, int(call.due / length * TENTHS))].append(call.seconds)
    return (timing_of(part) if part else None for part in parts)
