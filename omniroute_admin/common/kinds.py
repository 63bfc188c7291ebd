"""The parts of the one history: each app says at start-up what of its own is kept in it, and how that is told (SPEC 3).

What is common knows none of them by name, so that it stands below every app.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from django.db.models import F, Q

from omniroute_admin.common.core.changes import CHANGED, DELETED, MADE, FieldChange, tell
from omniroute_admin.common.history import Actor

_ACT_OF_TYPE = {"+": MADE, "~": CHANGED, "-": DELETED}


@dataclass(frozen=True)
class Told:
    """How a field is told: its label, and its value in words."""

    label: str
    words: Callable[[Any], str] = tell


class Present(Protocol):
    """Finds the row as it stands that a version speaks of."""

    def __call__(self, version: Any, /, *, now: datetime, lock: bool) -> Any | None:
        """Return the row, locked to the end of the transaction where asked; None where there is none at `now`."""


class TurnBack(Protocol):
    """Writes what a version said, by the services of its app."""

    def __call__(self, *, version: Any, present: Any | None, actor: Actor, reason: str, now: datetime) -> None:
        """Write it; raises what the service refuses."""


@dataclass(frozen=True, kw_only=True)
class RollBack:
    """How one goes back to a version of a kind.

    `fields` is what is taken from the version, `right` what somebody must be allowed, `note` what its page says of it.
    `needs_row`: a row that is gone does not come back.
    """

    right: str
    fields: tuple[str, ...]
    present: Present
    turn_back: TurnBack
    note: str = ""
    needs_row: bool = False


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One part of the history: the rows of one history table, and how they are told.

    `key` stands in addresses, `word` on screens. `name` tells which row a version is of; `searched` are the columns
    that a search for it looks in, `related` what is read along. `at_first` are the values before the first version of
    a row whose making left none. `ended` is a column with the instant of a deletion that leaves the row. `owner` is the
    column with the primary key of the connection that the row belongs to. `did` tells an act better than its plain
    word, given the version and the one before; None leaves the word. `more` adds what no field tells. `kept` says why
    nobody goes back, where there is no `roll_back`.
    """

    key: str
    word: str
    model: Any
    fields: Mapping[str, Told]
    name: Callable[[Any], str]
    searched: Sequence[str] = ()
    related: Sequence[str] = ()
    at_first: Mapping[str, Any] = field(default_factory=dict)
    ended: str = ""
    owner: str = ""
    did: Callable[[Any, Any | None], str | None] = lambda version, before: None
    more: Callable[[Any, Any | None], Iterable[FieldChange]] = lambda version, before: ()
    roll_back: RollBack | None = None
    kept: str = ""

    @property
    def versions(self) -> Any:
        """Return the query of every version, in no order."""
        return self.model._default_manager.order_by()

    def act_is(self, act: str) -> Q:
        """Return the condition of versions that an act (one of ACTS) left."""
        letters = [letter for letter, word in _ACT_OF_TYPE.items() if word == act]
        plain = Q(history_type__in=letters)
        if not self.ended or act == MADE:
            return plain
        ends = Q(**{self.ended: F("history_date")})
        stays = Q(**{f"{self.ended}__isnull": True}) | ~ends
        return plain | ends if act == DELETED else plain & stays

    def act_of(self, version: Any) -> str:
        """Return what was done, one of ACTS."""
        is_ended = bool(self.ended) and getattr(version, self.ended) == version.history_date
        return DELETED if is_ended else _ACT_OF_TYPE[version.history_type]


_KINDS: dict[str, Kind] = {}


def register_kind(kind: Kind) -> None:
    """Take a kind into the history; said again, the last word counts. Called when an app is ready."""
    _KINDS[kind.key] = kind


def all_kinds() -> tuple[Kind, ...]:
    """Return every kind, in the order in which they were registered."""
    return tuple(_KINDS.values())


def find_kind(key: str) -> Kind | None:
    """Return the kind of that key; None where there is none."""
    return _KINDS.get(key)
