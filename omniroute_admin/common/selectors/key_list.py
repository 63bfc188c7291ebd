"""Keys as a page lists them: which open anything now (SPEC 4, 5)."""

from datetime import datetime, timedelta

from django.db.models import Q, QuerySet

from omniroute_admin.common.models import ApiKey

LIVE, EXPIRED, REPLACED, REVOKED = "live", "expired", "replaced", "revoked"
KEY_STATES = (LIVE, EXPIRED, REPLACED, REVOKED)
ENDED_STATES = frozenset({REPLACED, REVOKED})
"""What no edit brings back; an expiry can be set anew."""
UNUSED_AFTER = timedelta(days=90)


def keys_in(*, state: str, now: datetime) -> QuerySet[ApiKey]:
    """Return the keys of a state at an instant, the newest first; every key where the state is none of KEY_STATES.

    A key that was rotated is live while it goes on beside the new one.
    """
    revoked = Q(revoked_at__isnull=False)
    replaced = Q(revoked_at=None, replaced_until__isnull=False, replaced_until__lte=now)
    expired = Q(revoked_at=None, expires_at__isnull=False, expires_at__lte=now) & ~replaced
    live = Q(revoked_at=None) & ~replaced & ~expired
    states = {LIVE: live, EXPIRED: expired, REPLACED: replaced, REVOKED: revoked}
    return ApiKey.objects.filter(states.get(state, Q())).select_related("replaced_by").defer("secret_hash", _NEW_HASH)


_NEW_HASH = "replaced_by__secret_hash"


def state_of_key(*, key: ApiKey, now: datetime) -> str:
    """Return the state of a key at an instant, one of KEY_STATES; the last act on it goes before its expiry."""
    if key.revoked_at is not None:
        return REVOKED
    if key.replaced_until is not None and key.replaced_until <= now:
        return REPLACED
    return EXPIRED if key.expires_at is not None and key.expires_at <= now else LIVE


def is_unused(*, key: ApiKey, now: datetime) -> bool:
    """Tell whether nobody has called with a key for UNUSED_AFTER: since its last use, or since it was made."""
    return now - (key.last_used_at or key.created_at) >= UNUSED_AFTER


def seen_of_key(key: ApiKey) -> dict[str, str]:
    """Return what of a key a form shows that edits it, in words, to notice that another changed it meanwhile."""
    expires = "never" if key.expires_at is None else key.expires_at.isoformat()
    values = {"scopes": " ".join(key.scopes), "granted": " ".join(key.granted), "expires": expires}
    return {"name": key.name, "limit": str(key.calls_per_minute), "maker": str(key.maker_id), **values}
