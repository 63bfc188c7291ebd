"""Which key a caller holds, in one cheap read (SPEC 4)."""

import hmac
from datetime import datetime
from typing import Any

import msgspec

from omniroute_admin.common.core.keys import PREFIX_LENGTH, end_of, hash_secret, is_secret
from omniroute_admin.common.models import ApiKey
from omniroute_admin.common.scopes import ALL_SCOPES
from omniroute_admin.common.selectors.compiled import Compiled
from omniroute_admin.common.selectors.revision import current_revision

_MOST_REMEMBERED = 1_000
_FIELDS = (
    "id", "name", "prefix", "secret_hash", "granted", "scopes", "calls_per_minute", "expires_at", "replaced_until",
)  # fmt: skip


class KeyFacts(msgspec.Struct, frozen=True):
    """A key that was not revoked at the revision it was read at, without its secret.

    `scopes` are those it may use, `lost` those it was given that its maker has no more. It ends by itself at `ends_at`.
    """

    id: int
    name: str
    prefix: str
    scopes: frozenset[str]
    lost: frozenset[str]
    calls_per_minute: int | None
    ends_at: datetime | None
    revision: int


_KEYS = Compiled(
    lambda digests: ApiKey.objects.filter(secret_hash__in=digests, revoked_at=None).order_by().values_list(*_FIELDS)
)
_remembered: dict[str, KeyFacts] = {}


def live_key(*, secret: str, now: datetime) -> KeyFacts | None:
    """Return the key of that text; None where it is malformed, unknown, revoked or expired at `now`.

    What a process remembers of a key counts only while the revision is the one it was read at: a key revoked by
    another process is refused at its very next call.
    """
    if not is_secret(secret):
        return None
    digest = hash_secret(secret)
    revision = current_revision()  # before the row: what is remembered is then never older than its revision
    known = _remembered.get(digest)
    facts = known if known is not None and known.revision == revision else _read(digest, revision)
    if facts is None or (facts.ends_at is not None and facts.ends_at <= now):
        return None
    return facts


def forget_keys() -> None:
    """Drop what this process remembers of keys; tests need it, for their databases share revisions."""
    _remembered.clear()


def _read(digest: str, revision: int) -> KeyFacts | None:
    """Read the unrevoked key of a hash and remember it; unknown ones are not remembered, there are too many."""
    row = next(iter(_KEYS.rows([digest])), None)
    if row is None or not hmac.compare_digest(row[3], digest):
        _remembered.pop(digest, None)
        return None
    if len(_remembered) >= _MOST_REMEMBERED:
        _remembered.clear()
    facts = _remembered[digest] = _facts(row, revision)
    return facts


def _facts(row: tuple[Any, ...], revision: int) -> KeyFacts:
    identity, name, prefix, _, granted, scopes, limit, expires_at, replaced_until = row
    may = ALL_SCOPES & set(granted)
    return KeyFacts(
        id=identity,
        name=name,
        prefix=prefix[:PREFIX_LENGTH],
        scopes=may,
        lost=(ALL_SCOPES & set(scopes)) - may,
        calls_per_minute=limit,
        ends_at=end_of(expires_at=expires_at, replaced_until=replaced_until),
        revision=revision,
    )
