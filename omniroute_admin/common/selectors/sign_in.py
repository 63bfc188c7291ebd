"""What pages tell of an account's ways in: where it is signed in, and who it is at providers."""

from datetime import datetime
from typing import Any

import msgspec

from omniroute_admin.common.models_sign_in import OidcIdentity, Session
from omniroute_admin.common.sessions import live_sessions, stored_name

_MOST_SESSIONS = 50


class SignedIn(msgspec.Struct, frozen=True):
    """One place where an account is signed in; `is_this` is the browser that asks."""

    way: str
    address: str
    agent: str
    began_at: datetime | None
    seen_at: datetime | None
    is_this: bool


def places_of(*, user_id: int, this: str | None) -> list[SignedIn]:
    """Return where an account is signed in, the newest first; `this` is the session that asks."""
    return [_place(row, this) for row in live_sessions(user_id=user_id)[:_MOST_SESSIONS]]


def identities_of(*, user: Any) -> list[OidcIdentity]:
    """Return who an account is at providers."""
    return list(OidcIdentity.objects.filter(user=user))


def _place(row: Session, this: str | None) -> SignedIn:
    return SignedIn(
        way=row.way,
        address=row.address,
        agent=row.agent,
        began_at=row.signed_in_at,
        seen_at=row.seen_at,
        is_this=this is not None and row.pk == stored_name(this),
    )
