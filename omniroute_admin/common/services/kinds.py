"""What of this app the one history keeps: API keys (SPEC 3, 4)."""

from typing import Any

from omniroute_admin.common.core.changes import nothing_is
from omniroute_admin.common.kinds import Kind, Told, register_kind
from omniroute_admin.common.models import ApiKey


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
                "expires_at": Told("expires", nothing_is("never")),
                "revoked_at": Told("revoked", nothing_is("no")),
            },
            name=lambda version: f"{version.name} ({version.prefix}…)",
            searched=("name", "prefix"),
            did=_did,
            kept="A key is not rolled back: what it may is fixed when it is made, and revoked stays revoked.",
        )
    )


def _did(version: Any, before: Any | None) -> str | None:
    was_revoked = before is not None and before.revoked_at is not None
    return "revoked" if version.revoked_at is not None and not was_revoked else None
