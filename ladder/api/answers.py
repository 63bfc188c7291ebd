"""How a pool goes out: bytes, revision, a weak ETag that ignores the instant, `304` and `Retry-After` (SPEC 4)."""

import hashlib
from datetime import datetime
from decimal import Decimal
from typing import Any

import msgspec
from django.http import HttpRequest, HttpResponse

from ladder.core.values import Entry, Pool
from omniroute_admin.common.core.numbers import percent_number, usd_text
from omniroute_admin.common.core.waits import seconds_until

ENCODER = msgspec.json.Encoder()
_AFTER_INSTANT = b',"valid_until":'
_CANDIDATES = b',"candidates":['
_READING = ("GET", "HEAD")


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
    return Told(body, _weak(same.hexdigest()), pool.revision, None if pool.empty is None else pool.empty.returns_at)


class Fragment(msgspec.Struct, frozen=True):
    """One entry as it goes out, and what stands for it in the ETag."""

    entry: Entry
    raw: msgspec.Raw
    digest: bytes


Fragments = dict[int, Fragment]
"""By the identity of the entry, which each fragment holds on to."""


def tell_by_entries(pool: Pool, known: Fragments) -> tuple[Told, Fragments]:
    """Return what `tell` does, encoding and hashing only entries that are not known, and the fragments of this pool.

    The ETag is another one than `tell` gives, and as much one of the content alone: every process gives the same.
    """
    pieces = [known.get(id(entry)) or _fragment(entry) for entry in pool.candidates]
    body = ENCODER.encode(msgspec.structs.replace(pool, candidates=[one.raw for one in pieces]))
    start = body.index(_CANDIDATES, body.index(_AFTER_INSTANT))
    end = start + len(_CANDIDATES) + sum(len(one.raw) for one in pieces)
    same = hashlib.sha256(pool.id.encode())
    same.update(body[body.index(_AFTER_INSTANT) : start])
    same.update(b"".join(one.digest for one in pieces))
    same.update(body[end:])
    told = Told(body, _weak(same.hexdigest()), pool.revision, None if pool.empty is None else pool.empty.returns_at)
    return told, {id(one.entry): one for one in pieces}


def _fragment(entry: Entry) -> Fragment:
    raw = ENCODER.encode(entry)
    return Fragment(entry, msgspec.Raw(raw), hashlib.sha256(raw).digest())


def _weak(digest: str) -> str:
    return f'W/"{digest[:32]}"'


def pool_response(*, request: HttpRequest, told: Told, now: datetime) -> HttpResponse:
    """Return the answer of a pool call; on GET and HEAD a matching `If-None-Match` gives 304."""
    if request.method in _READING and matches(request.headers.get("If-None-Match"), told.etag):
        response = HttpResponse(status=304)
        del response["Content-Type"]  # it has no content
    else:
        response = HttpResponse(told.body, content_type="application/json")
    response["ETag"] = told.etag
    response["Cache-Control"] = "private, no-cache"
    response["X-Ladder-Revision"] = told.revision
    if told.returns_at is not None:
        response["Retry-After"] = str(seconds_until(instant=told.returns_at, now=now))
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
