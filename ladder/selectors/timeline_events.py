"""What happened, newest first: flips and acts in one list, filtered and cut in the database (SPEC 5, 6)."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import msgspec
from django.db.models import BigIntegerField, CharField, Count, Expression, F, Max, Q, QuerySet, TextField, Value
from django.db.models.functions import Coalesce, NullIf

from ladder.core.instants import TICK
from ladder.core.timeline.causes import Cause
from ladder.models import Connection
from ladder.selectors.acts import ACTS, Act
from ladder.selectors.timeline import flips_between

FLIP = "flip"
"""The kind of an event that is a flip; all other kinds are those of the history."""

_TEXT, _NUMBER = CharField(), BigIntegerField()
_FIELDS = ("at", "kind", "pk", "connection", "rung", "was", "became", "code", "cause", "who", "reason", "what")
_ONE_OF_MANY = ("pk", "connection", "what")
"""What differs among the events of one line: it tells those of the last of them."""


class EventFilter(msgspec.Struct, frozen=True):
    """Which events are asked for: empty is "any".

    `cause` is the cause of a flip; the acts of the lanes `setting`, `catalogue` and `operator` have the cause of that
    name. `connection` is `provider/id`, or a part of either. `at` is one instant, to the microsecond: then every event
    of it stands for itself.
    """

    cause: str = ""
    connection: str = ""
    rung: str = ""
    at: datetime | None = None


class EventConnection(msgspec.Struct, frozen=True):
    """The connection that an event is of; one that was deleted stays in what happened (SPEC 3)."""

    provider: str
    connection_id: str
    is_deleted: bool


class TimelineEvent(msgspec.Struct, frozen=True):
    """A flip or an act, or several alike of one instant (`count`): then what is told of one is told of the last.

    Of a flip `was` and `became` are states and `connection` None is the rung itself; of an act `became` is "+", "~" or
    "-" (made, changed, deleted) and `pk` the number of its version.
    """

    at: datetime
    kind: str
    pk: int
    connection: EventConnection | None
    rung: str
    was: str
    became: str
    code: str
    cause: str
    who: str
    reason: str
    what: str
    count: int = 1


def count_places(*, start: datetime, end: datetime, asked: EventFilter) -> int:
    """Return how many places the list of the events of [start, end) has; one query.

    One write or one command may do the same to thousands: the events of one kind and instant have one place, unless
    one instant is asked for.
    """
    found = _union(_parts(start, end, asked) if asked.at else _places(start, end, asked))
    return 0 if found is None else found.count()


def list_events(*, start: datetime, end: datetime, asked: EventFilter, offset: int, limit: int) -> list[TimelineEvent]:
    """Return the events of so many places, newest first, alike ones as one; three queries.

    A place has several events where what happened at its instant is not all alike.
    """
    if asked.at:
        found = _ordered(_parts(start, end, asked), "-e_pk")[offset : offset + limit]
    else:
        # The places come from indexes on the instants alone; only what is shown of them is read whole.
        places = _ordered(_places(start, end, asked))[offset : offset + limit]
        found = _at_places(list(places), asked) if places else []
    names = _read_names({row[3] for row in found if row[3]})
    return [TimelineEvent(row[0], row[1], row[2], names.get(row[3]), *row[4:]) for row in found]


def _at_places(places: Sequence[Any], asked: EventFilter) -> list[Any]:
    shown, (newest, _), (oldest, _) = set(places), places[0], places[-1]
    rows = _ordered(_parts(oldest, newest + TICK, asked), "-e_pk")
    return [row for row in rows if (row[0], row[1]) in shown]


def _union(parts: Sequence[QuerySet[Any, Any]]) -> QuerySet[Any, Any] | None:
    return parts[0].union(*parts[1:], all=True) if parts else None


def _ordered(parts: Sequence[QuerySet[Any, Any]], *then: str) -> QuerySet[Any, Any] | list[Any]:
    found = _union(parts)
    return [] if found is None else found.order_by("-e_at", "-e_kind", *then)


def _parts(start: datetime, end: datetime, asked: EventFilter) -> list[QuerySet[Any, Any]]:
    """Return the events of each kind that can be among what is asked for, each in the same columns."""
    each = asked.at is not None
    flips = [_columns(rows, each=each, **_FLIP_COLUMNS) for rows in _flips(start, end, asked)]
    acts = [_columns(rows, each=each, **_act_columns(act)) for act, rows in _acts(start, end, asked)]
    return flips + acts


def _places(start: datetime, end: datetime, asked: EventFilter) -> list[QuerySet[Any, Any]]:
    """Return (instant, kind) of each instant at which something of a kind happened."""
    flips = [_instants(rows, at="at", kind=FLIP) for rows in _flips(start, end, asked)]
    return flips + [_instants(rows, at="history_date", kind=act.kind) for act, rows in _acts(start, end, asked)]


def _instants(rows: QuerySet[Any, Any], *, at: str, kind: str) -> QuerySet[Any, Any]:
    told = rows.annotate(e_at=F(at), e_kind=Value(kind, output_field=_TEXT))
    return told.values_list("e_at", "e_kind").distinct()


def _read_names(keys: set[int]) -> dict[int, EventConnection]:
    rows = Connection.objects.filter(pk__in=keys).order_by()
    fields = rows.values_list("pk", "provider", "connection_id", "deleted_at")
    return {pk: EventConnection(provider, name, gone is not None) for pk, provider, name, gone in fields}


def _flips(start: datetime, end: datetime, asked: EventFilter) -> Iterator[QuerySet[Any, Any]]:
    """Yield the flips that are asked for; nothing where none can be."""
    if asked.cause and asked.cause not in set(Cause):
        return
    rows = flips_between(start=start, end=end).order_by()
    rows = rows.filter(at=asked.at) if asked.at else rows
    rows = rows.filter(cause=asked.cause) if asked.cause else rows
    rows = rows.filter(rung=asked.rung) if asked.rung else rows
    yield rows.filter(connection__in=_connections(asked.connection)) if asked.connection else rows


_FLIP_COLUMNS: dict[str, Expression | F] = {
    "at": F("at"),
    "kind": Value(FLIP),
    "pk": F("id"),
    "connection": Coalesce(F("connection_id"), 0, output_field=_NUMBER),
    "rung": F("rung"),
    "was": F("from_state"),
    "became": F("to_state"),
    "code": Coalesce(F("code"), Value(""), output_field=_TEXT),
    "cause": F("cause"),
}


def _acts(start: datetime, end: datetime, asked: EventFilter) -> Iterator[tuple[Act, QuerySet[Any, Any]]]:
    """Yield each kind of act that can be among what is asked for, with its rows of it."""
    for act in ACTS:
        if _may_hold(act, asked):
            yield act, _rows_of(act, start, end, asked)


def _may_hold(act: Act, asked: EventFilter) -> bool:
    """Tell whether acts of a kind can be among what is asked for."""
    return (
        (not asked.cause or act.lane == asked.cause)
        and (not asked.rung or bool(act.rung))
        and (not asked.connection or bool(act.connection))
    )


def _rows_of(act: Act, start: datetime, end: datetime, asked: EventFilter) -> QuerySet[Any, Any]:
    rows: QuerySet[Any, Any] = act.model.history.filter(history_date__gte=start, history_date__lt=end).order_by()
    rows = rows.filter(history_date=asked.at) if asked.at else rows
    rows = rows.filter(**{act.rung: asked.rung}) if asked.rung else rows
    return rows.filter(**{f"{act.connection}__in": _connections(asked.connection)}) if asked.connection else rows


def _act_columns(act: Act) -> dict[str, Expression | F]:
    return {
        "at": F("history_date"),
        "kind": Value(act.kind),
        "pk": F("history_id"),
        "connection": F(act.connection) if act.connection else Value(0, output_field=_NUMBER),
        "rung": F(act.rung) if act.rung else Value(""),
        "became": F("history_type"),
        "cause": Value(act.lane.value),
        "who": Coalesce(
            NullIf(F("history_actor"), Value("")), F("history_user__username"), Value(""), output_field=_TEXT
        ),
        "reason": Coalesce(F("history_change_reason"), Value(""), output_field=TextField()),
        "what": act.what,
    }


def _columns(rows: QuerySet[Any, Any], *, each: bool, **columns: Expression | F) -> QuerySet[Any, Any]:
    """Return rows as the columns of one union, alike ones together unless `each`; what is not given is empty."""
    named = {f"e_{name}": columns.get(name, Value("", output_field=_TEXT)) for name in _FIELDS}
    every = [*named, "e_count"]
    if each:
        return rows.annotate(**named, e_count=Value(1)).values_list(*every)
    last = {f"e_{name}": Max(named.pop(f"e_{name}")) for name in _ONE_OF_MANY}
    rows = rows.annotate(**named).values(*named)
    return rows.annotate(**last, e_count=Count("pk")).values_list(*every)


def _connections(part: str) -> QuerySet[Any, Any]:
    """Return the keys of the connections that a text names: wholly as `provider/id`, or a part of either."""
    provider, slash, connection_id = part.partition("/")
    either = Q(provider__icontains=part) | Q(connection_id__icontains=part)
    whole = Q(provider=provider, connection_id=connection_id) if slash else Q()
    return Connection.objects.filter(either | whole if slash else either).order_by().values("pk")
