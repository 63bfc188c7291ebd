"""What happened, newest first: flips and acts in one list, filtered and cut in the database (SPEC 5, 6)."""

from datetime import datetime
from typing import Any

import msgspec
from django.db.models import BigIntegerField, CharField, Expression, F, Q, QuerySet, TextField, Value
from django.db.models.functions import Coalesce, NullIf

from ladder.core.timeline_causes import Cause
from ladder.models import Connection, RungFlip
from ladder.selectors.acts import ACTS, Act

FLIP = "flip"
"""The kind of an event that is a flip; all other kinds are those of the history."""

_TEXT, _NUMBER = CharField(), BigIntegerField()
_FIELDS = ("at", "kind", "pk", "connection", "rung", "was", "became", "code", "cause", "who", "reason", "what")


class EventFilter(msgspec.Struct, frozen=True):
    """Which events are asked for: empty is "any".

    `cause` is the cause of a flip; the acts of the lanes `setting`, `catalogue` and `operator` have the cause of that
    name. `connection` is `provider/id`, or a part of either.
    """

    cause: str = ""
    connection: str = ""
    rung: str = ""


class EventConnection(msgspec.Struct, frozen=True):
    """The connection that an event is of; one that was deleted stays in what happened (SPEC 3)."""

    provider: str
    connection_id: str
    is_deleted: bool


class TimelineEvent(msgspec.Struct, frozen=True):
    """A flip or an act.

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


def events_between(*, start: datetime, end: datetime, asked: EventFilter) -> QuerySet[Any, Any] | None:
    """Return the rows of the events of [start, end), to count and to list; None where nothing can be among them."""
    parts = [_flips(start, end, asked)]
    parts += [_acts(act, start, end, asked) for act in ACTS if _may_hold(act, asked)]
    found = [part for part in parts if part is not None]
    return found[0].union(*found[1:], all=True) if found else None


def list_events(rows: QuerySet[Any, Any] | None, *, offset: int, limit: int) -> list[TimelineEvent]:
    """Return a part of the events that `events_between` found, newest first; two queries."""
    if rows is None:
        return []
    found = list(rows.order_by("-e_at", "-e_kind", "-e_pk")[offset : offset + limit])
    names = _read_names({row[3] for row in found if row[3]})
    return [TimelineEvent(at, kind, pk, names.get(key), *texts) for at, kind, pk, key, *texts in found]


def _read_names(keys: set[int]) -> dict[int, EventConnection]:
    rows = Connection.objects.filter(pk__in=keys).order_by()
    fields = rows.values_list("pk", "provider", "connection_id", "deleted_at")
    return {pk: EventConnection(provider, name, gone is not None) for pk, provider, name, gone in fields}


def _flips(start: datetime, end: datetime, asked: EventFilter) -> QuerySet[Any, Any] | None:
    if asked.cause and asked.cause not in set(Cause):
        return None
    rows = RungFlip.objects.filter(at__gte=start, at__lt=end).order_by()
    rows = rows.filter(cause=asked.cause) if asked.cause else rows
    rows = rows.filter(rung=asked.rung) if asked.rung else rows
    rows = rows.filter(connection__in=_connections(asked.connection)) if asked.connection else rows
    return _columns(
        rows,
        at=F("at"),
        kind=Value(FLIP),
        pk=F("id"),
        connection=Coalesce(F("connection_id"), 0, output_field=_NUMBER),
        rung=F("rung"),
        was=F("from_state"),
        became=F("to_state"),
        code=Coalesce(F("code"), Value(""), output_field=_TEXT),
        cause=F("cause"),
    )


def _may_hold(act: Act, asked: EventFilter) -> bool:
    """Tell whether acts of a kind can be among what is asked for."""
    return (
        (not asked.cause or act.lane == asked.cause)
        and (not asked.rung or bool(act.rung))
        and (not asked.connection or bool(act.connection))
    )


def _acts(act: Act, start: datetime, end: datetime, asked: EventFilter) -> QuerySet[Any, Any]:
    rows = act.model.history.filter(history_date__gte=start, history_date__lt=end).order_by()
    rows = rows.filter(**{act.rung: asked.rung}) if asked.rung else rows
    rows = rows.filter(**{f"{act.connection}__in": _connections(asked.connection)}) if asked.connection else rows
    return _columns(
        rows,
        at=F("history_date"),
        kind=Value(act.kind),
        pk=F("history_id"),
        connection=F(act.connection) if act.connection else Value(0, output_field=_NUMBER),
        rung=F(act.rung) if act.rung else Value(""),
        became=F("history_type"),
        cause=Value(act.lane.value),
        who=Coalesce(NullIf(F("history_actor"), Value("")), F("history_user__username"), Value(""), output_field=_TEXT),
        reason=Coalesce(F("history_change_reason"), Value(""), output_field=TextField()),
        what=act.what,
    )


def _columns(rows: QuerySet[Any, Any], **columns: Expression | F) -> QuerySet[Any, Any]:
    """Return rows as the columns of one union; what is not given is empty."""
    named = {f"e_{name}": columns.get(name, Value("", output_field=_TEXT)) for name in _FIELDS}
    return rows.annotate(**named).values_list(*named)


def _connections(part: str) -> QuerySet[Any, Any]:
    """Return the keys of the connections that a text names: wholly as `provider/id`, or a part of either."""
    provider, slash, connection_id = part.partition("/")
    either = Q(provider__icontains=part) | Q(connection_id__icontains=part)
    whole = Q(provider=provider, connection_id=connection_id) if slash else Q()
    return Connection.objects.filter(either | whole if slash else either).order_by().values("pk")
