"""How a pool goes out: bytes, revision, a weak ETag that ignores the instant, `304` and `Retry-After` (SPEC 4)."""

import hashlib
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec
from django.http import HttpRequest, HttpResponse

from ladder.core.values import Pool
from omniroute_admin.common.core.numbers import percent_number, usd_text

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ENCODER = msgspec.json.Encoder()


def pool_response(*, request: HttpRequest, pool: Pool, now: datetime) -> HttpResponse:
    """Return the answer of a pool call; on GET a matching `If-None-Match` gives 304."""
    etag = etag_of(pool)
    if request.method == "GET" and matches(request.headers.get("If-None-Match"), etag):
        response = HttpResponse(status=304)
        del response["Content-Type"]  # it has no content
    else:
        response = HttpResponse(ENCODER.encode(pool), content_type="application/json")
    response["ETag"] = etag
    response["Cache-Control"] = "private, no-cache"
    response["X-Ladder-Revision"] = pool.revision
    if pool.empty is not None and pool.empty.returns_at is not None:
        response["Retry-After"] = str(seconds_until(pool.empty.returns_at, now))
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


def etag_of(pool: Pool) -> str:
    """Return the weak ETag over all of a pool but `evaluated_at` and `revision`."""
    same = msgspec.structs.replace(pool, evaluated_at=EPOCH, revision="")
    return f'W/"{hashlib.blake2b(ENCODER.encode(same), digest_size=12).hexdigest()}"'


def matches(header: str | None, etag: str) -> bool:
    """Tell whether an `If-None-Match` header names the ETag; weak comparison, `*` names all."""
    if header is None:
        return False
    named = {item.strip().removeprefix("W/") for item in header.split(",")}
    return "*" in named or etag.removeprefix("W/") in named


def seconds_until(instant: datetime, now: datetime) -> int:
    """Return whole seconds, rounded up, at least 1."""
    return max(1, -int((now - instant).total_seconds() // 1))
