"""One rate-limit report as a router sends it, and what it means (SPEC 4, Rate limits): pure, judged item by item."""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Literal

import msgspec
from django.utils.http import parse_http_date

from ladder.core.cooldown import RETRY_AFTER_CAP, UNTIL_CLEARED
from ladder.core.values import CooldownCause
from ladder.services.reading_items import (
    Instant,
    RefusedReadingError,
    instant_of,
    instant_seen,
    is_given,
    is_storable,
    number_of,
)

_NULL = msgspec.Raw(b"null")
_SECONDS = re.compile(r"[0-9]{1,20}(\.[0-9]{1,20})?\Z")
_DATE_LIKE = re.compile(r"\s*[+-]?[0-9]{4,}-[0-9]")
_MOST_SECONDS = Decimal(int(RETRY_AFTER_CAP.total_seconds()))
_NAME_LENGTHS = {"window": 100, "model": 200}


class RateLimitItem(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One item of `events`. Length and reset stay as they were written, so that each is judged exactly.

    The cause `operator` is none that telemetry may give (C3).
    """

    connection_id: str
    occurred_at: Instant
    cause: Literal["quota", "rate_limit", "auth", "ban"]
    provider: str | None = None
    model: str | None = None
    status_code: Annotated[int, msgspec.Meta(ge=100, le=599)] | None = None
    retry_after: msgspec.Raw = _NULL
    failure_count: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)] | None = None
    reset_at: msgspec.Raw = _NULL
    window: str | None = None


class RateLimit(msgspec.Struct, frozen=True, kw_only=True):
    """What a report says once understood; `retry_after` counts from `occurred_at`, instants are in UTC."""

    occurred_at: datetime
    cause: CooldownCause
    model: str | None = None
    status_code: int | None = None
    retry_after: timedelta | None = None
    failure_count: int | None = None
    reset_at: datetime | None = None
    window: str | None = None
    is_reset_unreadable: bool = False

    @property
    def is_counted(self) -> bool:
        """Tell whether the router gave neither a length nor a count: reports in a row are counted then (C4)."""
        return self.cause not in UNTIL_CLEARED and self.retry_after is None and self.failure_count is None

    @property
    def origin(self) -> str:
        """Return the report in words (C2); nothing of it is a text that only the sender knows."""
        words = [f"report of {self.occurred_at:%Y-%m-%d %H:%M:%S} UTC"]
        if self.status_code is not None:
            words.append(f"status {self.status_code}")
        if self.retry_after is not None:
            words.append(f"retry after {_plain(self.retry_after)} s")
        if self.failure_count is not None:
            words.append(f"failure {self.failure_count}")
        if self.window is not None:
            words.append(f"window {self.window}")
        if self.reset_at is not None:
            words.append(f"reset {self.reset_at:%Y-%m-%d %H:%M:%S} UTC")
        if self.is_reset_unreadable:
            words.append("reset not readable")
        return ", ".join(words)


def rate_limit_of(*, item: RateLimitItem, now: datetime) -> RateLimit:
    """Return what the item says, received at `now`.

    Raises:
        RefusedReadingError: the item breaks a rule of SPEC 4.
    """
    for name, length in _NAME_LENGTHS.items():
        text = getattr(item, name)
        if text is not None and not is_storable(text, length=length):
            raise RefusedReadingError("invalid_item", f"{name}: give 1 to {length} printable characters, or null")
    occurred_at = instant_seen(name="occurred_at", instant=item.occurred_at, now=now)
    reset_at = _reset_at(item.reset_at)
    return RateLimit(
        occurred_at=occurred_at,
        cause=CooldownCause(item.cause),
        model=item.model,
        status_code=item.status_code,
        retry_after=_retry_after(item.retry_after, occurred_at),
        failure_count=item.failure_count,
        reset_at=reset_at,
        window=item.window,
        is_reset_unreadable=reset_at is None and is_given(item.reset_at),
    )


def _retry_after(raw: msgspec.Raw, occurred_at: datetime) -> timedelta | None:
    """Return the length of seconds or an HTTP date, at most 30 days (C4); a date that is past is no length at all."""
    if not is_given(raw):
        return None
    if bytes(raw)[:1] != b'"':
        return _seconds(number_of("retry_after", raw))
    text = _text(raw).strip()
    if _SECONDS.match(text):
        return _seconds(Decimal(text))
    try:
        until = datetime.fromtimestamp(parse_http_date(text), tz=UTC)
    except (ValueError, OverflowError, OSError):
        raise RefusedReadingError("invalid_retry_after", "retry_after: give seconds or an HTTP date") from None
    return min(max(until - occurred_at, timedelta(0)), RETRY_AFTER_CAP)


def _seconds(number: Decimal) -> timedelta:
    if number < 0:
        raise RefusedReadingError("invalid_retry_after", "retry_after: less than no time")
    return timedelta(microseconds=int(min(number, _MOST_SECONDS) * 1_000_000))


def _plain(length: timedelta) -> str:
    """Return a length in seconds, whole where it is: 30 days are 2592000, never 2.592e+06."""
    return f"{length.total_seconds():.6f}".rstrip("0").rstrip(".")


def _reset_at(raw: msgspec.Raw) -> datetime | None:
    """Return the reset. A text that is no date leaves the cooldown as it is (C1); a date that cannot be is refused."""
    if not is_given(raw) or (bytes(raw)[:1] == b'"' and not _DATE_LIKE.match(_text(raw))):
        return None
    return instant_of(name="reset_at", raw=raw)


def _text(raw: msgspec.Raw) -> str:
    try:
        return msgspec.json.decode(raw, type=str)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise RefusedReadingError("invalid_item", "a text is not readable") from None
