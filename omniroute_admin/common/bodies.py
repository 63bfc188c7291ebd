"""JSON bodies: decoded fast, and looked at closely only when that fails, so that every bad field is named (SPEC 4).

A body is a `msgspec.Struct` with `forbid_unknown_fields=True`. Rules across fields stand in a method
`problems(self) -> Iterable[FieldError]`, with pointers relative to the struct. Lists carry
`Meta(max_length=MAX_ITEMS)`; a longer one is refused with 413. Decimals carry `decimal_meta(...)` for their bounds,
texts that only code can judge `check_meta(...)`.
"""

from decimal import Decimal
from typing import Any, TypeVar

import msgspec
from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest
from django.http.request import UnreadablePostError

from omniroute_admin.common.body_nodes import MAX_ITEMS, node_of
from omniroute_admin.common.body_rules import check_meta, decimal_meta, may_hold_odd_numbers
from omniroute_admin.common.errors import BadRequest, FieldError, MalformedJson, TooLarge
from omniroute_admin.common.keyless import refuse_keys

__all__ = ["MAX_ITEMS", "check", "check_meta", "decimal_meta", "decode", "loads", "read_body", "refuse"]

T = TypeVar("T")

_NUL = b"\\u0000"
_DEFAULT_MAX_BODY_BYTES = 16 * 1024 * 1024
# Numbers stay texts here: only the grammar is looked at, and a huge exponent is no error of grammar.
_GRAMMAR = msgspec.json.Decoder(float_hook=str)
_VALUES = msgspec.json.Decoder(float_hook=Decimal)


def max_body_bytes() -> int:
    """Return how many bytes a body may have (the setting DATA_UPLOAD_MAX_MEMORY_SIZE)."""
    return settings.DATA_UPLOAD_MAX_MEMORY_SIZE or _DEFAULT_MAX_BODY_BYTES


def read_body(request: HttpRequest, *, is_kept: bool = True) -> bytes:
    """Return the body of a Django request; where nothing of it is kept (`is_kept`), no key is looked for.

    Raises:
        TooLarge: it is larger than the settings allow; it is not read then.
        BadRequest: the connection broke before all of it came, or it holds the text of a key.
    """
    try:
        declared = int(request.META.get("CONTENT_LENGTH") or 0)
    except ValueError:
        declared = 0
    if declared > max_body_bytes():
        raise _too_many_bytes()
    try:
        body = request.body
    except RequestDataTooBig:
        raise _too_many_bytes() from None
    except UnreadablePostError:
        raise BadRequest("The body broke off before its end.", code="unreadable_body") from None
    if is_kept:
        refuse_keys(body)
    return body


def decode(*, body: bytes, decoder: "msgspec.json.Decoder[T]", rules: bool = True) -> T:
    """Return the value that a body holds, its structs' own rules checked too (`rules=False` leaves that to the caller).

    Raises:
        MalformedJson: it is no JSON (a literal NaN, bad UTF-8, nested too deep, cut off).
        BadRequest: a field is missing, unknown, of another type or outside its bounds; every one is named.
        TooLarge: too many bytes, or more than MAX_ITEMS items in a list.
    """
    if len(body) > max_body_bytes():
        raise _too_many_bytes()
    try:
        value = decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _explain(body, decoder, error) from None
    node = node_of(decoder.type)
    if _NUL in body or (node.has_decimals and may_hold_odd_numbers(body)):
        refuse(list(node.walk(body.strip(), "")))
    if rules:
        refuse(list(node.rules(value)))
    return value


def check(value: Any) -> None:
    """Run the rules of a decoded struct and of all structs in it (what `decode(rules=False)` left out).

    Raises:
        BadRequest: a rule is broken; every one is named.
    """
    refuse(list(node_of(type(value)).rules(value)))


def loads(body: bytes) -> Any:
    """Return plain Python values of a JSON body, its fractions exact (Decimal, never float).

    Raises:
        MalformedJson: it is no JSON, or holds a number that no field takes.
        TooLarge: too many bytes.
    """
    if len(body) > max_body_bytes():
        raise _too_many_bytes()
    _refuse_bad_grammar(body)
    try:
        return _VALUES.decode(body)
    except (msgspec.DecodeError, ArithmeticError):
        raise MalformedJson("A number in the body is out of range.") from None


def refuse(errors: list[FieldError]) -> None:
    """Raise BadRequest naming the errors, if there are any."""
    if errors:
        count = len(errors)
        raise BadRequest("One field is not valid." if count == 1 else f"{count} fields are not valid.", errors=errors)


def _explain(body: bytes, decoder: "msgspec.json.Decoder[Any]", error: Exception) -> Exception:
    """Return the error that says all that is wrong with a body that did not decode."""
    try:
        _refuse_bad_grammar(body)
        refuse(list(node_of(decoder.type).walk(body.strip(), "")))
    except (MalformedJson, BadRequest, TooLarge) as known:
        return known
    return BadRequest("The body is not valid.", errors=[FieldError(pointer="", detail=str(error))])


def _refuse_bad_grammar(body: bytes) -> None:
    """Check that the body is JSON, whatever its fields.

    Raises:
        MalformedJson: it is not.
    """
    try:
        _GRAMMAR.decode(body)
    except msgspec.ValidationError:
        return  # a number out of range: JSON all the same
    except msgspec.DecodeError as error:
        raise MalformedJson("The body is empty." if not body.strip() else f"{error}.") from None
    except UnicodeDecodeError as error:
        raise MalformedJson(f"The body is not UTF-8: {error.reason}.") from None
    except RecursionError:
        raise MalformedJson("The body is nested too deep.") from None


def _too_many_bytes() -> TooLarge:
    return TooLarge(f"A body has at most {max_body_bytes()} bytes.")
