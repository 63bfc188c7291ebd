"""What happened to one connection: flips and changes as lines of one list, the newest first (SPEC 5, 2)."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from ladder.models import RungFlip
from ladder.views.presenting.values import STATES
from omniroute_admin.common.core.changes import FieldChange, HistoryEntry
from omniroute_admin.common.core.screen import Glance, StateWord, iso_text
from omniroute_admin.common.core.words import clock_text

_NOT_THERE = StateWord(key="", word="not there", shape="off", tone="off")
_CAUSES = {
    "reading": "a reading",
    "reset": "a reset",
    "cooldown": "a cooldown or breaker",
    "budget": "a budget",
    "setting": "a setting",
    "operator": "an operator",
    "catalogue": "the catalogue",
    "time": "time",
}


class TrailLine(msgspec.Struct, frozen=True):
    """One line. A flip has states, a rung and a code; a change has its fields, its reason and its version's address."""

    at: datetime
    iso: str
    clock: str
    by: str
    what: str = ""
    before: StateWord | None = None
    after: StateWord | None = None
    rung: str = ""
    code: str = ""
    changes: tuple[FieldChange, ...] = ()
    reason: str = ""
    version: tuple[str, int] | None = None


def trail_lines(*, flips: Sequence[RungFlip], entries: Sequence[HistoryEntry], glance: Glance) -> list[TrailLine]:
    """Return both, interleaved; of one instant the change stands above the flip that it made."""
    lines = [*(_of_entry(one, glance) for one in entries), *(_of_flip(one, glance) for one in flips)]
    return sorted(lines, key=lambda line: line.at, reverse=True)


def _clock(at: datetime, glance: Glance) -> str:
    return clock_text(at=at, now=glance.now, zone=glance.zone, seconds=True)


def _of_flip(flip: RungFlip, glance: Glance) -> TrailLine:
    return TrailLine(
        at=flip.at,
        iso=iso_text(flip.at),
        clock=_clock(flip.at, glance),
        by=_CAUSES.get(flip.cause, flip.cause),
        before=STATES.get(flip.from_state, _NOT_THERE),
        after=STATES.get(flip.to_state, _NOT_THERE),
        rung=flip.rung,
        code=flip.code or "",
    )


def _of_entry(entry: HistoryEntry, glance: Glance) -> TrailLine:
    return TrailLine(
        at=entry.at,
        iso=iso_text(entry.at),
        clock=_clock(entry.at, glance),
        by=entry.who,
        what=f"{_short(entry)} {entry.did}",
        changes=entry.changes,
        reason=entry.reason,
        version=(entry.kind, entry.history_id),
    )


def _short(entry: HistoryEntry) -> str:
    """Return what was changed without the connection's own name, which stands above the list."""
    if entry.kind == "connection":
        return entry.word
    _, _, rest = entry.what.partition(" ")
    return f"{entry.word} {rest}".strip()
