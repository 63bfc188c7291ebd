"""What an alert says when it is resolved, and the whole of what is sent (SPEC 5)."""

from collections.abc import Callable, Mapping
from datetime import datetime
from enum import StrEnum
from zoneinfo import ZoneInfo

import msgspec

from ladder.core.alerts.conditions import TRIED, spent_text
from ladder.core.alerts.rules import AlertFacts, AlertKind
from ladder.core.places import State
from omniroute_admin.common.core.words import clock_text, count_text

PAUSED = "The rule was paused: nobody looks at this any more."
DELETED = "The rule was deleted: nobody looks at this any more."
CHANGED = "The rule was changed and does not look for this any more."


class NoticeKind(StrEnum):
    """Which of a pair is told; a test is alone."""

    RAISED = "raised"
    RESOLVED = "resolved"
    TEST = "test"


class Notice(msgspec.Struct, frozen=True):
    """What is sent: one line and sentences, as plain text."""

    title: str
    text: str


def resolution(*, kind: AlertKind, subject: str, facts: AlertFacts) -> str:
    """Return why a condition is over, from what is so now."""
    return _RESOLUTIONS[kind](subject, facts)


def _rung(subject: str, facts: AlertFacts) -> str:
    places = [one for one in facts.occupancy.places if one.rung == subject and one.state is not State.OFF]
    if not places:
        return f"No connection stands on the rung {subject} any more, or it is off."
    tried = sum(one.state in TRIED for one in places)
    return f"{tried} of {count_text(len(places), 'connection', 'connections')} on the rung {subject} can serve now."


def _pool(subject: str, facts: AlertFacts) -> str:
    line = next((one for one in facts.occupancy.pools if one.id == subject), None)
    if line is None or line.first_rung is None:
        return f"{subject} is not looked at any more."
    entries = count_text(line.candidates, "candidate", "candidates")
    return f"{subject} has {entries} again, the first from {line.first_rung}."


def _serving(subject: str, facts: AlertFacts) -> str:
    serving = facts.occupancy.serving_rung
    return "auto/thrifty serves from no rung now." if serving is None else f"auto/thrifty serves from {serving} now."


def _budget(subject: str, facts: AlertFacts) -> str:
    rung = next((one for one in facts.occupancy.rungs if one.rung == subject), None)
    if rung is None or rung.budget is None or not rung.budget.amount_usd:
        return f"{subject} has no budget that could be spent any more."
    return spent_text(rung.budget, facts)


def _readings(subject: str, facts: AlertFacts) -> str:
    return f"There are readings from {subject} again, or none is waited for."


def _entry(subject: str, facts: AlertFacts) -> str:
    return "It was reviewed, or it is gone."


def _overage(subject: str, facts: AlertFacts) -> str:
    return "Nothing was billed past the plan since."


_RESOLUTIONS: Mapping[AlertKind, Callable[[str, AlertFacts], str]] = {
    AlertKind.RUNG_EXHAUSTED: _rung,
    AlertKind.POOL_EMPTY: _pool,
    AlertKind.PAID_SERVING: _serving,
    AlertKind.BUDGET: _budget,
    AlertKind.NO_READINGS: _readings,
    AlertKind.UNREVIEWED: _entry,
    AlertKind.OVERAGE: _overage,
}


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """An alert as it is told: of which rule, and when it was raised and resolved (None: not yet)."""

    rule: str
    title: str
    text: str
    resolved_text: str = ""
    raised_at: datetime
    resolved_at: datetime | None = None
    was_quiet: bool = False


def notice_of(*, told: Told, kind: NoticeKind, link: str, zone: ZoneInfo, now: datetime) -> Notice:
    """Return what is sent of an alert; its times are told in `zone`, and `link` (may be empty) closes it."""
    began = f"Began {_clock(told.raised_at, zone, now)}"
    if kind is NoticeKind.RESOLVED and told.resolved_at is not None:
        began += f", over {_clock(told.resolved_at, zone, now)}"
    quiet = ", in quiet hours" if told.was_quiet and kind is NoticeKind.RAISED else ""
    text = told.resolved_text if kind is NoticeKind.RESOLVED else told.text
    lines = [text, f"{began}{quiet}, {zone.key}. Rule: {told.rule}.", link]
    return Notice(f"{kind.value.capitalize()}: {told.title}", "\n".join(filter(None, lines)))


def notice_of_test(*, rule: str, link: str) -> Notice:
    """Return what a test of a rule's channels sends."""
    lines = ["Somebody pressed the test button. Nothing is wrong, and nothing needs to be done.", link]
    return Notice(f"Test: {rule}", "\n".join(filter(None, lines)))


def _clock(at: datetime, zone: ZoneInfo, now: datetime) -> str:
    return clock_text(at=at, now=now, zone=zone)
