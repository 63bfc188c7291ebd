"""What a budget's spend grew to, from window to window: the line of a chart, and where it reaches the budget (M2, M4).

Amounts stay exact; only who draws makes numbers of them.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal

import msgspec

_NOTHING = Decimal(0)


class Spent(msgspec.Struct, frozen=True):
    """What was booked at an instant, or from it on within one piece of time."""

    at: datetime
    usd: Decimal


class CurvePoint(msgspec.Struct, frozen=True):
    """What the spend of a window has come to at an instant."""

    at: datetime
    usd: Decimal


def spend_curve(
    *, booked: Sequence[Spent], counts_from: Sequence[datetime], start: datetime, end: datetime
) -> tuple[CurvePoint, ...]:
    """Return the points of a step line over [start, end]; it begins again at each instant of `counts_from`.

    `booked` and `counts_from` are in order and may begin before `start`: then the line starts with what had come up.
    """
    points: list[CurvePoint] = []
    total, edges = _NOTHING, list(counts_from)
    for one in (*booked, Spent(end, _NOTHING)):
        while edges and edges[0] <= one.at:
            edge = edges.pop(0)
            points += [CurvePoint(edge, total), CurvePoint(edge, _NOTHING)]
            total = _NOTHING
        total += one.usd
        points.append(CurvePoint(one.at, total))
    return _inside(points, start, end)


def _inside(points: Sequence[CurvePoint], start: datetime, end: datetime) -> tuple[CurvePoint, ...]:
    before = [point for point in points if point.at <= start]
    first = CurvePoint(start, before[-1].usd if before else _NOTHING)
    return (first, *(point for point in points if start < point.at <= end))


def reached_at(*, booked: Iterable[Spent], limit: Decimal, before: Decimal = _NOTHING) -> datetime | None:
    """Return when the spend first came to a budget that is one (M2), None where it did not."""
    total = before
    for one in booked:
        total += one.usd
        if total >= limit:
            return one.at
    return None


def thinned(points: Sequence[CurvePoint], *, most: int) -> tuple[CurvePoint, ...]:
    """Return at most about `most` points of a line: of each piece of time the last, the highest and the lowest."""
    if len(points) <= most or points[0].at == points[-1].at:
        return tuple(points)
    length = (points[-1].at - points[0].at) * 3 / most
    pieces: dict[int, list[int]] = {}
    for number, point in enumerate(points):
        pieces.setdefault((point.at - points[0].at) // length, []).append(number)
    kept = {0}
    for numbers in pieces.values():
        kept |= {numbers[-1], max(numbers, key=lambda n: points[n].usd), min(numbers, key=lambda n: points[n].usd)}
    return tuple(points[number] for number in sorted(kept))
