"""Canonical names: case, blanks and aliases are resolved on the way in, never later (SPEC 1)."""

import re
from collections.abc import Mapping

NOAUTH = "noauth"
"""The reserved connection id of the keyless path; one per provider, always known."""

CONNECTION_ID_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._:@+\-]{0,127}\Z"
PROVIDER_PATTERN = r"^[a-z0-9][a-z0-9._:@+\-]{0,127}\Z"
AUTH_TYPE_PATTERN = r"^[a-z0-9][a-z0-9._\-]{0,31}\Z"

_CONNECTION_ID = re.compile(CONNECTION_ID_PATTERN)
_PROVIDER = re.compile(PROVIDER_PATTERN)
_AUTH_TYPE = re.compile(AUTH_TYPE_PATTERN)


def canonical_name(raw: str) -> str:
    """Return the name without surrounding blanks and in lower case; aliases are not looked at."""
    return raw.strip().lower()


def canonical_provider(*, raw: str, aliases: Mapping[str, str]) -> str:
    """Return the provider that `raw` means: case and blanks folded, then one alias step (SPEC 1)."""
    name = canonical_name(raw)
    return aliases.get(name, name)


def is_provider(name: str) -> bool:
    """Tell whether a canonical name can be a provider's id."""
    return _PROVIDER.match(name) is not None


def is_auth_type(name: str) -> bool:
    """Tell whether a canonical name can be an auth type."""
    return _AUTH_TYPE.match(name) is not None


def is_connection_id(raw: str) -> bool:
    """Tell whether `raw` is a connection id (SPEC 1): at most 128 of letters, digits and `._:@+-`."""
    return _CONNECTION_ID.match(raw) is not None
