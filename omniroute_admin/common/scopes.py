"""What a caller may do: the scopes of keys and of signed-in users (SPEC 4)."""

from typing import Any

SCOPES = (
    "pools:read",
    "connections:read",
    "connections:write",
    "catalog:read",
    "catalog:write",
    "settings:read",
    "settings:write",
    "telemetry:write",
    "metrics:read",
)
"""Every scope there is, in the order in which they are listed to people."""

ALL_SCOPES = frozenset(SCOPES)
NO_SCOPES: frozenset[str] = frozenset()


def unknown_scopes(scopes: list[str]) -> list[str]:
    """Return those that are no scopes, in their order."""
    return [scope for scope in scopes if scope not in ALL_SCOPES]


def scopes_of_user(user: Any) -> frozenset[str]:
    """Return what a signed-in user may do: a superuser everything, others what their role gives.

    There are no roles yet, therefore a staff user has none.
    """
    return ALL_SCOPES if user.is_active and user.is_superuser else NO_SCOPES
