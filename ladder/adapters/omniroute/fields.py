"""Single fields of OmniRoute's rows, in all the forms a real install and its import endpoint leave."""

import re
from datetime import UTC, datetime, timedelta
from decimal import ROUND_FLOOR, Decimal
from typing import TypeGuard

from ladder.adapters.omniroute.values import ImportProblem
from omniroute_admin.common.core import names

_DIGITS = re.compile(r"[0-9]{1,20}(\.[0-9]{1,20})?", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_MILLISECONDS = Decimal(10) ** 11  # as seconds this is the year 5138, as milliseconds 1973
_YEARS = range(2000, 2101)
_EIGHT_PLACES = Decimal("0.00000001")


class OddValue(ValueError):  # noqa: N818 - named for what it tells
    """A field holds something that cannot be read; the message says what, without the value."""


class SkippedRow(Exception):  # noqa: N818 - no error: the row is reported, the import goes on
    """A row cannot be taken over; `code` and `detail` go into the report."""

    def __init__(self, *, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


def problem(*, table: str, key: str, code: str, detail: str) -> ImportProblem:
    """Short form, since almost every module reports."""
    return ImportProblem(table=table, key=key, code=code, detail=detail)


def is_connection_id(raw: object) -> TypeGuard[str]:
    """Whether this is a connection id as SPEC 1 wants it.

    It is not trimmed first: the router names a connection exactly as it is stored, a trimmed id
    would be one that it never asks for.
    """
    return isinstance(raw, str) and names.is_connection_id(raw)


def read_provider(raw: object) -> str:
    """The provider's id without blanks around it, lower case; raises `OddValue`."""
    provider = names.canonical_name(raw) if isinstance(raw, str) else ""
    if not names.is_provider(provider):
        raise OddValue("The provider is no id of letters, digits and ._:@+-")
    return provider


def read_instant(raw: object) -> datetime | None:
    """An aware UTC instant; None for NULL and blank; raises `OddValue`.

    ISO 8601 with `Z`, an offset or neither (then UTC: SQLite's own datetime() writes that), and
    numbers or strings of digits, where 10^11 and more are milliseconds since 1970, less are
    seconds. A year outside 2000 to 2100 is a slip of unit or a placeholder, never a real reset.
    """
    if raw is None or (isinstance(raw, str) and not raw.strip()):
        return None
    text = str(raw).strip() if isinstance(raw, str | int | float) else ""
    try:
        instant = _from_number(Decimal(text)) if _DIGITS.fullmatch(text) else _from_iso(text)
    except (ValueError, OverflowError) as error:
        raise OddValue("is no date") from error
    if instant.year not in _YEARS:
        raise OddValue("lies outside the years 2000 to 2100")
    return instant


def _from_number(number: Decimal) -> datetime:
    seconds = number / 1000 if number >= _FIRST_MILLISECONDS else number
    return _EPOCH + timedelta(microseconds=int(seconds * 1_000_000))


def _from_iso(text: str) -> datetime:
    instant = datetime.fromisoformat(text)
    return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant.astimezone(UTC)


def read_percent(raw: object) -> Decimal | None:
    """Percent remaining, 0 to 100, from a REAL; None for NULL; raises `OddValue`.

    `repr` of a float is the shortest decimal that means it, so 86.66667 stays 86.66667. More
    than eight places are cut, not rounded: a value is never made better than it was.
    """
    if raw is None:
        return None
    number = _finite(raw)
    if number is None:
        raise OddValue("The remaining percentage is no finite number")
    return _to_percent(number)


def percent_left(*, used: object, limit: object) -> Decimal | None:
    """Percent remaining of an allowance, as in `read_percent`; None without a limit above zero."""
    known_used, known_limit = _finite(used), _finite(limit)
    if known_used is None or known_limit is None or known_limit <= 0:
        return None
    return _to_percent((known_limit - known_used) * 100 / known_limit)


def _finite(raw: object) -> Decimal | None:
    number = Decimal(repr(raw)) if isinstance(raw, int | float) else None
    return number if number is not None and number.is_finite() else None


def _to_percent(number: Decimal) -> Decimal:
    clamped = min(max(number, Decimal(0)), Decimal(100))
    return clamped.quantize(_EIGHT_PLACES, rounding=ROUND_FLOOR)
