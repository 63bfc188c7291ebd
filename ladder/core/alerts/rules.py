"""Alerts: conditions that operators are to hear of, each raised once and resolved once.

A rule and the facts give the conditions that there are now; those beside what is raised already give what is to be
raised and resolved. Nothing here knows how any of it is delivered.
"""

from collections.abc import Collection, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from zoneinfo import ZoneInfo

import msgspec

from ladder.core.occupancy import Occupancy

Key = tuple[str, str]
"""Provider and connection id."""

EACH = "*"
"""As the subject of a rule: each one alone."""
IN_USE = "in use"
"""As the subject of a rule on billing entries: those that decide a stored connection."""


class AlertKind(StrEnum):
    """What a rule looks at."""

    RUNG_EXHAUSTED = "rung_exhausted"
    POOL_EMPTY = "pool_empty"
    PAID_SERVING = "paid_serving"
    BUDGET = "budget"
    NO_READINGS = "no_readings"
    UNREVIEWED = "unreviewed"
    OVERAGE = "overage"


class Unit(msgspec.Struct, frozen=True):
    """What the number of a rule counts, and between which bounds it lies."""

    word: str
    most: int
    usual: int
    least: int = 1


UNITS: Mapping[AlertKind, Unit] = {
    AlertKind.BUDGET: Unit("%", 100, 80),
    AlertKind.NO_READINGS: Unit("minutes", 7 * 24 * 60, 10),
    AlertKind.UNREVIEWED: Unit("days", 3650, 90),
    AlertKind.OVERAGE: Unit("hours", 31 * 24, 24),
}
"""The kinds whose rules have a number."""


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """What is looked for; `threshold` is in the unit of the kind. A change counts once it lasted `for_seconds`."""

    id: int
    kind: AlertKind
    subject: str = ""
    threshold: int = 0
    for_seconds: int = 0


class EntryFact(msgspec.Struct, frozen=True):
    """A billing entry: since when it is as it was reviewed, or made where it never was."""

    pk: int
    provider: str
    auth_type: str | None
    since: date
    is_reviewed: bool
    is_in_use: bool


class AlertFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to look at, at one instant.

    `readings` has the newest reading of each connection whose quota is asked of a plan, None where there never was one.
    `overage_usd` is what connections billed past their plans within so many hours back.
    """

    now: datetime
    zone: ZoneInfo
    occupancy: Occupancy
    readings: Mapping[Key, datetime | None] = {}
    entries: tuple[EntryFact, ...] = ()
    overage_usd: Mapping[int, Mapping[Key, Decimal]] = {}


class Condition(msgspec.Struct, frozen=True):
    """Something that is so: of which rule, what about (`subject`), in one line and in sentences.

    `page` names the page to look at: the name of its address, and the parts of it.
    """

    rule: int
    kind: AlertKind
    subject: str
    title: str
    text: str
    page: tuple[str | int, ...]

    @property
    def key(self) -> str:
        """Return what tells it from every other one, and stays the same for as long as it lasts."""
        return condition_key(rule=self.rule, kind=self.kind, subject=self.subject)


def condition_key(*, rule: int, kind: AlertKind, subject: str) -> str:
    """Return the key of a condition, as in `3:pool_empty:auto/subscription`."""
    return f"{rule}:{kind.value}:{subject}"


class Verdict(msgspec.Struct, frozen=True):
    """What is to be raised and what resolved, by key; and since when others are not as they were told."""

    raised: tuple[str, ...]
    resolved: tuple[str, ...]
    differing: Mapping[str, datetime]


def decide(
    *,
    conditions: Collection[str],
    raised: Collection[str],
    differing: Mapping[str, datetime],
    for_seconds: Mapping[str, int],
    now: datetime,
) -> Verdict:
    """Return what becomes of the conditions that are there (`conditions`) and those that were told (`raised`).

    A condition that is not as it was told is told once that lasted `for_seconds` (none: at once); so one that goes and
    comes within that time is not told at all. `differing` is what the last look returned. A clock that was set back
    begins to count anew.
    """
    there, told = frozenset(conditions), frozenset(raised)
    since = {key: min(differing.get(key, now), now) for key in there ^ told}
    due = {key for key, at in since.items() if now - at >= timedelta(seconds=for_seconds.get(key, 0))}
    return Verdict(
        raised=tuple(sorted(due - told)),
        resolved=tuple(sorted(due & told)),
        differing={key: at for key, at in sorted(since.items()) if key not in due},
    )
