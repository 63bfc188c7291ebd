"""SPEC 4: a bad body names every bad field at once; fast decoding first, a slow full check only when it fails."""

import json
from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omniroute_admin.common import bodies
from omniroute_admin.common.errors import BadRequest, FieldError, MalformedJson, TooLarge, escape_pointer

UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Leaf(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=5)]
    one: str | None = None
    many: list[str] | None = None

    def problems(self) -> Iterable[FieldError]:
        if self.one is not None and self.many is not None:
            yield FieldError(pointer="/one", detail="Give one or many, not both")


class Circle(msgspec.Struct, tag="circle", tag_field="kind", forbid_unknown_fields=True):
    radius: int


class Square(msgspec.Struct, tag="square", tag_field="kind", forbid_unknown_fields=True):
    side: int


class Ordered(msgspec.Struct, forbid_unknown_fields=True):
    low: int
    high: int

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError("low is above high")


class Body(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    id: str
    count: Annotated[int, msgspec.Meta(ge=0, le=10)] | None = None
    flag: bool | msgspec.UnsetType = msgspec.UNSET
    colour: Colour | None = None
    word: Literal["a", "b"] = "a"
    at: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    price: Annotated[Decimal, bodies.decimal_meta(ge=0, le=100, places=8)] | None = None
    prices: dict[Annotated[str, msgspec.Meta(pattern="^[a-z/~]+$")], Decimal | None] = {}
    leaves: Annotated[list[Leaf], msgspec.Meta(max_length=bodies.MAX_ITEMS)] = []
    few: Annotated[list[int], msgspec.Meta(max_length=2)] = []
    pair: tuple[int, str] | None = None
    shape: Circle | Square | None = None
    ordered: Ordered | None = None
    anything: Any = None
    child: "Body | None" = None
    camel: int = msgspec.field(default=0, name="camelCase")


DECODER = msgspec.json.Decoder(Body)


@pytest.fixture(name="django_settings")
def _django_settings(settings: Any) -> Any:
    return settings


def refused(body: bytes, decoder: Any = DECODER) -> dict[str, str]:
    with pytest.raises(BadRequest) as caught:
        bodies.decode(body=body, decoder=decoder)
    assert caught.value.status == 400
    return {error.pointer: error.code for error in caught.value.errors}


def test_a_good_body_decodes_without_a_float() -> None:
    body = bodies.decode(body=b'{"id": "x", "price": 33.333333, "prices": {"a": 0.1}}', decoder=DECODER)
    assert body.price == Decimal("33.333333")
    assert body.prices == {"a": Decimal("0.1")}


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        (b"[]", {""}),
        (b"null", {""}),
        (b'"text"', {""}),
        (b"{}", {"/id"}),
        (b'{"id": 1, "count": 11, "flag": "yes", "new": 1}', {"/id", "/count", "/flag", "/new"}),
        (b'{"id": "x", "count": -1}', {"/count"}),
        (b'{"id": "x", "count": 1.5}', {"/count"}),
        (b'{"id": "x", "count": "1"}', {"/count"}),
        (b'{"id": "x", "count": true}', {"/count"}),
        (b'{"id": "x", "flag": null}', {"/flag"}),
        (b'{"id": "x", "colour": "green", "word": "c"}', {"/colour", "/word"}),
        (b'{"id": "x", "at": "yesterday"}', {"/at"}),
        (b'{"id": "x", "at": "2026-01-01T00:00:00"}', {"/at"}),
        (b'{"id": "x", "price": "NaN"}', {"/price"}),
        (b'{"id": "x", "price": "-Infinity"}', {"/price"}),
        (b'{"id": "x", "price": "sNaN"}', {"/price"}),
        (b'{"id": "x", "price": 101}', {"/price"}),
        (b'{"id": "x", "price": -0.1}', {"/price"}),
        (b'{"id": "x", "price": 0.123456789}', {"/price"}),
        (b'{"id": "x", "price": 1e999999}', {"/price"}),
        (b'{"id": "x", "price": true}', {"/price"}),
        (b'{"id": "x", "price": []}', {"/price"}),
        (b'{"id": "x", "prices": {"A": 1, "b": "x", "c": "nan", "d": null}}', {"/prices/A", "/prices/b", "/prices/c"}),
        (b'{"id": "x", "prices": {"a/b~c": "x"}}', {"/prices/a~1b~0c"}),
        (b'{"id": "x", "prices": []}', {"/prices"}),
        (b'{"id": "x", "a/b~c": 1, "": 2}', {"/a~1b~0c", "/"}),
        (b'{"id": "x", "leaves": [{}, {"name": ""}, {"name": "toolong"}, 3, {"name": "ok", "x": 1}]}',
         {"/leaves/0/name", "/leaves/1/name", "/leaves/2/name", "/leaves/3", "/leaves/4/x"}),
        (b'{"id": "x", "leaves": [{"name": "a"}, {"name": "b", "one": "1", "many": []}]}', {"/leaves/1/one"}),
        (b'{"id": 1, "leaves": [{"name": "b", "one": "1", "many": []}, {}]}',
         {"/id", "/leaves/0/one", "/leaves/1/name"}),
        (b'{"id": "x", "leaves": [{"name": "b", "many": [1, "a", null]}]}', {"/leaves/0/many/0", "/leaves/0/many/2"}),
        (b'{"id": "x", "leaves": {}}', {"/leaves"}),
        (b'{"id": "x", "few": [1, 2, "x"]}', {"/few", "/few/2"}),
        (b'{"id": "x", "pair": [1]}', {"/pair"}),
        (b'{"id": "x", "shape": {"kind": "circle", "radius": "x", "side": 1}}', {"/shape/radius", "/shape/side"}),
        (b'{"id": "x", "shape": {"kind": "oval"}}', {"/shape"}),
        (b'{"id": "x", "shape": {}}', {"/shape"}),
        (b'{"id": "x", "shape": 3}', {"/shape"}),
        (b'{"id": "x", "ordered": {"low": 2, "high": 1}}', {"/ordered"}),
        (b'{"id": "x", "camel": 1, "camelCase": "x"}', {"/camel", "/camelCase"}),
        (b'{"id": "x", "child": {"child": {"id": 3}, "id": "y"}}', {"/child/child/id"}),
        (b'{"id": "x", "child": {"id": "y", "leaves": [{"name": "b", "one": "1", "many": []}]}}',
         {"/child/leaves/0/one"}),
        (b'{"id": "x\\u0000"}', {"/id"}),
        (b'{"id": "x", "anything": [{"a": ["\\u0000"]}]}', {"/anything/0/a/0"}),
        (b'{"id": "x", "count": 1e400}', {"/count"}),
        (b' \n{"id": 1} ', {"/id"}),
    ],
)  # fmt: skip
def test_every_bad_field_is_named_at_once(body: bytes, pointers: set[str]) -> None:
    assert set(refused(body)) == pointers


def test_codes_tell_missing_and_unknown_from_wrong() -> None:
    assert refused(b'{"count": "x", "new": 1}') == {"/id": "missing", "/new": "unknown_field", "/count": "invalid"}


def test_an_escaped_backslash_before_u0000_is_no_nul() -> None:
    assert bodies.decode(body=b'{"id": "\\\\u0000"}', decoder=DECODER).id == "\\u0000"


def test_the_value_itself_is_not_repeated_in_the_answer() -> None:
    with pytest.raises(BadRequest) as caught:
        bodies.decode(
            body=b'{"id": "x", "colour": "hush-hush", "at": "hush-hush", "few": ["hush-hush"]}', decoder=DECODER
        )
    assert "hush" not in repr(caught.value.errors)
    assert "red, blue" in next(error.detail for error in caught.value.errors if error.pointer == "/colour")


@pytest.mark.parametrize(
    "body",
    [
        b"", b"  ", b"{", b'{"id": NaN}', b'{"id": "x", "price": Infinity}', b"{'id': 1}", b'{"id": "x"} {}',
        b'{"id": "x",}', b'{"id": "\xff"}', b'{"id": "\\ud800"}', b'{"id": "\x01"}', b"[" * 100_000,
        b'{"id": "x", "anything": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"id": 1, "leaves": [}', b"\xef\xbb\xbf{}", b"id=x",
    ],
)  # fmt: skip
def test_what_is_no_json_is_told_apart_from_a_bad_field(body: bytes) -> None:
    with pytest.raises(MalformedJson) as caught:
        bodies.decode(body=body, decoder=DECODER)
    assert (caught.value.status, caught.value.code) == (400, "malformed_json")


@pytest.mark.parametrize("item", [b'{"name": "a"}', b"1"])
def test_more_than_5000_items_are_too_large(item: bytes) -> None:
    body = b'{"id": "x", "leaves": [' + b",".join([item] * 5_001) + b"]}"
    with pytest.raises(TooLarge) as caught:
        bodies.decode(body=body, decoder=DECODER)
    assert [error.pointer for error in caught.value.errors] == ["/leaves"]
    assert caught.value.status == 413


def test_5000_items_are_read() -> None:
    body = b'{"id": "x", "leaves": [' + b",".join([b'{"name": "a"}'] * 5_000) + b"]}"
    assert len(bodies.decode(body=body, decoder=DECODER).leaves) == 5_000


def test_too_many_bytes_are_too_large(django_settings: Any) -> None:
    django_settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 20
    with pytest.raises(TooLarge):
        bodies.decode(body=b'{"id": "0123456789"}' + b" ", decoder=DECODER)
    assert bodies.decode(body=b'{"id": "0123456789"}', decoder=DECODER).id == "0123456789"


def test_rules_can_be_left_to_the_caller() -> None:
    body = b'{"id": "x", "leaves": [{"name": "b", "one": "1", "many": []}], "price": "NaN"}'
    value = bodies.decode(body=body, decoder=DECODER, rules=False)
    with pytest.raises(BadRequest) as caught:
        bodies.check(value)
    assert {error.pointer for error in caught.value.errors} == {"/leaves/0/one", "/price"}


def test_plain_values_keep_fractions_exact() -> None:
    assert bodies.loads(b'{"a": [0.1, 1, "x", null, true]}') == {"a": [Decimal("0.1"), 1, "x", None, True]}
    with pytest.raises(MalformedJson):
        bodies.loads(b'{"a": NaN}')


WRONG = {  # field -> JSON values that it does not take
    "id": [1, None, [], {}, True],
    "count": ["x", 11, -1, 1.5, [], True],
    "flag": [None, "x", 1],
    "colour": ["green", 1, {}],
    "at": ["x", True, []],
    "price": ["x", 101, "NaN", [], True],
    "leaves": [None, {}, "x", 1],
    "few": [None, [1, 2, 3], "x"],
    "shape": [1, [], {"kind": "oval"}],
}
RIGHT = {
    "id": ["x"], "count": [None, 0, 10], "flag": [True, False], "colour": [None, "red"],
    "at": [None, "2026-01-01T00:00:00Z"], "price": [None, 0, "1.5"], "leaves": [[], [{"name": "a"}]],
    "few": [[], [1]], "shape": [None, {"kind": "circle", "radius": 1}],
}  # fmt: skip


@UNHURRIED
@given(data=st.data(), extra=st.dictionaries(st.text(alphabet='~/ab"\\é', max_size=4), st.integers(), max_size=3))
def test_exactly_the_bad_fields_are_named_whatever_their_number(data: st.DataObject, extra: dict[str, int]) -> None:
    bad = data.draw(st.sets(st.sampled_from(sorted(WRONG))))
    body: dict[str, Any] = {"id": "x"} | extra
    for name in sorted(bad | data.draw(st.sets(st.sampled_from(sorted(RIGHT))))):
        body[name] = data.draw(st.sampled_from(WRONG[name] if name in bad else RIGHT[name]))
    expected = {f"/{name}" for name in bad} | {f"/{escape_pointer(name)}" for name in extra}
    raw = msgspec.json.encode(body)
    if expected:
        assert set(refused(raw)) == expected
    else:
        assert bodies.decode(body=raw, decoder=DECODER) == msgspec.json.decode(raw, type=Body)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@UNHURRIED
@given(body=st.dictionaries(st.sampled_from([*Body.__struct_encode_fields__, "z"]), JSON, max_size=6))
def test_the_slow_check_finds_something_wherever_the_fast_one_does(body: dict[str, Any]) -> None:
    raw = msgspec.json.encode(body)
    try:
        msgspec.json.decode(raw, type=Body)
    except msgspec.ValidationError:
        assert refused(raw)


@UNHURRIED
@given(body=st.binary(max_size=60))
def test_no_bytes_make_it_fail_otherwise(body: bytes) -> None:
    with pytest.raises((BadRequest, MalformedJson)):
        bodies.decode(body=body, decoder=DECODER)


class Amounts(msgspec.Struct, forbid_unknown_fields=True):
    name: str = ""
    amount: Decimal | None = None
    amounts: dict[str, Decimal] = {}


AMOUNTS = msgspec.json.Decoder(Amounts)


@pytest.mark.parametrize("number", ["1_0", " 10", "10 ", "٣", "１", "1\t", "\u00a05", "_1", "1e_1"])
def test_a_number_in_a_text_is_written_in_plain_digits(number: str) -> None:
    body = {"name": "1_0", "amount": number, "amounts": {"a": number, "b": "1"}}
    for written in (msgspec.json.encode(body), json.dumps(body).encode()):
        assert set(refused(written, AMOUNTS)) == {"/amount", "/amounts/a"}


def test_texts_that_are_no_numbers_may_hold_what_numbers_may_not() -> None:
    body = {"name": " 1_0 ", "amount": "-1.5e2", "amounts": {" 1 ": "+1", "b": 0.5}}
    value = bodies.decode(body=json.dumps(body).encode(), decoder=AMOUNTS)
    assert (value.name, value.amount, value.amounts) == (" 1_0 ", Decimal(-150), {" 1 ": 1, "b": Decimal("0.5")})


def test_a_refusal_speaks_of_json_and_not_of_pythons_types() -> None:
    body = b'{"name": 1, "amount": [], "amounts": {"a": {}, "b": true}}'
    with pytest.raises(BadRequest) as caught:
        bodies.decode(body=body, decoder=AMOUNTS)
    assert {error.pointer: error.detail for error in caught.value.errors} == {
        "/name": "Expected text, got whole number",
        "/amount": "Expected number or null, got list",
        "/amounts/a": "Expected number, got object",
        "/amounts/b": "Expected number, got true or false",
    }


def test_checks_of_names_run_on_the_fast_way_and_on_the_slow_one() -> None:
    key = Annotated[str, bodies.check_meta(lambda text: None if text else "Not blank")]
    decoder = msgspec.json.Decoder(dict[key, int])  # type: ignore[valid-type]
    assert set(refused(b'{"": 1, "a": 2}', decoder)) == {"/"}
    assert set(refused(b'{"": 1, "a": "x"}', decoder)) == {"/", "/a"}
