"""Rotating a key: a new one takes its place, and the old one goes on beside it for a while (SPEC 4)."""

from datetime import datetime, timedelta

from omniroute_admin.common.core.keys import MOST_OVERLAP
from omniroute_admin.common.errors import BadRequest, Conflict, field
from omniroute_admin.common.history import Actor, stamp
from omniroute_admin.common.models import ApiKey
from omniroute_admin.common.selectors.key_list import LIVE, state_of_key
from omniroute_admin.common.services.keys import create_key
from omniroute_admin.common.services.revision import deciding_write


def rotate_key(
    *, key_id: int, overlap: timedelta, anyway: bool, actor: Actor, reason: str, now: datetime
) -> tuple[ApiKey, ApiKey, str]:
    """Return the old row, the new one, and the text of the new key, which is kept nowhere.

    The new key has the name, scopes and limit of the old one, and lasts as long from now on as the old one was given.
    The old one goes on for `overlap`, and never longer than it would have. `anyway` rotates one that has ended or was
    rotated before: that gives it no more time.

    Raises:
        BadRequest: the overlap is negative or longer than MOST_OVERLAP.
        Conflict: the key has ended, or was rotated before, and `anyway` was not said.
        Forbidden: the old key has a scope that who rotates it has not.
    """
    if not timedelta(0) <= overlap <= MOST_OVERLAP:
        most = MOST_OVERLAP // timedelta(hours=1)
        raise BadRequest("The key stays.", errors=[field("overlap", f"An overlap is 0 to {most} hours")])
    with deciding_write() as write:
        write.touched = []
        old = ApiKey.objects.select_for_update(of=("self",)).select_related("replaced_by").get(pk=key_id)
        if not anyway:
            _require_fresh(old, now=now)
        new, secret = create_key(
            name=old.name,
            scopes=old.scopes,
            expires_at=_expiry(old, now=now),
            calls_per_minute=old.calls_per_minute,
            actor=actor,
            reason=f"Replaces {old.prefix}…: {reason}",
            now=now,
        )
        _replace(old, new, until=now + overlap)
        stamp(instance=old, actor=actor, reason=f"Replaced by {new.prefix}…: {reason}", now=now)
        old.save(update_fields=["replaced_by", "replaced_until"])
    return old, new, secret


def why_not_rotated(*, key: ApiKey, now: datetime) -> str:
    """Return what is to be known before a key is rotated that has ended or was rotated before; else nothing."""
    state = state_of_key(key=key, now=now)
    if key.replaced_by is not None:
        end = "" if key.replaced_until is None else f", {'went' if key.replaced_until <= now else 'goes'} on until "
        until = "" if key.replaced_until is None else f"{key.replaced_until:%Y-%m-%d %H:%M} UTC"
        return f"{key.name} was replaced by {key.replaced_by.prefix}… already{end}{until}."
    return "" if state == LIVE else f"{key.name} ({key.prefix}…) is {state}."


def _require_fresh(key: ApiKey, *, now: datetime) -> None:
    known = why_not_rotated(key=key, now=now)
    if known:
        raise Conflict(f"{known} Say that it is to be rotated all the same, or make a new key.")


def _expiry(key: ApiKey, *, now: datetime) -> datetime | None:
    return None if key.expires_at is None else now + (key.expires_at - key.created_at)


def _replace(old: ApiKey, new: ApiKey, *, until: datetime) -> None:
    old.replaced_by = new
    old.replaced_until = min(until, old.replaced_until or until, old.expires_at or until)
