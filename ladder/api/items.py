"""Bodies of telemetry whose items are judged one by one: a bad item never costs the good ones (SPEC 4)."""

from typing import Annotated, Any, Generic, TypeVar

import msgspec
from msgspec import Meta

from omniroute_admin.common.bodies import MAX_ITEMS, decode
from omniroute_admin.common.body_nodes import node_of
from omniroute_admin.common.body_rules import may_hold_odd_numbers
from omniroute_admin.common.errors import TooLarge

T = TypeVar("T", bound=msgspec.Struct)

_MOST_FAULTS = 10
"""Faults of one rejected item that its sentence names; an item may have any number of unknown fields."""


class EventsShell(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A body of events, each left as it came."""

    events: Annotated[list[msgspec.Raw], Meta(max_length=MAX_ITEMS)]


_SHELL = msgspec.json.Decoder(EventsShell)


class EventsDecoder(Generic[T]):
    """Decodes `{"events": [...]}` into items of one type; what is no such item becomes a text naming its faults."""

    def __init__(self, kind: type[T]) -> None:
        """Prepare the decoders of a type of items."""
        self._kind = kind
        events: Any = list[kind]  # type: ignore[valid-type]
        body = msgspec.defstruct("EventsBody", [("events", events)], frozen=True, forbid_unknown_fields=True)
        self._body: msgspec.json.Decoder[Any] = msgspec.json.Decoder(body)
        self._item = msgspec.json.Decoder(kind)

    def decode(self, body: bytes) -> list[T | str]:
        """Return the items of a body.

        Raises:
            MalformedJson: the body is no JSON (a literal NaN).
            BadRequest: the body itself is not of its form.
            TooLarge: more than 5,000 items.
        """
        try:
            events = None if may_hold_odd_numbers(body) else self._body.decode(body).events
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            events = None
        if events is None:
            return [self._one(raw) for raw in decode(body=body, decoder=_SHELL).events]
        if len(events) > MAX_ITEMS:
            raise TooLarge(f"events: a list has at most {MAX_ITEMS} items.")
        return list(events)

    def _one(self, raw: msgspec.Raw) -> T | str:
        faults = [error.sentence() for error in node_of(self._kind).walk(bytes(raw), "")]
        if faults:
            return "; ".join(faults[:_MOST_FAULTS])
        try:
            return self._item.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return "this is no event"
