"""Numbers and what they are compared with. Durations are seconds in here, milliseconds on paper."""

import math
import statistics
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

By = Literal["median", "p95"]


class Timing(msgspec.Struct, frozen=True):
    """How long something took: `n` samples, in seconds; `least` is the fastest, which noise disturbed least."""

    n: int
    least: float
    median: float
    p95: float
    p99: float


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the table: what was measured, its floor in the same run, and the most it may be.

    The ratio is the measured `by` over the floor's median. A row that counts something has `count` and no timing.
    """

    name: str
    measured: Timing | None = None
    floor: Timing | None = None
    floor_is: str = ""
    by: By = "median"
    count: float | None = None
    unit: str = ""
    target: float | None = None
    more: dict[str, Any] = {}
    failure: str | None = None

    @property
    def ratio(self) -> float | None:
        """Return how many times the floor it took; None without a floor."""
        if self.measured is None or self.floor is None or not self.floor.median:
            return None
        return _of(self.measured, self.by) / self.floor.median

    @property
    def ratio_at_best(self) -> float | None:
        """Return the ratio of the fastest of both sides: what a noisy machine distorts least. No target asks it."""
        if self.ratio is None or self.measured is None or self.floor is None or self.by != "median":
            return None
        return self.measured.least / self.floor.least

    @property
    def is_met(self) -> bool | None:
        """Tell whether the target was met; None where there is none. What could not be measured missed it."""
        if self.target is None:
            return None
        value = self.count if self.measured is None else self.ratio
        return self.failure is None and value is not None and value <= self.target


def timing_of(samples: Sequence[float]) -> Timing:
    """Return the timing of at least one sample.

    Raises:
        ValueError: there is none.
    """
    if not samples:
        raise ValueError("no sample was taken")
    ordered = sorted(samples)
    median = statistics.median(ordered)
    return Timing(len(ordered), ordered[0], median, percentile(ordered, 95), percentile(ordered, 99))


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Return the smallest of the ordered samples that at least `percent` of them do not exceed (nearest rank)."""
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def line_of(result: Result) -> dict[str, Any]:
    """Return a row as it goes into a JSON line; durations in milliseconds."""
    return {
        "name": result.name,
        **_times("", result.measured),
        "count": result.count,
        "unit": result.unit,
        **_times("floor_", result.floor),
        "floor_is": result.floor_is,
        "ratio": _rounded(result.ratio),
        "ratio_at_best": _rounded(result.ratio_at_best),
        "ratio_of": result.by,
        "target": result.target,
        "is_met": result.is_met,
        "failure": result.failure,
        **result.more,
    }


def table_of(results: Sequence[Result]) -> str:
    """Return the rows as a table for people."""
    heads = ("name", "median", "p95", "floor", "ratio", "at best", "target", "met")
    rows = [heads, *(_cells(result) for result in results)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(heads))]
    lines = [
        "  ".join(_padded(cell, width, place) for place, (cell, width) in enumerate(zip(row, widths, strict=True)))
        for row in rows
    ]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def _padded(cell: str, width: int, place: int) -> str:
    return cell.ljust(width) if place == 0 else cell.rjust(width)


def _cells(result: Result) -> tuple[str, ...]:
    met = {True: "yes", False: "no", None: ""}[result.is_met]
    target = "" if result.target is None else f"{result.target:g}"
    if result.measured is None:
        value = "failed" if result.failure is not None else f"{result.count:,.0f} {result.unit}".rstrip()
        return (result.name, value, "", "", "", "", target, met)
    floor = "" if result.floor is None else _ms(result.floor.median)
    ratio = "" if result.ratio is None else f"{result.ratio:.2f}{' p95' if result.by == 'p95' else ''}"
    best = "" if result.ratio_at_best is None else f"{result.ratio_at_best:.2f}"
    return (result.name, _ms(result.measured.median), _ms(result.measured.p95), floor, ratio, best, target, met)


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:,.3f} ms"


def _rounded(ratio: float | None) -> float | None:
    return None if ratio is None else round(ratio, 4)


def _times(prefix: str, timing: Timing | None) -> dict[str, float | int | None]:
    names = ("least", "median", "p95", "p99")
    values = {f"{prefix}{name}_ms": None if timing is None else round(_of(timing, name) * 1000, 4) for name in names}
    return {**values, f"{prefix}n": None if timing is None else timing.n}


def _of(timing: Timing, name: str) -> float:
    return float(getattr(timing, name))
