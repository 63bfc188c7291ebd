"""The charts of the spend page: for the script that draws them, as a still picture, and as numbers (M2, M4).

Tables and words tell exact amounts; only a drawing makes numbers of them.
"""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from ladder.core.spend.curve import CurvePoint, thinned
from ladder.views.presenting.spend import terms_words
from ladder.views.spend_reading import Curve
from omniroute_admin.common.core.axis import ticks
from omniroute_admin.common.core.screen import Glance, iso_text
from omniroute_admin.common.core.words import clock_text, money_text

MOST_ROWS = 60
_MOST_DRAWN = 500
_LEFT, _RIGHT, _TOP, _BOTTOM = 90, 990, 16, 190
_STEPS = (Decimal(1), Decimal(2), Decimal(5), Decimal(10))
_HEADROOM = Decimal("1.08")


class Word(msgspec.Struct, frozen=True):
    """A word of the picture and where it stands on its axis."""

    word: str
    at: str


class Still(msgspec.Struct, frozen=True):
    """A curve in a box of 1000 by 220; empty texts are not drawn."""

    line: str
    limit: str
    limit_word: str
    reached: str
    x_words: tuple[Word, ...]
    y_words: tuple[Word, ...]


class NumberRow(msgspec.Struct, frozen=True):
    """A line of the chart's numbers: what the spend had come to, and what was left of the budget."""

    iso: str
    clock: str
    spent: str
    left: str


class Chart(msgspec.Struct, frozen=True):
    """A paid rung's chart with all that stands around it."""

    rung: str
    rung_index: int
    budget: str
    reached_iso: str
    reached_clock: str
    still: Still
    data: dict[str, Any]
    numbers: tuple[NumberRow, ...]
    numbers_more: int
    is_flat: bool
    is_drawn: bool


def chart_of(curve: Curve, *, zone: ZoneInfo, glance: Glance) -> Chart:
    """Return the chart of a curve, told in a zone: of a budget's window its own, else the screen's."""
    there = Glance(now=glance.now, zone=zone)
    highest, step = _scale(curve)
    numbers = _numbers(curve, there)
    reached = curve.reached_at
    return Chart(
        rung=curve.rung.word,
        rung_index=int(curve.rung),
        budget=terms_words(curve.terms),
        reached_iso=iso_text(reached) if reached else "",
        reached_clock=clock_text(at=reached, now=there.now, zone=zone, seconds=True) if reached else "",
        still=_still(curve, zone, highest, step),
        data=_data(curve, zone, highest, step),
        numbers=tuple(reversed(numbers[-MOST_ROWS:])),
        numbers_more=max(0, len(numbers) - MOST_ROWS),
        is_flat=not any(point.usd for point in curve.points),
        # A line along the bottom tells nothing where there is no budget to see it against.
        is_drawn=_limit(curve) is not None or any(point.usd for point in curve.points),
    )


def _limit(curve: Curve) -> Decimal | None:
    return curve.terms.amount_usd or None


def _scale(curve: Curve) -> tuple[Decimal, Decimal]:
    """Return the top of the axis and the step of its words, which are round amounts."""
    top = max([point.usd for point in curve.points] + [_limit(curve) or Decimal(0), Decimal("0.01")]) * _HEADROOM
    power = Decimal(10) ** ((top / 4).adjusted())
    step = next(one * power for one in _STEPS if one * power * 5 >= top)
    return top, step


def _marks(highest: Decimal, step: Decimal) -> list[Decimal]:
    return [step * number for number in range(int(highest / step) + 1)]


def _data(curve: Curve, zone: ZoneInfo, highest: Decimal, step: Decimal) -> dict[str, Any]:
    drawn = thinned(curve.points, most=_MOST_DRAWN)
    limit = _limit(curve)
    return {
        "rung": int(curve.rung),
        "name": curve.rung.word,
        "zone": zone.key,
        "start": curve.start.timestamp(),
        "end": curve.end.timestamp(),
        "until": curve.until.timestamp(),
        "points": [[point.at.timestamp(), float(point.usd)] for point in drawn],
        "limit": None if limit is None else float(limit),
        "limitWord": "" if limit is None else f"budget {money_text(limit)}",
        "reached": curve.reached_at.timestamp() if curve.reached_at else None,
        "top": float(highest),
        "marks": [[float(mark), money_text(mark)] for mark in _marks(highest, step)],
        "ticks": [[tick.at.timestamp(), tick.word] for tick in ticks(start=curve.start, end=curve.end, zone=zone)],
    }


def _still(curve: Curve, zone: ZoneInfo, highest: Decimal, step: Decimal) -> Still:
    limit = _limit(curve)

    def x(at: datetime) -> str:
        return _text(_LEFT + (_RIGHT - _LEFT) * ((at - curve.start) / (curve.end - curve.start)))

    def y(usd: Decimal) -> str:
        return _text(_BOTTOM - (_BOTTOM - _TOP) * max(0.0, float(usd / highest)))

    return Still(
        line=_path(thinned(curve.points, most=_MOST_DRAWN), x, y),
        limit="" if limit is None else y(limit),
        limit_word="" if limit is None else f"budget {money_text(limit)}",
        reached="" if curve.reached_at is None else x(curve.reached_at),
        x_words=tuple(Word(tick.word, x(tick.at)) for tick in ticks(start=curve.start, end=curve.end, zone=zone)),
        y_words=tuple(Word(money_text(mark), y(mark)) for mark in _marks(highest, step)),
    )


def _path(points: Sequence[CurvePoint], x: Any, y: Any) -> str:
    first, *others = points
    return f"M{x(first.at)} {y(first.usd)}" + "".join(f"H{x(point.at)}V{y(point.usd)}" for point in others)


def _text(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")


def _numbers(curve: Curve, glance: Glance) -> list[NumberRow]:
    limit = _limit(curve)
    rows: list[NumberRow] = []
    for point in curve.points:
        left = "" if limit is None else money_text(max(limit - point.usd, Decimal(0)))
        clock = clock_text(at=point.at, now=glance.now, zone=glance.zone)
        row = NumberRow(iso_text(point.at), clock, money_text(point.usd), left)
        if not rows or row != rows[-1]:
            rows.append(row)
    return rows
