"""The roles of people and what each may do (SPEC 5). A right is a scope of the API, or one that only pages have."""

from collections.abc import Iterable, Mapping

READS = frozenset({"pools:read", "connections:read", "catalog:read", "settings:read"})

AUDIT_READ = "audit:read"
KEYS_WRITE = "keys:write"
USERS_WRITE = "users:write"

PAGE_RIGHTS = frozenset({AUDIT_READ, KEYS_WRITE, USERS_WRITE})
"""What no key can be given: reading who changed what, making keys, giving roles."""

VIEWER, OPERATOR, CURATOR, AUDITOR, ADMINISTRATOR = "viewer", "operator", "curator", "auditor", "administrator"

ROLES: Mapping[str, frozenset[str]] = {
    VIEWER: READS,
    OPERATOR: READS | {"connections:write", "settings:write", "telemetry:write", "metrics:read", AUDIT_READ},
    CURATOR: READS | {"catalog:write", AUDIT_READ},
    AUDITOR: READS | {"metrics:read", AUDIT_READ},
    ADMINISTRATOR: READS
    | {"connections:write", "catalog:write", "settings:write", "telemetry:write", "metrics:read"}
    | PAGE_RIGHTS,
}
"""What each role may; somebody with several may what any of them may."""

RIGHTS = frozenset().union(*ROLES.values())


def rights_of_roles(names: Iterable[str]) -> frozenset[str]:
    """Return what these roles may together; a name that is no role may nothing."""
    return frozenset().union(*(ROLES.get(name, frozenset()) for name in names))


def roles_with(right: str) -> tuple[str, ...]:
    """Return the roles that have a right, the one that may least first."""
    return tuple(name for name in ROLES if right in ROLES[name])


def role_words(right: str) -> str:
    """Return the roles that have a right, as a sentence names them: `operator or administrator`."""
    names = roles_with(right)
    return " or ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
