"""The token that tells whether the picture a browser holds is still the picture there is (SPEC 5, 1).

A token reads `<revision>.<shown>.<evaluated>.<valid until>~<region>:<sum>~...`, instants in microseconds since 1970, 0
for none; `shown` counts what screens show beyond decisions (SPEC 3). Sums tell which regions need sending; what the
browser counts by itself is no part of them.
"""

import re
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from zoneinfo import ZoneInfo

import msgspec

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_TICKING = re.compile(r"(<[^<>]*\bdata-tick=[^<>]*>)[^<]*")
_STATE = re.compile(r"\d{1,20}(\.\d{1,20}){3}")
_SUM = re.compile(r"([a-z]{1,12}):([0-9a-f]{12})")


class Picture(msgspec.Struct, frozen=True):
    """What a picture was drawn from: revision and token, and the instants between which it holds (P9)."""

    revision: int
    shown: int
    evaluated_at: int
    valid_until: int


def micros(at: datetime | None) -> int:
    """Return an instant as whole microseconds since 1970, 0 for none."""
    return 0 if at is None else (at - EPOCH) // _MICROSECOND


def token_of(picture: Picture, *, sums: dict[str, str]) -> str:
    """Return the token of a picture and its regions."""
    state = f"{picture.revision}.{picture.shown}.{picture.evaluated_at}.{picture.valid_until}"
    return "~".join([state, *(f"{name}:{value}" for name, value in sums.items())])


def picture_of(token: str) -> Picture | None:
    """Return the picture a token speaks of, None where it is no token: then everything is sent."""
    state = token.partition("~")[0]
    return Picture(*(int(part) for part in state.split("."))) if _STATE.fullmatch(state) else None


def sums_of(token: str) -> dict[str, str]:
    """Return the sums of the regions that the browser holds."""
    return {match[1]: match[2] for part in token.split("~")[1:] if (match := _SUM.fullmatch(part))}


def region_sum(html: str) -> str:
    """Return the sum of a region's text without the words that the browser goes on counting."""
    return sha256(_TICKING.sub(r"\1", html).encode()).hexdigest()[:12]


def is_current(picture: Picture, *, token: tuple[int, int], now: datetime, zone: ZoneInfo) -> bool:
    """Tell whether a picture still holds: the same (revision, shown), inside its instants, on the same day in `zone`.

    A clock stepped back before the picture's own instant is answered by a new one (SPEC 6); over midnight the clocks
    on it read differently.
    """
    at = micros(now)
    inside = picture.evaluated_at <= at and (not picture.valid_until or at < picture.valid_until)
    same_day = _day(picture.evaluated_at, zone) == now.astimezone(zone).date()
    return (picture.revision, picture.shown) == token and inside and same_day


def _day(at: int, zone: ZoneInfo) -> object:
    try:
        return (EPOCH + timedelta(microseconds=at)).astimezone(zone).date()
    except OverflowError:
        return None
