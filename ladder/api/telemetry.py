"""What reporters tell (SPEC 4): each item is judged alone, one bad item never costs the good ones."""

from typing import Annotated, Any

import msgspec
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from msgspec import Meta
from rest_framework import serializers as s
from rest_framework.request import Request
from rest_framework.views import APIView

from ladder.api.counts import count_items
from ladder.api.documents import InstantOrNumberField, words
from ladder.core.values import Combine, ReadingStatus
from ladder.services.reading_items import Instant, ReadingItem, UnreadableItem
from ladder.services.reading_store import MOST_WINDOWS
from ladder.services.readings import Item, record_readings
from omniroute_admin.common import clock
from omniroute_admin.common.authentication import caller
from omniroute_admin.common.bodies import MAX_ITEMS, decode, read_body
from omniroute_admin.common.body_nodes import node_of
from omniroute_admin.common.errors import TooLarge
from omniroute_admin.common.listing import check_parameters

_ConnectionIds = Annotated[list[str], Meta(max_length=MAX_ITEMS)]
_MOST_FAULTS = 10
"""Faults of one rejected item that its sentence names; an item may have any number of unknown fields."""


class ReadingsBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A body whose every reading is one; `complete_for` names connections all of whose windows are in it."""

    readings: list[ReadingItem]
    complete_for: list[str] = []


class ReadingsShell(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The same body with its readings left as they came."""

    readings: Annotated[list[msgspec.Raw], Meta(max_length=MAX_ITEMS)]
    complete_for: _ConnectionIds = []


_BODY = msgspec.json.Decoder(ReadingsBody)
_SHELL = msgspec.json.Decoder(ReadingsShell)
_ITEM = msgspec.json.Decoder(ReadingItem)


class ReadingDocument(s.Serializer):
    """One observation of a quota window: exactly one form of the number, or a status, or both."""

    connection_id = s.CharField()
    provider = s.CharField(required=False, allow_null=True, help_text="Needed for noauth.")
    window = s.CharField(
        max_length=100,
        help_text=f"As in 5h, weekly, weekly:opus. A connection has at most {MOST_WINDOWS} that are reported.",
    )
    remaining_percent = s.FloatField(required=False, allow_null=True)
    used_percent = s.FloatField(required=False, allow_null=True)
    remaining = s.FloatField(required=False, allow_null=True)
    limit = s.FloatField(required=False, allow_null=True)
    unlimited = s.BooleanField(required=False, allow_null=True)
    status = s.ChoiceField(words(ReadingStatus), required=False, allow_null=True)
    reset_at = InstantOrNumberField(
        required=False, allow_null=True, help_text="ISO with a zone, or epoch (milli)seconds."
    )
    observed_at = s.DateTimeField()
    combine = s.ChoiceField(words(Combine), required=False, allow_null=True)
    model = s.CharField(required=False, allow_null=True, help_text="Glob; null: every model. Left out: as it was.")


class ReadingsDocument(s.Serializer):
    """A body of readings."""

    readings = s.ListField(child=ReadingDocument(), max_length=MAX_ITEMS)
    complete_for = s.ListField(
        child=s.CharField(),
        required=False,
        max_length=MAX_ITEMS,
        help_text="Connections all of whose windows are in this body: their other windows stop counting. noauth is"
        " that of the one provider that the readings name it with.",
    )


class RejectedDocument(s.Serializer):
    """An item that was refused. An entry of `complete_for` has the index that follows the last reading's."""

    index = s.IntegerField()
    code = s.CharField()
    detail = s.CharField()


class TelemetryDocument(s.Serializer):
    """What became of the items: four disjoint counts."""

    accepted = s.IntegerField()
    duplicates = s.IntegerField()
    superseded = s.IntegerField()
    rejected = RejectedDocument(many=True)


class ReadingsView(APIView):
    """Observations of quota windows."""

    required_scopes = {"POST": "telemetry:write"}

    @extend_schema(operation_id="telemetry_readings", request=ReadingsDocument, responses={200: TelemetryDocument})
    def post(self, request: Request) -> HttpResponse:
        """Record readings; what is answered as accepted is committed. `percent` is percent remaining."""
        check_parameters(request.query_params)
        items, complete_for = decode_readings(read_body(request._request))
        answer = record_readings(items=items, complete_for=complete_for, actor=caller(request).actor, now=clock.now())
        count_items(kind="readings", answer=answer)
        return HttpResponse(msgspec.json.encode(answer), content_type="application/json")


def decode_readings(body: bytes) -> tuple[list[Item], list[str]]:
    """Return the readings of a body and what it is complete for; a reading that is none is told apart by item.

    Raises:
        MalformedJson: the body is no JSON (a literal NaN).
        BadRequest: the body itself is not of its form.
        TooLarge: more than 5,000 items.
    """
    try:
        good = _BODY.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        shell = decode(body=body, decoder=_SHELL)
        return [_item(raw) for raw in shell.readings], shell.complete_for
    for name, items in (("readings", good.readings), ("complete_for", good.complete_for)):
        if len(items) > MAX_ITEMS:
            raise TooLarge(f"{name}: a list has at most {MAX_ITEMS} items.")
    return list(good.readings), good.complete_for


def _item(raw: msgspec.Raw) -> Item:
    try:
        return _ITEM.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _unreadable(bytes(raw))


def _unreadable(raw: bytes) -> UnreadableItem:
    """Return what can be told of an item that is none: every fault, and whom and what it speaks of."""
    faults = [error.sentence() for error in node_of(ReadingItem).walk(raw, "")]
    named = {name: _member(raw, name, kind) for name, kind in _NAMED.items()}
    return UnreadableItem(detail="; ".join(faults[:_MOST_FAULTS]) or "this is no reading", **named)


_NAMED: dict[str, Any] = {"connection_id": str, "provider": str, "window": str, "observed_at": Instant}


def _member(raw: bytes, name: str, kind: Any) -> Any:
    """Return one member of a raw object, None where it is not there or of another kind."""
    try:
        member = msgspec.json.decode(raw, type=dict[str, msgspec.Raw]).get(name)
        return None if member is None else msgspec.json.decode(member, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
