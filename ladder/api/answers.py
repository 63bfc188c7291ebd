"""How a pool goes out: bytes, revision, a weak ETag that ignores the instant, `304` and `Retry-After` (SPEC 4)."""

import hashlib
from datetime import UTC, datetime

import msgspec
from django.http import HttpRequest, HttpResponse

from ladder.core.values import Pool

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ENCODER = msgspec.json.Encoder()


def pool_response(*, request: HttpRequest, pool: Pool, now: datetime) -> HttpResponse:
    """Return the answer of a pool call; on GET a matching `If-None-Match` gives 304."""
    etag = etag_of(pool)
    if request.method == "GET" and matches(request.headers.get("If-None-Match"), etag):
        response = HttpResponse(status=304)
    else:
        response = HttpResponse(ENCODER.encode(pool), content_type="application/json")
    response["ETag"] = etag
    response["Cache-Control"] = "private, no-cache"
    response["X-Ladder-Revision"] = pool.revision
    if pool.empty is not None and pool.empty.returns_at is not None:
        response["Retry-After"] = str(seconds_until(pool.empty.returns_at, now))
    return response


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
