"""Rules on single decoded values that a type alone cannot say: bounds of decimals, characters of texts."""

import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import msgspec

from omniroute_admin.common.errors import FieldError, escape_pointer

_MOST_DIGITS = 60
_LARGEST_EXPONENT = 40


class DecimalBounds(msgspec.Struct, frozen=True):
    """Bounds of a decimal: None is "none"; `places` counts the digits after the point that are not zero at the end."""

    ge: Decimal | None = None
    gt: Decimal | None = None
    le: Decimal | None = None
    lt: Decimal | None = None
    places: int | None = None


_NO_BOUNDS = DecimalBounds()
_ODD_NUMBER = re.compile(rb'"(?=[^"]*[ _\\\x80-\xff])(?:[ _0-9eE+.\x80-\xff-]|\\u[0-9a-fA-F]{4}|\\[bfnrt])++"')
_NAMES = re.compile(r"`([a-z| ]+)`")
_PLAIN_NAMES = {
    "int": "whole number",
    "float": "number",
    "decimal": "number",
    "str": "text",
    "array": "list",
    "bool": "true or false",
    "datetime": "instant",
}
_PLAIN_SENTENCES = {
    "Invalid RFC3339 encoded datetime": "Expected an instant, as in 2026-08-22T12:00:00Z",
    "Invalid decimal string": "Expected a number",
}


def decimal_meta(
    *,
    ge: Decimal | int | None = None,
    gt: Decimal | int | None = None,
    le: Decimal | int | None = None,
    lt: Decimal | int | None = None,
    places: int | None = None,
) -> msgspec.Meta:
    """Return what bounds a Decimal, to stand beside it in `Annotated`.

    msgspec itself bounds no decimals; `decode` and `check` do. Every Decimal is finite and of sane size without it.
    """
    bounds = DecimalBounds(ge=_decimal(ge), gt=_decimal(gt), le=_decimal(le), lt=_decimal(lt), places=places)
    return msgspec.Meta(extra={"decimal": bounds})


def check_meta(check: Callable[[Any], str | None]) -> msgspec.Meta:
    """Return a check of one value, to stand beside its type in `Annotated`: it tells what is wrong, or None."""
    return msgspec.Meta(extra={"check": check})


def checks_in(metas: tuple[Any, ...]) -> list[Callable[[Any], str | None]]:
    """Return the checks among the annotations of a type."""
    found = [(getattr(meta, "extra", None) or {}).get("check") for meta in metas]
    return [check for check in found if check is not None]


def bounds_in(metas: tuple[Any, ...]) -> DecimalBounds:
    """Return the bounds among the annotations of a type."""
    for meta in metas:
        found = (getattr(meta, "extra", None) or {}).get("decimal")
        if isinstance(found, DecimalBounds):
            return found
    return _NO_BOUNDS


def decimal_problems(value: Decimal, bounds: DecimalBounds) -> Iterator[FieldError]:
    """Yield what is wrong with a decimal; the pointer is its own place."""
    if not value.is_finite():
        yield FieldError(pointer="", detail="Expected a finite number")
    elif not _is_sane(value):
        yield FieldError(pointer="", detail="The number is too large, too small or too long")
    else:
        yield from (FieldError(pointer="", detail=detail) for detail in _broken(value, bounds))


def may_hold_odd_numbers(body: bytes) -> bool:
    """Tell whether a body may hold a text that Python would read as a number and a person would not.

    `1_0`, ` 10 ` and digits of other alphabets: a quick look, which says yes to some texts that are no numbers.
    """
    return _ODD_NUMBER.search(body) is not None


def is_plain_number(raw: bytes) -> bool:
    """Tell whether the raw JSON of a decimal is written in ASCII digits, without blanks and underscores.

    What is no text is left to the decoder.
    """
    if raw[:1] != b'"':
        return True
    try:
        text = msgspec.json.decode(raw, type=str)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return True
    return text.isascii() and "_" not in text and text == text.strip()


def plain_words(detail: str) -> str:
    """Return a decoder's sentence in the words of JSON instead of Python's types."""

    def plain(found: re.Match[str]) -> str:
        names = [_PLAIN_NAMES.get(name.strip(), name.strip()) for name in found[1].split("|")]
        return " or ".join(dict.fromkeys(names))

    return _NAMES.sub(plain, _PLAIN_SENTENCES.get(detail, detail))


def nul_problems(value: Any) -> Iterator[FieldError]:
    """Yield the texts with NUL in a value of any shape: it is no character that a database keeps."""
    if isinstance(value, str):
        if "\0" in value:
            yield FieldError(pointer="", detail="A text must not hold the character NUL")
    elif isinstance(value, dict):
        for name, member in value.items():
            place = f"/{escape_pointer(str(name))}"
            yield from (error.under(place) for part in (name, member) for error in nul_problems(part))
    elif isinstance(value, list | tuple | set | frozenset):
        for index, member in enumerate(value):
            yield from (error.under(f"/{index}") for error in nul_problems(member))


def _decimal(bound: Decimal | int | None) -> Decimal | None:
    return None if bound is None else Decimal(bound)


def _is_sane(value: Decimal) -> bool:
    """Tell whether writing the number out stays short: `1e999999` is one short token and a million digits."""
    exponent = value.as_tuple().exponent
    return (
        len(value.as_tuple().digits) <= _MOST_DIGITS
        and isinstance(exponent, int)
        and -_LARGEST_EXPONENT - _MOST_DIGITS <= exponent <= _LARGEST_EXPONENT
    )


def _places(value: Decimal) -> int:
    """Return how many digits after the point say something; rounding would fail on numbers longer than its context."""
    if not value:
        return 0
    _, digits, exponent = value.as_tuple()
    idle = len(digits) - len("".join(map(str, digits)).rstrip("0"))
    return max(0, -int(exponent) - idle)


def _broken(value: Decimal, bounds: DecimalBounds) -> Iterator[str]:
    if bounds.ge is not None and value < bounds.ge:
        yield f"Expected a number >= {bounds.ge}"
    if bounds.gt is not None and value <= bounds.gt:
        yield f"Expected a number > {bounds.gt}"
    if bounds.le is not None and value > bounds.le:
        yield f"Expected a number <= {bounds.le}"
    if bounds.lt is not None and value >= bounds.lt:
        yield f"Expected a number < {bounds.lt}"
    if bounds.places is not None and _places(value) > bounds.places:
        yield f"Expected at most {bounds.places} digits after the point"
