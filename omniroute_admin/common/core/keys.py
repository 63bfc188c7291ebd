"""The text of API keys: how one is recognised, hashed and blotted out (SPEC 4). The text itself is never kept."""

import hashlib
import re
from collections.abc import Collection
from datetime import datetime, timedelta

_SHAPE = re.compile(r"orl_[A-Za-z0-9_-]{43}\Z")
_SOMEWHERE = re.compile(r"orl_[A-Za-z0-9_-]{43}")
# Shorter ones too: a key that was cut off is still most of a key. A prefix alone (12 characters) stays readable.
_TOO_MUCH = re.compile(r"(orl_[A-Za-z0-9_-]{4})[A-Za-z0-9_-]{5,}")
PREFIX_LENGTH = 12
"""How many first characters are kept readable, to tell keys apart."""
MOST_CALLS_PER_MINUTE = 100_000
MOST_OVERLAP = timedelta(days=30)
"""How long a key that was rotated may go on beside the new one."""


def is_secret(text: str) -> bool:
    """Tell whether a text has the shape of a key."""
    return _SHAPE.match(text) is not None


def holds_secret(text: str) -> bool:
    """Tell whether a whole key stands somewhere in a text."""
    return _SOMEWHERE.search(text) is not None


def blotted(text: str) -> str:
    """Return a text without the keys in it: of each only the first 8 characters are left."""
    return _TOO_MUCH.sub(r"\1...", text) if "orl_" in text else text


def hash_secret(secret: str) -> str:
    """Return what is kept of a key: SHA-256 in hex. A key is random and long, so no slow hash is needed."""
    return hashlib.sha256(secret.encode()).hexdigest()


def end_of(*, expires_at: datetime | None, replaced_until: datetime | None) -> datetime | None:
    """Return when a key ends by itself: by its expiry or as it was rotated, whichever comes first; None for never."""
    return min((at for at in (expires_at, replaced_until) if at is not None), default=None)


def granted_of(*, scopes: Collection[str], held: Collection[str] | None) -> list[str]:
    """Return which of the scopes asked for a key it has while its maker has `held` (None: the maker is trusted)."""
    return [scope for scope in scopes if held is None or scope in held]
