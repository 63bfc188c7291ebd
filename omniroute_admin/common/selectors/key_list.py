"""Keys as a page lists them: which open anything now (SPEC 4, 5)."""

from datetime import datetime

from django.db.models import Q, QuerySet

from omniroute_admin.common.models import ApiKey

LIVE, EXPIRED, REVOKED = "live", "expired", "revoked"
KEY_STATES = (LIVE, EXPIRED, REVOKED)


def keys_in(*, state: str, now: datetime) -> QuerySet[ApiKey]:
    """Return the keys of a state at an instant, the newest first; every key where the state is none of KEY_STATES."""
    expired = Q(revoked_at=None, expires_at__lte=now)
    states = {LIVE: Q(revoked_at=None) & ~expired, EXPIRED: expired, REVOKED: Q(revoked_at__isnull=False)}
    return ApiKey.objects.filter(states.get(state, Q())).defer("secret_hash")


def state_of_key(*, key: ApiKey, now: datetime) -> str:
    """Return the state of a key at an instant, one of KEY_STATES; revoked goes before expired."""
    if key.revoked_at is not None:
        return REVOKED
    return EXPIRED if key.expires_at is not None and key.expires_at <= now else LIVE
