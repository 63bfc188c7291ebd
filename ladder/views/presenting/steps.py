"""The step chart of the timeline: as data for the script that draws it, and as a still picture without one.

Both have the same rows: the rungs, dearest on top, then "none", then one lane for each kind of mark.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from ladder.core.timeline.marks import Lane, Mark
from ladder.core.timeline.stretches import Stretch, coarsen
from ladder.core.values import Rung
from ladder.views.presenting.timeline_words import LANE_WORDS, happened_words
from omniroute_admin.common.core.axis import Tick, ticks

SLOTS = 96
"""In so many pieces of the range marks are gathered."""

_MOST_DRAWN, _MOST_STILL = 600, 300
NONE_ROW = -1
_ROW = {rung.word: int(rung) for rung in Rung}
LANE_NAMES: dict[Lane, str] = {
    Lane.CHANGE: "changes",
    Lane.RESET: "resets",
    Lane.SETTING: "settings",
    Lane.CATALOGUE: "catalogue",
    Lane.OPERATOR: "operator",
}
"""The lanes from top to bottom, each with its short name at the axis."""

_LEFT, _RIGHT, _TOP, _STEP, _THICK = 110, 990, 18, 26, 9


class Line(msgspec.Struct, frozen=True):
    """One row of the picture: its name and where it stands."""

    word: str
    y: str


class Box(msgspec.Struct, frozen=True):
    """A stretch in the picture: `kind` is `rung-0` to `rung-4`, `none` or `gap`."""

    kind: str
    x: str
    y: str
    width: str
    height: str


class Point(msgspec.Struct, frozen=True):
    """A mark in the picture, of a lane; a number stands beside it where it is more than one."""

    lane: str
    x: str
    y: str
    count: int


class Still(msgspec.Struct, frozen=True):
    """The whole picture, in a box that is 1000 wide."""

    height: int
    lines: tuple[Line, ...]
    boxes: tuple[Box, ...]
    points: tuple[Point, ...]
    ticks: tuple[Line, ...]


class Steps(msgspec.Struct, frozen=True):
    """What the chart is of: the stretches and marks in [start, end)."""

    start: datetime
    end: datetime
    stretches: Sequence[Stretch]
    marks: Sequence[Mark]
    zone: ZoneInfo

    @property
    def ticks(self) -> tuple[Tick, ...]:
        """Return the ticks of its time axis."""
        return ticks(start=self.start, end=self.end, zone=self.zone)


def row_of(stretch: Stretch) -> int:
    """Return the row that a known stretch stands in."""
    return NONE_ROW if stretch.rung is None else _ROW[stretch.rung]


def mark_words(mark: Mark) -> str:
    """Return what a mark is of: `3 changes by a reading, 1 change by the catalogue`."""
    return ", ".join(happened_words(what, count) for what, count in mark.counts)


def chart_data(steps: Steps) -> dict[str, Any]:
    """Return what the script draws from: instants in seconds, what nobody saw left out."""
    drawn = coarsen(stretches=steps.stretches, most=_MOST_DRAWN)
    return {
        "start": steps.start.timestamp(),
        "end": steps.end.timestamp(),
        "zone": steps.zone.key,
        "rungs": [rung.word for rung in Rung],
        "lanes": [{"key": lane.value, "word": word} for lane, word in LANE_NAMES.items()],
        "ticks": [[tick.at.timestamp(), tick.word] for tick in steps.ticks],
        "stretches": [[one.start.timestamp(), one.end.timestamp(), row_of(one)] for one in drawn if one.is_known],
        "gaps": [[one.start.timestamp(), one.end.timestamp()] for one in drawn if not one.is_known],
        "marks": [[mark.lane.value, mark.at.timestamp(), mark.count, mark_words(mark)] for mark in steps.marks],
    }


def still_of(steps: Steps) -> Still:
    """Return the picture that stands where no script runs, and on paper."""
    drawn = coarsen(stretches=steps.stretches, most=_MOST_STILL)
    rows = [*reversed([rung.word for rung in Rung]), "none", *LANE_NAMES.values()]
    return Still(
        height=_TOP + _STEP * len(rows) + 22,
        lines=tuple(Line(word, _text(_y(number))) for number, word in enumerate(rows)),
        boxes=tuple(_boxes(steps, drawn)),
        points=tuple(_point(steps, mark) for mark in steps.marks),
        ticks=tuple(Line(tick.word, _text(_x(steps, tick.at))) for tick in steps.ticks),
    )


def _boxes(steps: Steps, drawn: Iterable[Stretch]) -> Iterable[Box]:
    for one in drawn:
        x, end = _x(steps, one.start), _x(steps, one.end)
        width = _text(max(end - x, 1.5))
        if one.is_known:
            kind = "none" if one.rung is None else f"rung-{row_of(one)}"
            yield Box(kind, _text(x), _text(_y(len(Rung) - 1 - row_of(one)) - _THICK / 2), width, _text(_THICK))
        else:
            yield Box("gap", _text(x), _text(_TOP - _STEP / 2), width, _text(_STEP * (len(Rung) + 1)))


def _point(steps: Steps, mark: Mark) -> Point:
    row = len(Rung) + 1 + list(LANE_NAMES).index(mark.lane)
    return Point(mark.lane.value, _text(_x(steps, mark.at)), _text(_y(row)), mark.count)


def _x(steps: Steps, at: datetime) -> float:
    return _LEFT + (_RIGHT - _LEFT) * ((at - steps.start) / (steps.end - steps.start))


def _y(row: int) -> float:
    return _TOP + _STEP * row


def _text(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")


def lane_choices() -> list[tuple[str, str]]:
    """Return the lanes with their whole words, for the legend."""
    return [(lane.value, LANE_WORDS[lane]) for lane in LANE_NAMES]
