"""The tables of the timeline: stretches, marks and events in words (SPEC 5, 6)."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

import msgspec

from ladder.core.timeline.flips import Serving
from ladder.core.timeline.marks import Mark
from ladder.core.timeline.stretches import Stretch, served_for
from ladder.core.values import Rung
from ladder.selectors.timeline_events import FLIP, EventConnection, TimelineEvent
from ladder.views.presenting.steps import Steps, mark_words
from ladder.views.presenting.timeline_words import ACT_WORDS, CAUSE_WORDS, CODE_WORDS, KIND_WORDS, LANE_WORDS
from ladder.views.presenting.values import STATES
from omniroute_admin.common.core.screen import Glance, StateWord, iso_text
from omniroute_admin.common.core.words import clock_text, count_text, span_text

MOST_ROWS = 60
"""So many lines of the chart's numbers stand on a page; a shorter range has fewer."""

_LONGEST_REASON = 300
_INDEX = {rung.word: int(rung) for rung in Rung}


class At(msgspec.Struct, frozen=True):
    """An instant on a screen: UTC and the clock."""

    iso: str
    clock: str


class StretchRow(msgspec.Struct, frozen=True):
    """A line of the chart's numbers: what served from when to when, for how long, and why it began."""

    start: At
    end: At
    length: str
    rung: str
    rung_index: int | None
    cause: str


class MarkRow(msgspec.Struct, frozen=True):
    """A mark in words."""

    at: At
    lane: str
    lane_words: str
    words: str


class Served(msgspec.Struct, frozen=True):
    """How long a rung served in the range; `rung_index` None is "none" or "not known"."""

    word: str
    length: str
    rung_index: int | None = None


class EventRow(msgspec.Struct, frozen=True):
    """A line of the list: when, what it is of, what became what, and why; of several alike (`count`) their number.

    `query` asks for each of those several.
    """

    at: At
    what: str
    connection: EventConnection | None = None
    rung: str = ""
    rung_index: int | None = None
    was: StateWord | None = None
    became: StateWord | None = None
    turn: str = ""
    act: str = ""
    code: str = ""
    code_words: str = ""
    cause: str = ""
    cause_words: str = ""
    who: str = ""
    reason: str = ""
    kind: str = ""
    version: int | None = None
    count: int = 1
    query: str = ""


def _at(at: datetime, glance: Glance) -> At:
    return At(iso_text(at), clock_text(at=at, now=glance.now, zone=glance.zone, seconds=True))


def stretch_rows(*, steps: Steps, glance: Glance) -> tuple[list[StretchRow], int]:
    """Return the newest stretches, newest first, and how many there are beyond them."""
    rows = [_stretch_row(one, steps, glance) for one in reversed(steps.stretches[-MOST_ROWS:])]
    return rows, len(steps.stretches) - len(rows)


def _stretch_row(one: Stretch, steps: Steps, glance: Glance) -> StretchRow:
    cause = CAUSE_WORDS.get(one.cause, "")
    if one.start == steps.start and one.is_known:
        cause = "it did before"
    return StretchRow(
        start=_at(one.start, glance),
        end=_at(one.end, glance),
        length=span_text(one.length.total_seconds()),
        rung=(one.rung or "none") if one.is_known else "not known: nobody looked",
        rung_index=_INDEX.get(one.rung or ""),
        cause=cause,
    )


def mark_rows(*, marks: Sequence[Mark], glance: Glance) -> tuple[list[MarkRow], int]:
    """Return the newest marks, newest first, and how many there are beyond them."""
    rows = [
        MarkRow(_at(mark.at, glance), mark.lane.value, LANE_WORDS[mark.lane], mark_words(mark))
        for mark in reversed(marks[-MOST_ROWS:])
    ]
    return rows, len(marks) - len(rows)


def served(stretches: Iterable[Stretch]) -> list[Served]:
    """Return how long each rung served, cheapest first, then for how long none did and how long is not known."""
    ones = list(stretches)
    lengths = served_for(ones)
    found = [Served(rung.word, _span(lengths[rung.word]), int(rung)) for rung in Rung if rung.word in lengths]
    if None in lengths:
        found.append(Served("none", _span(lengths[None])))
    unknown = sum((one.length for one in ones if not one.is_known), timedelta())
    return [*found, Served("not known", _span(unknown))] if unknown else found


def _span(length: timedelta) -> str:
    return span_text(length.total_seconds())


def event_row(event: TimelineEvent, *, glance: Glance, may_audit: bool) -> EventRow:
    """Return an event in words; who did it and why only for who may read the audit."""
    row = _flip_row(event, glance) if event.kind == FLIP else _act_row(event, glance, may_audit=may_audit)
    return _together(row, event) if event.count > 1 else row


def _together(row: EventRow, event: TimelineEvent) -> EventRow:
    """Return the line of several alike: how many, and one of them by name."""
    kind = "connection" if event.kind == FLIP else event.kind
    name = event.what if event.connection is None else f"{event.connection.provider}/{event.connection.connection_id}"
    act = f"{name} and {event.count - 1} more {ACT_WORDS.get(event.became, '')}".strip()
    return msgspec.structs.replace(
        row, what=count_text(event.count, *KIND_WORDS[kind]), act=act, connection=None, version=None, count=event.count
    )


def _flip_row(event: TimelineEvent, glance: Glance) -> EventRow:
    row = EventRow(
        at=_at(event.at, glance),
        what="connection" if event.connection else "rung",
        connection=event.connection,
        rung=event.rung,
        rung_index=_INDEX.get(event.rung),
        code=event.code,
        code_words=CODE_WORDS.get(event.code, ""),
        cause=event.cause,
        cause_words=CAUSE_WORDS.get(event.cause, event.cause),
    )
    if event.connection is None:
        turn = "begins to serve" if event.became == Serving.SERVING else "ceases to serve"
        return msgspec.structs.replace(row, turn=turn)
    return msgspec.structs.replace(row, was=_state(event.was), became=_state(event.became))


_NOT_THERE = StateWord(key="", word="not there", shape="off", tone="off")


def _state(word: str) -> StateWord:
    return STATES.get(word) or (StateWord(key=word, word=word, shape="off", tone="off") if word else _NOT_THERE)


def _act_row(event: TimelineEvent, glance: Glance, *, may_audit: bool) -> EventRow:
    reason = event.reason if len(event.reason) <= _LONGEST_REASON else f"{event.reason[:_LONGEST_REASON]}…"
    return EventRow(
        at=_at(event.at, glance),
        what=KIND_WORDS[event.kind][0],
        connection=event.connection,
        rung=event.rung,
        rung_index=_INDEX.get(event.rung),
        act=f"{event.what} {ACT_WORDS[event.became]}".strip(),
        cause=event.cause,
        cause_words=CAUSE_WORDS.get(event.cause, event.cause),
        who=event.who if may_audit else "",
        reason=reason if may_audit else "",
        kind=event.kind,
        version=event.pk if may_audit else None,
    )
