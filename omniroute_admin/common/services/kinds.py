"""What of this app the one history keeps: API keys and accounts (SPEC 3, 4, 5)."""

from collections.abc import Iterator
from typing import Any

from omniroute_admin.common.core.changes import FieldChange, nothing_is, tell
from omniroute_admin.common.kinds import Kind, Told, register_kind
from omniroute_admin.common.models import ApiKey, UserVersion


def register_kinds() -> None:
    """Register them; called when the app is ready."""
    register_kind(
        Kind(
            key="key",
            word="key",
            model=ApiKey.history.model,
            fields={
                "name": Told("name"),
                "prefix": Told("prefix"),
                "scopes": Told("scopes"),
                "granted": Told("may now"),
                "calls_per_minute": Told("calls a minute", nothing_is("no limit")),
                "expires_at": Told("expires", nothing_is("never")),
                "replaced_until": Told("replaced, goes on until", nothing_is("no")),
                "revoked_at": Told("revoked", nothing_is("no")),
            },
            name=lambda version: f"{version.name} ({version.prefix}…)",
            searched=("name", "prefix"),
            did=_did,
            kept="A key is not rolled back: it is edited on its page, and revoked stays revoked.",
        )
    )

    register_kind(
        Kind(
            key="user",
            word="user",
            model=UserVersion,
            fields={
                "username": Told("user name"),
                "email": Told("e-mail"),
                "roles": Told("roles", lambda roles: tell(roles) if roles else "no role"),
                "is_active": Told("active"),
                "is_superuser": Told("superuser"),
            },
            name=lambda version: str(version.username),
            searched=("username", "email"),
            did=_user_did,
            more=_new_password,
            kept="An account is not rolled back: roles are given and taken in the admin, under Users.",
        )
    )


def _user_did(version: Any, before: Any | None) -> str | None:
    if version.act and version.history_type == "~":
        return str(version.act)
    return "password set" if version.password_set and version.history_type == "~" else None


def _new_password(version: Any, before: Any | None) -> Iterator[FieldChange]:
    if version.password_set and version.history_type == "~":
        yield FieldChange("password", "password", "not told", "set anew")


def _did(version: Any, before: Any | None) -> str | None:
    if version.revoked_at is not None and (before is None or before.revoked_at is None):
        return "revoked"
    is_rotated = before is not None and version.replaced_by_id != before.replaced_by_id
    return "rotated" if is_rotated else None
