"""One history in words: what a change is, and how values are told in it (SPEC 3, 5). Pure."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any

import msgspec

from omniroute_admin.common.core.numbers import decimal_text
from omniroute_admin.common.core.words import money_text, percent_text

MADE, CHANGED, DELETED = "made", "changed", "deleted"
ACTS = (MADE, CHANGED, DELETED)
"""What can be done to a row."""

EMPTY = "empty"
"""An empty text, or a list with nothing in it."""
NOTHING = "none"
"""No value, where the field has no word of its own for that."""


class FieldChange(msgspec.Struct, frozen=True):
    """One field of a change: its name, its label, the value before and the one after, exact and in words.

    The empty text stands where there was no row yet, or is none any more.
    """

    field: str
    label: str
    old: str
    new: str


class HistoryEntry(msgspec.Struct, frozen=True):
    """One change: to what (`kind` and `what`), when (aware UTC), by whom, why, and field by field.

    `act` is one of ACTS; `did` tells it as people do (`budget reset`, `cleared`). `row` is the primary key of the row,
    `history_id` that of this version of it. `may_roll_back` tells whether one can go back to this version.
    """

    kind: str
    history_id: int
    at: datetime
    who: str
    reason: str
    act: str
    what: str
    changes: tuple[FieldChange, ...]
    may_roll_back: bool
    did: str
    row: int
    word: str


def tell(value: object) -> str:
    """Return a value in words: `yes`, `none`, a number as it is, a list with commas, an instant in UTC."""
    words = next((tell_one(value) for kind, tell_one in _TELLERS if isinstance(value, kind)), str(value))
    return words or EMPTY


def _tell_instant(value: datetime) -> str:
    return f"{value.astimezone(UTC).replace(tzinfo=None).isoformat(sep=' ')} UTC"


_TELLERS: tuple[tuple[type, Callable[[Any], str]], ...] = (
    (type(None), lambda _: NOTHING),
    (bool, lambda value: "yes" if value else "no"),
    (Enum, lambda value: str(value.value)),
    (Decimal, decimal_text),
    (datetime, _tell_instant),
    (date, lambda value: str(value.isoformat())),
    (list, lambda value: ", ".join(tell(one) for one in value)),
)


def tell_percent(value: object) -> str:
    """Return a percentage in words: `2 %`."""
    return percent_text(value) if isinstance(value, Decimal) else tell(value)


def tell_usd(value: object) -> str:
    """Return an amount in words: `$1.25`."""
    return money_text(value) if isinstance(value, Decimal) else tell(value)


def tell_budget(value: object) -> str:
    """Return a budget in words: `off`, `no limit`, or the amount (M1)."""
    if value is None:
        return "no limit"
    return tell_usd(value) if value else "off"


def tell_seconds(value: object) -> str:
    """Return a length of time in words: `180 s`."""
    return f"{tell(value)} s"


def nothing_is(word: str, *, then: Callable[[object], str] = tell) -> Callable[[object], str]:
    """Return how a field is told whose null has a word of its own: `no limit`, `until cleared`."""
    return lambda value: word if value is None else then(value)
