"""What stood when: rows of the catalogue with their history, asked for one instant (M6).

The first version of an entry holds for all time before it, unless another row spoke of the same thing earlier; what was
deleted is not there afterwards.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Generic, TypeVar

import msgspec

T = TypeVar("T")

ALWAYS = datetime.min.replace(tzinfo=UTC)
FOREVER = datetime.max.replace(tzinfo=UTC)


class Version(msgspec.Struct, Generic[T], frozen=True):
    """What row `row` says from `since` on; `value` None is "deleted"."""

    row: int
    since: datetime
    value: T | None


class Span(msgspec.Struct, Generic[T], frozen=True):
    """What row `row` says in [start, end)."""

    row: int
    start: datetime
    end: datetime
    value: T


def spans_of(*, versions: Iterable[Version[T]], key: Callable[[T], Hashable]) -> tuple[Span[T], ...]:
    """Return the time each version holds, in the order of the rows' ids.

    `versions` come in the order in which they were written. `key` names what a version speaks of: of those that begin a
    row, the earliest of its key holds for all time before it.
    """
    rows: dict[int, list[Version[T]]] = {}
    for version in versions:
        rows.setdefault(version.row, []).append(version)
    found = [span for row in sorted(rows) for span in _of_row(rows[row])]
    firsts = {span.row: span for span in reversed(found)}
    earliest: dict[Hashable, datetime] = {}
    for span in found:
        name = key(span.value)
        earliest[name] = min(span.start, earliest.get(name, FOREVER))
    return tuple(
        msgspec.structs.replace(span, start=ALWAYS)
        if firsts[span.row] is span and span.start == earliest[key(span.value)]
        else span
        for span in found
    )


def _of_row(versions: Sequence[Version[T]]) -> list[Span[T]]:
    """Return the spans of one row; of versions of one instant the last counts, and a clock that went back is held."""
    starts: list[datetime] = []
    for version in versions:
        starts.append(max(version.since, starts[-1]) if starts else version.since)
    ends = [*starts[1:], FOREVER]
    return [
        Span(version.row, start, end, version.value)
        for version, start, end in zip(versions, starts, ends, strict=True)
        if version.value is not None and start < end
    ]


def standing_at(*, spans: Iterable[Span[T]], at: datetime) -> list[T]:
    """Return what held at an instant, in the order of the rows' ids."""
    return [span.value for span in spans if span.start <= at < span.end]


def boundaries_of(spans: Iterable[Span[T]]) -> set[datetime]:
    """Return the instants at which any of them begins or ends."""
    return {edge for span in spans for edge in (span.start, span.end)}
