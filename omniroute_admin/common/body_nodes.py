"""The slow, full look at a JSON body: a type as a tree of nodes, each of which names what is wrong at its place.

A node walks the raw bytes of its part with the same decoder that failed on the whole, so that the slow check and the
fast one cannot disagree. It also runs the rules of a value that is decoded already (`rules`).
"""

import collections.abc
import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from functools import cached_property
from typing import Any, get_args, get_origin

import msgspec

from omniroute_admin.common.body_rules import (
    bounds_in,
    checks_in,
    decimal_problems,
    is_plain_number,
    nul_problems,
    plain_words,
)
from omniroute_admin.common.body_types import is_union, parts, split, with_metas, words
from omniroute_admin.common.errors import FieldError, TooLarge, escape_pointer

MAX_ITEMS = 5_000
"""Most items of a list in a body (SPEC 4: bulk bodies up to 5,000 items; larger is 413)."""

_PLACE = re.compile(r" - at .*\Z", re.DOTALL)
_ARRAYS = (list, tuple, set, frozenset, collections.abc.Sequence, collections.abc.Set, collections.abc.Iterable)
_MAPPINGS = (dict, Mapping, collections.abc.MutableMapping)
_BAD = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class Node:
    """One value of any type; the classes below know more of theirs."""

    def __init__(self, annotation: Any) -> None:
        self.annotation = annotation

    @cached_property
    def decoder(self) -> "msgspec.json.Decoder[Any]":
        """Return the decoder of exactly this type."""
        return msgspec.json.Decoder(self.annotation)

    @cached_property
    def choices(self) -> list[str]:
        """Return the values of the enums and literals in the type."""
        return [word for part in parts(self.annotation) for word in words(part)]

    def walk(self, raw: bytes, pointer: str) -> Iterator[FieldError]:
        """Yield everything wrong with the raw JSON of this value; `pointer` is its place in the body."""
        try:
            value = self.decoder.decode(raw)
        except _BAD as error:
            yield self.failure(error, pointer)
        else:
            yield from (error.under(pointer) for error in [*self.rules(value), *nul_problems(value)])

    def rules(self, value: Any) -> Iterable[FieldError]:
        """Return what is wrong with a decoded value; pointers are relative to it."""
        return ()

    @cached_property
    def has_rules(self) -> bool:
        """Tell whether `rules` can find anything."""
        return False

    @cached_property
    def has_decimals(self) -> bool:
        """Tell whether a decimal stands anywhere in the value; False meanwhile, for a struct within itself."""
        self.__dict__["has_decimals"] = False
        return any(node.has_decimals for node in self.inner())

    def inner(self) -> Iterable["Node"]:
        """Return the nodes of what the value is made of."""
        return ()

    def failure(self, error: Exception, pointer: str) -> FieldError:
        """Return the error of a value that does not decode, without the value itself: it may be a secret."""
        detail = _PLACE.sub("", str(error))
        if detail.startswith("Invalid enum value"):
            detail = f"Expected one of: {', '.join(self.choices)}"
        return FieldError(pointer=pointer, detail=plain_words(detail))


class DecimalNode(Node):
    """A decimal with its bounds."""

    has_rules = True
    has_decimals = True

    @cached_property
    def bounds(self) -> Any:
        """Return the bounds that the annotation gives."""
        return bounds_in(split(self.annotation)[1])

    def walk(self, raw: bytes, pointer: str) -> Iterator[FieldError]:
        """Yield what is wrong with the number, or with the text that stands for one."""
        if is_plain_number(raw):
            yield from super().walk(raw, pointer)
        else:
            yield FieldError(pointer=pointer, detail="Expected a number: digits, without blanks")

    def rules(self, value: Any) -> Iterable[FieldError]:
        """Return the bounds that the number breaks."""
        return decimal_problems(value, self.bounds)


class CheckedNode(Node):
    """A value with checks of its own (`check_meta`)."""

    has_rules = True

    @cached_property
    def checks(self) -> Any:
        """Return the checks that the annotation gives."""
        return checks_in(split(self.annotation)[1])

    def rules(self, value: Any) -> Iterable[FieldError]:
        """Yield what the checks find."""
        for check in self.checks:
            detail = check(value)
            if detail is not None:
                yield FieldError(pointer="", detail=detail)


class ItemsNode(Node):
    """A list, tuple or set of one type of item."""

    @cached_property
    def item(self) -> Node:
        """Return the node of an item."""
        return node_of((get_args(split(self.annotation)[0]) or (Any,))[0])

    def inner(self) -> Iterable[Node]:
        """Return the node of an item."""
        return (self.item,)

    @cached_property
    def shell(self) -> "msgspec.json.Decoder[Any]":
        """Return a decoder that checks the list's own bounds and leaves its items raw."""
        return msgspec.json.Decoder(with_metas(list[msgspec.Raw], self.annotation))

    def walk(self, raw: bytes, pointer: str) -> Iterator[FieldError]:
        """Yield what is wrong with the list and with each of its items."""
        try:
            items = msgspec.json.decode(raw, type=list[msgspec.Raw])
        except _BAD as error:
            yield self.failure(error, pointer)
            return
        if len(items) > MAX_ITEMS:
            raise TooLarge(
                f"A list has at most {MAX_ITEMS} items.",
                errors=[FieldError(pointer=pointer, detail=f"{len(items)} items", code="too_large")],
            )
        yield from _own_failure(self, self.shell, raw, pointer)
        for index, item in enumerate(items):
            yield from self.item.walk(bytes(item), f"{pointer}/{index}")

    @cached_property
    def has_rules(self) -> bool:
        """Tell whether the items have rules."""
        return self.item.has_rules

    def rules(self, value: Any) -> Iterable[FieldError]:
        """Yield the broken rules of each item."""
        if self.has_rules:
            for index, item in enumerate(value):
                for error in self.item.rules(item):
                    yield error.under(f"/{index}")


class MappingNode(Node):
    """An object with free names: a dict."""

    @cached_property
    def kinds(self) -> tuple[Any, Any]:
        """Return the types of the names and of the values."""
        found = get_args(split(self.annotation)[0]) or (str, Any)
        return found[0], found[1]

    @cached_property
    def value(self) -> Node:
        """Return the node of a value."""
        return node_of(self.kinds[1])

    def inner(self) -> Iterable[Node]:
        """Return the node of a value."""
        return (self.value,)

    @cached_property
    def shell(self) -> "msgspec.json.Decoder[Any]":
        """Return a decoder that checks the size and leaves the members raw."""
        return msgspec.json.Decoder(with_metas(dict[str, msgspec.Raw], self.annotation))

    @cached_property
    def key(self) -> Node:
        """Return the node of a name."""
        return node_of(self.kinds[0])

    def walk(self, raw: bytes, pointer: str) -> Iterator[FieldError]:
        """Yield what is wrong with the object, each of its names and each of its values."""
        try:
            members = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
        except _BAD as error:
            yield self.failure(error, pointer)
            return
        yield from _own_failure(self, self.shell, raw, pointer)
        for name, member in members.items():
            place = f"{pointer}/{escape_pointer(name)}"
            yield from self.key.walk(msgspec.json.encode(name), place)
            yield from self.value.walk(bytes(member), place)

    @cached_property
    def has_rules(self) -> bool:
        """Tell whether the names or the values have rules."""
        return self.key.has_rules or self.value.has_rules

    def rules(self, value: Any) -> Iterable[FieldError]:
        """Yield the broken rules of each name and value."""
        if self.has_rules:
            for name, member in value.items():
                for error in (*self.key.rules(name), *self.value.rules(member)):
                    yield error.under(f"/{escape_pointer(str(name))}")


class UnionNode(Node):
    """One of several types; JSON's own kind of the value (object, list, other) tells which is meant."""

    @cached_property
    def members(self) -> list[Node]:
        """Return the nodes of the types."""
        return [node_of(part) for part in parts(self.annotation)]

    def inner(self) -> Iterable[Node]:
        """Return the nodes of the types."""
        return self.members

    def walk(self, raw: bytes, pointer: str) -> Iterator[FieldError]:
        """Yield what is wrong with the value as the member it was meant to be."""
        meant = self._meant(raw)
        yield from meant.walk(raw, pointer) if meant is not None else super().walk(raw, pointer)

    def _meant(self, raw: bytes) -> Node | None:
        """Return the one member of the value's kind, by tag where there are several; None where it is not clear."""
        texts = (DecimalNode,) if str not in map(_base_of, self.members) else None
        kind = {b"{": (StructNode, MappingNode), b"[": (ItemsNode,), b'"': texts}.get(raw[:1])
        found = [node for node in self.members if kind and isinstance(node, kind)]
        if len(found) > 1:
            found = [node for node in found if isinstance(node, StructNode) and node.is_tagged_in(raw)]
        return found[0] if len(found) == 1 else None

    @cached_property
    def has_rules(self) -> bool:
        """Tell whether a member has rules."""
        return any(node.has_rules for node in self.members)

    def rules(self, value: Any) -> Iterable[FieldError]:
        """Yield the broken rules of the member that the value is of."""
        if value is not None and self.has_rules:
            for node in self.members:
                if node.has_rules and _is_of(value, node):
                    yield from node.rules(value)


class StructNode(Node):
    """An object with named fields: a struct, with the rules across its fields (`problems`)."""

    @cached_property
    def fields(self) -> dict[str, tuple[msgspec.structs.FieldInfo, Node]]:
        """Return name in JSON -> (what is known of the field, its node)."""
        cls = split(self.annotation)[0]
        return {info.encode_name: (info, node_of(info.type)) for info in msgspec.structs.fields(cls)}

    def inner(self) -> Iterable[Node]:
        """Return the nodes of the fields."""
        return [node for _, node in self.fields.values()]

    @cached_property
    def config(self) -> Any:
        """Return the struct's settings (tag, unknown fields)."""
        return split(self.annotation)[0].__struct_config__

    def is_tagged_in(self, raw: bytes) -> bool:
        """Tell whether the raw object carries this struct's tag."""
        tag = msgspec.json.decode(raw, type=dict[str, msgspec.Raw]).get(self.config.tag_field or "")
        return tag is not None and bytes(tag) == msgspec.json.encode(self.config.tag)

    def walk(self, raw: bytes, pointer: str) -> Iterator[FieldError]:
        """Yield what is wrong with each field, and with the fields together."""
        try:
            members = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
        except _BAD as error:
            yield self.failure(error, pointer)
            return
        found = list(self._field_errors(members, pointer))
        yield from found
        yield from self._together(raw, pointer, clean=not found)

    def _field_errors(self, members: dict[str, msgspec.Raw], pointer: str) -> Iterator[FieldError]:
        for name, member in members.items():
            place = f"{pointer}/{escape_pointer(name)}"
            if name in self.fields:
                yield from self.fields[name][1].walk(bytes(member), place)
            elif self.config.forbid_unknown_fields and name != self.config.tag_field:
                yield FieldError(pointer=place, detail="Unknown field", code="unknown_field")
        for name, (info, _) in self.fields.items():
            if info.required and name not in members:
                place = f"{pointer}/{escape_pointer(name)}"
                yield FieldError(pointer=place, detail="This field is required", code="missing")

    def _together(self, raw: bytes, pointer: str, *, clean: bool) -> Iterator[FieldError]:
        """Decode the whole: what only shows there (a tag, the struct's own check), and its rules."""
        try:
            value = self.decoder.decode(raw)
        except _BAD as error:
            if clean:
                yield self.failure(error, pointer)
            return
        yield from (error.under(pointer) for error in _problems(value))

    @cached_property
    def has_rules(self) -> bool:
        """Tell whether the struct or a field of it has rules; True meanwhile, for a struct within itself."""
        self.__dict__["has_rules"] = True
        cls = split(self.annotation)[0]
        return hasattr(cls, "problems") or any(node.has_rules for _, node in self.fields.values())

    @cached_property
    def _ruled(self) -> list[tuple[str, str, Node]]:
        return [
            (info.name, f"/{escape_pointer(name)}", node)
            for name, (info, node) in self.fields.items()
            if node.has_rules
        ]

    def rules(self, value: Any) -> Iterable[FieldError]:
        """Yield the broken rules of the struct and of everything in it."""
        if self.has_rules:
            yield from _problems(value)
            for attribute, place, node in self._ruled:
                for error in node.rules(getattr(value, attribute)):
                    yield error.under(place)


_STRUCTS: dict[Any, StructNode] = {}


def node_of(annotation: Any) -> Node:
    """Return the node of a type; a struct's is made once."""
    base, metas = split(annotation)
    if isinstance(base, type) and issubclass(base, msgspec.Struct) and not base.__struct_config__.array_like:
        if metas:
            return StructNode(annotation)
        return _STRUCTS.setdefault(base, StructNode(base))
    if checks_in(metas) and _class_of(base) is Node:
        return CheckedNode(annotation)
    return _class_of(base)(annotation)


def _class_of(base: Any) -> type[Node]:
    """Return which node a type needs."""
    origin = get_origin(base) or base
    if base is Decimal:
        return DecimalNode
    if is_union(base):
        return UnionNode
    if origin in _MAPPINGS:
        return MappingNode
    fixed = origin is tuple and Ellipsis not in get_args(base)
    return ItemsNode if origin in _ARRAYS and not fixed else Node


def _own_failure(node: Node, shell: "msgspec.json.Decoder[Any]", raw: bytes, pointer: str) -> Iterator[FieldError]:
    """Yield the error of a container's own bounds, its members left out."""
    try:
        shell.decode(raw)
    except _BAD as error:
        yield node.failure(error, pointer)


def _is_of(value: Any, node: Node) -> bool:
    """Tell whether a decoded value came from this member of a union."""
    base, _ = split(node.annotation)
    kind = get_origin(base) or base
    return isinstance(kind, type) and isinstance(value, kind)


def _base_of(node: Node) -> Any:
    return split(node.annotation)[0]


def _problems(value: Any) -> Iterable[FieldError]:
    ask = getattr(value, "problems", None)
    return ask() if ask is not None else ()
