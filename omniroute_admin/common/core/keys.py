"""The text of API keys: how one is recognised and hashed (SPEC 4). The text itself is never kept."""

import hashlib
import re

_SHAPE = re.compile(r"orl_[A-Za-z0-9_-]{43}\Z")
PREFIX_LENGTH = 12
"""How many first characters are kept readable, to tell keys apart."""


def is_secret(text: str) -> bool:
    """Tell whether a text has the shape of a key."""
    return _SHAPE.match(text) is not None


def hash_secret(secret: str) -> str:
    """Return what is kept of a key: SHA-256 in hex. A key is random and long, so no slow hash is needed."""
    return hashlib.sha256(secret.encode()).hexdigest()
