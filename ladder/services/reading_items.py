"""One reading as a reporter sends it, and what it means (SPEC 4, Readings): pure, judged item by item."""

from datetime import UTC, datetime, timedelta
from decimal import ROUND_FLOOR, Context, Decimal, InvalidOperation
from typing import Annotated

import msgspec

from ladder.core.values import Combine, ReadingStatus

MAX_AHEAD = timedelta(seconds=60)
"""How far in the future an observation may lie: clock skew up to a minute is tolerated (SPEC 6)."""

MILLISECONDS_FROM = Decimal(10) ** 11
"""An epoch number from here on counts milliseconds: as seconds it would lie past the year 5000."""

LAST_YEAR = 9000
"""Resets beyond it are no instants anyone meant, and arithmetic on them could leave the calendar."""

OLDEST = datetime(1, 1, 2, tzinfo=UTC)
"""The calendar's first instant that every zone can write."""

LONGEST_WINDOW = 100
"""Characters of a window's name."""

_RAW_LENGTH = 200
_NAME_LENGTHS = {"window": LONGEST_WINDOW, "model": 200}
_NULL = msgspec.Raw(b"null")
# Fifty digits and downward rounding: a floor of a floor is the floor, and no exponent overflows (traps are off).
_EXACT = Context(prec=50, rounding=ROUND_FLOOR, traps=[])
_EIGHT_PLACES = Decimal(1).scaleb(-8)
_HUNDRED = Decimal(100)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST = datetime(9999, 12, 31, tzinfo=UTC)

Instant = Annotated[datetime, msgspec.Meta(tz=True)]


class ReadingItem(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One item of `readings`. Numbers and the reset stay as they were written, so that each is judged exactly."""

    connection_id: str
    window: str
    observed_at: Instant
    provider: str | None = None
    remaining_percent: msgspec.Raw = _NULL
    used_percent: msgspec.Raw = _NULL
    remaining: msgspec.Raw = _NULL
    limit: msgspec.Raw = _NULL
    unlimited: bool | None = None
    status: ReadingStatus | None = None
    reset_at: msgspec.Raw = _NULL
    combine: Combine | None = None
    model: str | msgspec.UnsetType | None = msgspec.UNSET


class UnreadableItem(msgspec.Struct, frozen=True, kw_only=True):
    """An item that is no `ReadingItem`, with what can still be told of it.

    Its window is in the body all the same: `complete_for` includes rejected items (SPEC 4).
    """

    detail: str
    connection_id: str | None = None
    provider: str | None = None
    window: str | None = None
    observed_at: datetime | None = None


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """What a reading says once understood: percent remaining to eight places, instants in UTC.

    `combine` None and `model` UNSET mean that the item did not say; `raw` is the number as it was sent.
    """

    window: str
    observed_at: datetime
    received_at: datetime
    remaining_percent: Decimal | None
    unlimited: bool
    status: ReadingStatus
    reset_at: datetime | None
    raw: str
    combine: Combine | None
    model: str | msgspec.UnsetType | None


class RefusedReadingError(Exception):
    """An item of telemetry cannot be judged; `code` is a stable word, the text a sentence."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


def reading_item(
    *,
    connection_id: str,
    window: str,
    observed_at: datetime,
    provider: str | None = None,
    remaining_percent: Decimal | None = None,
    unlimited: bool | None = None,
    status: ReadingStatus | None = None,
    reset_at: datetime | None = None,
    combine: Combine | None = None,
    model: str | msgspec.UnsetType | None = msgspec.UNSET,
) -> ReadingItem:
    """Return an item made from values instead of JSON: percent remaining, aware instants."""
    return ReadingItem(
        connection_id=connection_id,
        window=window,
        observed_at=observed_at,
        provider=provider,
        remaining_percent=_NULL if remaining_percent is None else msgspec.Raw(str(remaining_percent).encode()),
        unlimited=unlimited,
        status=status,
        reset_at=_NULL if reset_at is None else msgspec.Raw(msgspec.json.encode(reset_at)),
        combine=combine,
        model=model,
    )


def observe(*, item: ReadingItem, now: datetime) -> Observation:
    """Return what the item says, received at `now`.

    Raises:
        RefusedReadingError: the item breaks a rule of SPEC 4, Readings.
    """
    _check_names(item)
    observed_at = instant_seen(name="observed_at", instant=item.observed_at, now=now)
    remaining, raw = _number(item)
    return Observation(
        window=item.window,
        observed_at=observed_at,
        received_at=now,
        remaining_percent=remaining,
        unlimited=bool(item.unlimited),
        status=item.status or _unsaid_status(item, remaining),
        reset_at=None if not is_given(item.reset_at) else instant_of(name="reset_at", raw=item.reset_at),
        raw=raw[:_RAW_LENGTH],
        combine=item.combine,
        model=item.model,
    )


def order_of(observation: Observation) -> tuple[int, Decimal, int, datetime]:
    """Return the place among readings of one instant: the lower counts (SPEC 4).

    The word "exhausted", then numbers upward, then unlimited, then unknown; at one value the status that is less
    safe, then the earlier reset. Equal places are equal readings.
    """
    number = observation.remaining_percent
    if observation.status is ReadingStatus.EXHAUSTED:
        group = 0
    elif number is not None:
        group = 1
    else:
        group = 2 if observation.unlimited else 3
    doubt = [ReadingStatus.EXHAUSTED, ReadingStatus.UNKNOWN, ReadingStatus.SAFE].index(observation.status)
    # An exhausted reading may carry a number, "unlimited", or nothing: each its own place.
    value = Decimal(101 if observation.unlimited else 102) if number is None else number
    return group, value, doubt, observation.reset_at or datetime.max.replace(tzinfo=UTC)


def is_storable(text: str, *, length: int) -> bool:
    """Tell whether a text can be a name: not blank, no control character, not too long."""
    return 0 < len(text) <= length and not text.isspace() and text.isprintable()


def _check_names(item: ReadingItem) -> None:
    if not is_storable(item.window, length=_NAME_LENGTHS["window"]):
        raise RefusedReadingError("invalid_item", "window: give 1 to 100 printable characters")
    model = item.model
    if isinstance(model, str) and not is_storable(model, length=_NAME_LENGTHS["model"]):
        raise RefusedReadingError("invalid_item", "model: give 1 to 200 printable characters, or null for every model")


def instant_seen(*, name: str, instant: datetime, now: datetime) -> datetime:
    """Return in UTC when something was seen to happen.

    Raises:
        RefusedReadingError: before the calendar, or more than MAX_AHEAD ahead; `name` is the field's, as in
            `observed_at`.
    """
    if instant < OLDEST:
        raise RefusedReadingError("invalid_item", f"{name}: outside the calendar")
    if instant - now > MAX_AHEAD:
        raise RefusedReadingError(f"{name.removesuffix('_at')}_in_future", f"{name}: more than 60 s in the future")
    return instant.astimezone(UTC)


def _unsaid_status(item: ReadingItem, remaining: Decimal | None) -> ReadingStatus:
    return ReadingStatus.SAFE if remaining is not None or item.unlimited else ReadingStatus.UNKNOWN


def _number(item: ReadingItem) -> tuple[Decimal | None, str]:
    """Return percent remaining (None: unknown) and the number as it was sent."""
    pair = is_given(item.remaining) or is_given(item.limit)
    given = [is_given(item.remaining_percent), is_given(item.used_percent), pair, bool(item.unlimited)]
    if sum(given) > 1:
        raise RefusedReadingError(
            "conflicting_values", "give one of remaining_percent, used_percent, remaining and limit, unlimited"
        )
    if not any(given) and item.status is None:
        raise RefusedReadingError(
            "no_value", "give remaining_percent, used_percent, remaining and limit, unlimited or status"
        )
    if given[0]:
        number = number_of("remaining_percent", item.remaining_percent)
        return _floor(number), _text(item.remaining_percent)
    if given[1]:
        used = number_of("used_percent", item.used_percent)
        return _floor(_EXACT.subtract(_HUNDRED, _clamp(used))), f"used {_text(item.used_percent)}"
    return _share(item) if pair else (None, "")


def _share(item: ReadingItem) -> tuple[Decimal | None, str]:
    if not (is_given(item.remaining) and is_given(item.limit)):
        raise RefusedReadingError("no_value", "remaining and limit only say something together")
    remaining, limit = number_of("remaining", item.remaining), number_of("limit", item.limit)
    raw = f"{_text(item.remaining)} of {_text(item.limit)}"
    if limit <= 0:
        return None, raw
    if remaining <= 0 or remaining >= limit:
        return _HUNDRED if remaining > 0 else Decimal(0), raw
    return _floor(_EXACT.scaleb(_EXACT.divide(remaining, limit), 2)), raw


def is_given(raw: msgspec.Raw) -> bool:
    """Tell whether a field was sent and is not null."""
    return bytes(raw) != b"null"


def _text(raw: msgspec.Raw) -> str:
    return bytes(raw).decode()


def number_of(name: str, raw: msgspec.Raw) -> Decimal:
    """Return a number exactly as it was written.

    Raises:
        RefusedReadingError: it is none; `name` is the field's.
    """
    token = bytes(raw)
    if token[:1] not in b"-0123456789":
        raise RefusedReadingError("invalid_item", f"{name}: give a number")
    try:
        return Decimal(token.decode())
    except InvalidOperation:
        raise RefusedReadingError("invalid_item", f"{name}: the number is out of range") from None


def _clamp(number: Decimal) -> Decimal:
    return min(max(number, Decimal(0)), _HUNDRED)


def _floor(number: Decimal) -> Decimal:
    """Return the percentage cut to eight places, downward: what is lost is never spent."""
    return _clamp(number).quantize(_EIGHT_PLACES, context=_EXACT)


def instant_of(*, name: str, raw: msgspec.Raw) -> datetime:
    """Return an instant in UTC, from ISO text with a zone or from epoch seconds or milliseconds.

    Raises:
        RefusedReadingError: it is none, or so far in the future that nobody meant it; `name` is the field's.
    """
    try:
        instant = _from_iso(raw) if bytes(raw)[:1] == b'"' else _from_epoch(number_of(name, raw))
    except (ValueError, OverflowError, msgspec.DecodeError):
        raise RefusedReadingError(
            f"invalid_{name}", f"{name}: give an ISO instant with a zone, or epoch seconds or milliseconds"
        ) from None
    if instant.year > LAST_YEAR:
        raise RefusedReadingError(f"invalid_{name}", f"{name}: too far in the future to be meant")
    return instant


def _from_iso(raw: msgspec.Raw) -> datetime:
    return msgspec.json.decode(raw, type=Instant).astimezone(UTC)


def _from_epoch(number: Decimal) -> datetime:
    size = number.copy_abs()
    if number >= (_LAST - _EPOCH) // timedelta(milliseconds=1):
        return _LAST  # in whatever unit, it is beyond the calendar
    if size >= Decimal(10) ** 15:
        raise OverflowError
    scale = 3 if size >= MILLISECONDS_FROM else 6
    return _EPOCH + timedelta(microseconds=int(_EXACT.scaleb(number, scale)))
