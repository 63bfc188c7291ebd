"""Making, editing and revoking API keys (SPEC 4). Each moves the revision, so that every process sees it at once."""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from omniroute_admin.common.core.keys import MOST_CALLS_PER_MINUTE, PREFIX_LENGTH, hash_secret, holds_secret
from omniroute_admin.common.errors import BadRequest, Conflict, FieldError, field
from omniroute_admin.common.history import Actor, stamp
from omniroute_admin.common.models import ApiKey
from omniroute_admin.common.scopes import SCOPES, unknown_scopes
from omniroute_admin.common.selectors.key_list import ENDED_STATES, seen_of_key, state_of_key
from omniroute_admin.common.services.key_grants import check_within
from omniroute_admin.common.services.revision import deciding_write

_LONGEST_NAME = 100
_EDITED = ["name", "scopes", "granted", "maker", "calls_per_minute", "expires_at"]


def create_key(
    *,
    name: str,
    scopes: Sequence[str],
    expires_at: datetime | None,
    actor: Actor,
    reason: str,
    now: datetime,
    calls_per_minute: int | None = None,
) -> tuple[ApiKey, str]:
    """Make a key and return its row and its text; the text is kept nowhere, so this is the one time it is seen.

    Raises:
        BadRequest: no name, no scope, an unknown scope, a limit out of range, or an expiry that has passed.
        Forbidden: a scope that its maker has not.
    """
    limit, is_past = calls_per_minute, expires_at is not None and expires_at <= now
    _refuse("The key cannot be made.", _problems(name=name.strip(), scopes=scopes, limit=limit, is_past=is_past))
    secret = f"orl_{secrets.token_urlsafe(32)}"
    given = [scope for scope in SCOPES if scope in scopes]
    key = ApiKey(
        name=name.strip(),
        prefix=secret[:PREFIX_LENGTH],
        secret_hash=hash_secret(secret),
        scopes=given,
        granted=given,
        calls_per_minute=calls_per_minute,
        created_at=now,
        made_by=actor.name,
        maker_id=actor.user_id,
        expires_at=expires_at,
    )
    with deciding_write() as write:
        write.touched = []  # what a pool holds does not depend on keys
        check_within(actor=actor, scopes=scopes)
        stamp(instance=key, actor=actor, reason=reason, now=now)
        key.save(force_insert=True)
    return key, secret


def edit_key(
    *,
    key_id: int,
    name: str,
    scopes: Sequence[str],
    calls_per_minute: int | None,
    expires_at: datetime | None,
    seen: Mapping[str, str],
    actor: Actor,
    reason: str,
    now: datetime,
) -> ApiKey:
    """Change a key and return its row. Who edits it answers for it from now on: they become its maker.

    `seen` is the key as it stood when its form was opened (`seen_of_key`).

    Raises:
        BadRequest: as in `create_key`; an expiry that has passed may stay as it is.
        Conflict: the key has been revoked or replaced, or another changed it meanwhile.
        Forbidden: a scope that the editor has not.
    """
    with deciding_write() as write:
        write.touched = []
        key = ApiKey.objects.select_for_update().get(pk=key_id)
        _require_editable(key, now=now, seen=seen)
        is_past = expires_at is not None and expires_at <= now and expires_at != key.expires_at
        limit = calls_per_minute
        _refuse("The key stays as it is.", _problems(name=name.strip(), scopes=scopes, limit=limit, is_past=is_past))
        check_within(actor=actor, scopes=scopes)
        key.name, key.calls_per_minute, key.expires_at = name.strip(), calls_per_minute, expires_at
        key.scopes = key.granted = [scope for scope in SCOPES if scope in scopes]
        key.maker_id = actor.user_id
        stamp(instance=key, actor=actor, reason=reason, now=now)
        key.save(update_fields=_EDITED)
    return key


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


def _require_editable(key: ApiKey, *, now: datetime, seen: Mapping[str, str]) -> None:
    state = state_of_key(key=key, now=now)
    if state in ENDED_STATES:
        raise Conflict(f"{key.name} is {state} and stays so; there is nothing to change in it.")
    if dict(seen) != seen_of_key(key):
        raise Conflict(f"{key.name} was changed by another meanwhile. Open it again and see what it is now.")


def _refuse(detail: str, problems: Iterator[FieldError]) -> None:
    errors = list(problems)
    if errors:
        raise BadRequest(detail, errors=errors)


def _problems(*, name: str, scopes: Sequence[str], limit: int | None, is_past: bool) -> Iterator[FieldError]:
    if not name:
        yield field("name", "Give the key a name", code="missing")
    if len(name) > _LONGEST_NAME:
        yield field("name", f"A name has at most {_LONGEST_NAME} characters")
    if holds_secret(name):
        yield field("name", "This is the text of a key, no name")
    if not scopes:
        yield field("scopes", f"Give at least one scope of: {', '.join(SCOPES)}", code="missing")
    if unknown_scopes(list(scopes)):
        yield field("scopes", f"Unknown scope. There are: {', '.join(SCOPES)}")
    if limit is not None and not 1 <= limit <= MOST_CALLS_PER_MINUTE:
        yield field("calls_per_minute", f"A limit is 1 to {MOST_CALLS_PER_MINUTE} calls a minute, or none")
    if is_past:
        yield field("expires_at", "The expiry has passed already")
