"""What a caller may do: the scopes of keys and of signed-in users (SPEC 4)."""

from typing import Any

from omniroute_admin.common.core.roles import ADMINISTRATOR, RIGHTS, ROLES, rights_of_roles

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


def rights_of_user(user: Any) -> frozenset[str]:
    """Return what a signed-in user may do: a superuser everything, others what their roles give (SPEC 5).

    Asked again for the same user object, nothing is read again.
    """
    if not user.is_active:
        return NO_SCOPES
    if user.is_superuser:
        return RIGHTS
    return rights_of_roles(_group_names(user))


def roles_of_user(user: Any) -> tuple[str, ...]:
    """Return the roles of a signed-in user, the one that may least first; a superuser is an administrator."""
    if user.is_superuser:
        return (ADMINISTRATOR,)
    names = _group_names(user)
    return tuple(name for name in ROLES if name in names)


def _group_names(user: Any) -> frozenset[str]:
    """Return the groups of a user, kept on the user object: rights and roles of one request ask once."""
    kept: frozenset[str] | None = getattr(user, "_group_names", None)
    if kept is None:
        kept = frozenset(user.groups.order_by().values_list("name", flat=True)) if user.pk else frozenset()
        user._group_names = kept
    return kept


def scopes_of_user(user: Any) -> frozenset[str]:
    """Return what a signed-in user may do through the API: the scopes among their rights (SPEC 4)."""
    return rights_of_user(user) & ALL_SCOPES
