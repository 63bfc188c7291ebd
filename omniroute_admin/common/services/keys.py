"""Making and revoking API keys (SPEC 4). Both move the revision, so that every process sees them at once."""

import secrets
from collections.abc import Iterator, Sequence
from datetime import datetime

from omniroute_admin.common.core.keys import PREFIX_LENGTH, hash_secret
from omniroute_admin.common.errors import BadRequest, FieldError, field
from omniroute_admin.common.history import Actor, stamp
from omniroute_admin.common.models import ApiKey
from omniroute_admin.common.scopes import SCOPES, unknown_scopes
from omniroute_admin.common.services.revision import deciding_write

_LONGEST_NAME = 100


def create_key(
    *, name: str, scopes: Sequence[str], expires_at: datetime | None, actor: Actor, reason: str, now: datetime
) -> tuple[ApiKey, str]:
    """Make a key and return its row and its text; the text is kept nowhere, so this is the one time it is seen.

    Raises:
        BadRequest: no name, no scope, an unknown scope, or an expiry that has passed.
    """
    errors = list(_problems(name=name.strip(), scopes=scopes, expires_at=expires_at, now=now))
    if errors:
        raise BadRequest("The key cannot be made.", errors=errors)
    secret = f"orl_{secrets.token_urlsafe(32)}"
    key = ApiKey(
        name=name.strip(),
        prefix=secret[:PREFIX_LENGTH],
        secret_hash=hash_secret(secret),
        scopes=[scope for scope in SCOPES if scope in scopes],
        created_at=now,
        made_by=actor.name,
        expires_at=expires_at,
    )
    with deciding_write() as write:
        write.touched = []  # what a pool holds does not depend on keys
        stamp(instance=key, actor=actor, reason=reason, now=now)
        key.save(force_insert=True)
    return key, secret


def revoke_key(*, key: ApiKey, actor: Actor, reason: str, now: datetime) -> ApiKey:
    """Revoke a key from now on and return its row; one that is revoked already stays as it is."""
    with deciding_write() as write:
        write.touched = []
        kept = ApiKey.objects.select_for_update().get(pk=key.pk)
        if kept.revoked_at is not None:
            write.changed = False
            return kept
        kept.revoked_at = now
        stamp(instance=kept, actor=actor, reason=reason, now=now)
        kept.save(update_fields=["revoked_at"])
    return kept


def _problems(*, name: str, scopes: Sequence[str], expires_at: datetime | None, now: datetime) -> Iterator[FieldError]:
    if not name:
        yield field("name", "Give the key a name", code="missing")
    if len(name) > _LONGEST_NAME:
        yield field("name", f"A name has at most {_LONGEST_NAME} characters")
    if not scopes:
        yield field("scopes", f"Give at least one scope of: {', '.join(SCOPES)}", code="missing")
    if unknown_scopes(list(scopes)):
        yield field("scopes", f"Unknown scope. There are: {', '.join(SCOPES)}")
    if expires_at is not None and expires_at <= now:
        yield field("expires_at", "The expiry has passed already")
