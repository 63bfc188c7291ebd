"""The drawing of a quota window's life: percent left over time, as numbers for an SVG (SPEC 5, 2).

Nothing is worked out here but where on the picture a value stands: 0 to 100 percent from bottom to top, the life of the
window from left to right.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal

import msgspec

from ladder.core.readings.pace import FULL, Life, Pace, Point, share_of_life
from omniroute_admin.common.core.screen import Glance

LEFT, RIGHT, TOP, BOTTOM = Decimal(24), Decimal(284), Decimal(8), Decimal(88)
_DAYS_ARE_TOLD_FROM = timedelta(days=2)
_NOW_BELOW = (Decimal("0.24"), Decimal("0.5"))
_NOW_AT_END, _NOW_TURNS = Decimal("0.97"), Decimal("0.85")


class Spark(msgspec.Struct, frozen=True):
    """A drawing 292 wide and 108 high. Numbers are texts with one decimal at most.

    `real` are the points of the line, `area` those of the ground under it; `projected` is the path from the newest
    reading on, `dot` where it meets the cutoff. The word "now" stands at `now_x`, `now_y`, or in `end_label`.
    """

    cut_y: str
    now_x: str
    start_label: str
    end_label: str
    real: str = ""
    area: str = ""
    projected: str = ""
    dot: tuple[str, str] | None = None
    now_y: str = ""
    now_label_x: str = ""
    now_anchor: str = "middle"


def spark_of(
    *, life: Life, points: Sequence[Point], pace: Pace | None, cutoff: Decimal, is_used_up: bool, glance: Glance
) -> Spark:
    """Return the drawing of a window; `pace` None draws no way on. What is used up stays so up to now."""
    line = [(_x(life, one.at), _y(one.left)) for one in points]
    now_share = share_of_life(life=life, at=glance.now)
    if line and is_used_up:
        line.append((_x(life, glance.now), line[-1][1]))
    at_end = now_share >= _NOW_AT_END
    reset = f"resets {glance.until(life.reset_at).clock}"
    label_y, label_x, anchor = ("", "", "") if at_end else _now_label(now_share)
    return Spark(
        cut_y=_text(_y(cutoff)),
        now_x=_text(_x(life, glance.now)),
        start_label=_start_label(life, glance),
        end_label=f"now · {reset}" if at_end else reset,
        real=" ".join(f"{_text(x)},{_text(y)}" for x, y in line),
        area=_area(line),
        projected=_projected(life=life, points=points, pace=pace, cutoff=cutoff),
        dot=(_text(_x(life, pace.cutoff_at)), _text(_y(cutoff))) if pace and pace.cutoff_at else None,
        now_y=label_y,
        now_label_x=label_x,
        now_anchor=anchor,
    )


def _x(life: Life, at: datetime) -> Decimal:
    return LEFT + (RIGHT - LEFT) * share_of_life(life=life, at=at)


def _y(percent: Decimal) -> Decimal:
    return TOP + (FULL - percent) * (BOTTOM - TOP) / FULL


def _text(value: Decimal) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _area(line: Sequence[tuple[Decimal, Decimal]]) -> str:
    if not line:
        return ""
    corners = [(line[0][0], BOTTOM), *line, (line[-1][0], BOTTOM)]
    return " ".join(f"{_text(x)},{_text(y)}" for x, y in corners)


def _projected(*, life: Life, points: Sequence[Point], pace: Pace | None, cutoff: Decimal) -> str:
    if pace is None or not points:
        return ""
    newest = points[-1]
    end = (
        (_x(life, pace.cutoff_at), _y(cutoff))
        if pace.cutoff_at
        else (_x(life, life.reset_at), _y(max(pace.left_at_reset, min(cutoff, newest.left))))
    )
    start = (_x(life, newest.at), _y(newest.left))
    return f"M{_text(start[0])} {_text(start[1])}L{_text(end[0])} {_text(end[1])}"


def _now_label(share: Decimal) -> tuple[str, str, str]:
    """Return where the word "now" stands: below where there is room between the other two, else above the line."""
    x = LEFT + (RIGHT - LEFT) * share
    if _NOW_BELOW[0] <= share <= _NOW_BELOW[1]:
        return "103", _text(x), "middle"
    return ("12", _text(x - 4), "end") if share > _NOW_TURNS else ("12", _text(x + 4), "start")


def _start_label(life: Life, glance: Glance) -> str:
    local = life.started_at.astimezone(glance.zone)
    if life.reset_at - life.started_at < _DAYS_ARE_TOLD_FROM:
        return f"{local:%H:%M}"
    return (
        f"{local:%a} {local.day}" if life.reset_at - life.started_at < timedelta(days=8) else f"{local.day} {local:%b}"
    )
