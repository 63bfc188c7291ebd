"""How a pool goes out: bytes, revision, a weak ETag that ignores the instant, `304` and `Retry-After` (SPEC 4)."""

import hashlib
from datetime import datetime
from decimal import Decimal
from typing import Any

import msgspec
from django.http import HttpRequest, HttpResponse

from ladder.core.values import Pool
from omniroute_admin.common.core.numbers import percent_number, usd_text

ENCODER = msgspec.json.Encoder()
_AFTER_INSTANT = b',"valid_until":'


class Told(msgspec.Struct, frozen=True):
    """A pool as it goes out: its bytes, and what the headers say of them."""

    body: bytes
    etag: str
    revision: str
    returns_at: datetime | None


def tell(pool: Pool) -> Told:
    """Return a pool ready to be sent; its weak ETag is over all of it but `evaluated_at` and `revision` (SPEC 4)."""
    body = ENCODER.encode(pool)
    # What stands before is the id, what follows from it, and the two that do not count.
    same = hashlib.sha256(pool.id.encode())
    same.update(memoryview(body)[body.index(_AFTER_INSTANT) :])
    etag = f'W/"{same.hexdigest()[:32]}"'
    return Told(body, etag, pool.revision, None if pool.empty is None else pool.empty.returns_at)


def pool_response(*, request: HttpRequest, told: Told, now: datetime) -> HttpResponse:
    """Return the answer of a pool call; on GET a matching `If-None-Match` gives 304."""
    if request.method == "GET" and matches(request.headers.get("If-None-Match"), told.etag):
        response = HttpResponse(status=304)
        del response["Content-Type"]  # it has no content
    else:
        response = HttpResponse(told.body, content_type="application/json")
    response["ETag"] = told.etag
    response["Cache-Control"] = "private, no-cache"
    response["X-Ladder-Revision"] = told.revision
    if told.returns_at is not None:
        response["Retry-After"] = str(seconds_until(told.returns_at, now))
    return response


def on_the_wire(value: Any) -> Any:
    """Return a value as it goes out: what is named in percent as a number, what is named in USD as a text."""
    return _with_units("", msgspec.to_builtins(value, builtin_types=(datetime, Decimal)))


def _with_units(name: str, value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_units(key, member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_with_units(name, member) for member in value]
    if isinstance(value, Decimal):
        return percent_number(value) if name.endswith("_percent") else usd_text(value)
    return value


def matches(header: str | None, etag: str) -> bool:
    """Tell whether an `If-None-Match` header names the ETag; weak comparison, `*` names all."""
    if header is None:
        return False
    named = {item.strip().removeprefix("W/") for item in header.split(",")}
    return "*" in named or etag.removeprefix("W/") in named


def seconds_until(instant: datetime, now: datetime) -> int:
    """Return whole seconds, rounded up, at least 1."""
    return max(1, -int((now - instant).total_seconds() // 1))
