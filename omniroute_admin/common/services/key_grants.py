"""A key never grants more than its maker has, at any time (SPEC 4): what that is, kept on the key's row.

Whoever makes or edits a key holds the row of their account to the end of the transaction, and whoever changes what an
account may does so before they look at its keys: of the two the later one sees what the earlier one did.
"""

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any

from django.contrib.auth import get_user_model

from omniroute_admin.common.core.keys import granted_of
from omniroute_admin.common.errors import Forbidden
from omniroute_admin.common.history import Actor, stamp
from omniroute_admin.common.models import ApiKey
from omniroute_admin.common.scopes import ALL_SCOPES, NO_SCOPES, SCOPES, scopes_of_user
from omniroute_admin.common.services.revision import deciding_write


def check_within(*, actor: Actor, scopes: Collection[str]) -> None:
    """Check that somebody gives a key no more than they have; a command is trusted.

    Raises:
        Forbidden: names the scopes that are too much.
    """
    held = ALL_SCOPES if actor.user_id is None else _held([actor.user_id]).get(actor.user_id, NO_SCOPES)
    too_much = [scope for scope in SCOPES if scope in scopes and scope not in held]
    if too_much:
        raise Forbidden(f"Nobody gives a key more than they have: {', '.join(too_much)}.", code="beyond_own_rights")


def regrant_keys(
    *, maker_ids: Collection[int] | None, actor: Actor, reason: str, now: datetime, gone: bool = False
) -> int:
    """Bring what the keys of these makers may in line with what they may now; None is every maker.

    Returns how many keys changed, each with a version in the history. `gone`: the accounts are being deleted.
    """
    with deciding_write() as write:
        keys = ApiKey.objects.filter(maker__isnull=False) if maker_ids is None else _keys_of(maker_ids)
        # Of accounts without a key too: one that is just being made becomes visible once the account's row is held.
        makers = set(keys.values_list("maker_id", flat=True)) if maker_ids is None else maker_ids
        held = {} if gone else _held(makers)
        changed = [_regrant(key, held.get(key.maker_id, NO_SCOPES)) for key in keys.select_for_update().order_by("pk")]
        found = [key for key in changed if key is not None]
        for key in found:
            _keep(key, actor=actor, reason=reason, now=now)
        write.touched = []
        write.changed = bool(found)
    return len(found)


def _keys_of(maker_ids: Collection[int]) -> Any:
    return ApiKey.objects.filter(maker_id__in=maker_ids)


def _held(user_ids: Iterable[int | None]) -> dict[int | None, frozenset[str]]:
    """Return the scopes of accounts, read anew; their rows stay locked to the end of the transaction."""
    users = get_user_model()._default_manager.filter(pk__in=list(user_ids)).order_by("pk")
    return {user.pk: scopes_of_user(user) for user in users.select_for_update(no_key=True)}


def _regrant(key: ApiKey, held: frozenset[str]) -> ApiKey | None:
    """Set what a key may; None where it may that already."""
    granted = granted_of(scopes=key.scopes, held=held)
    if granted == key.granted:
        return None
    key.granted = granted
    return key


def _keep(key: ApiKey, *, actor: Actor, reason: str, now: datetime) -> None:
    """Save a key; what one act (same instant, same actor) does in several steps is one version, or none at all."""
    why = f"Its maker's rights changed: {reason}" if reason else "Its maker's rights changed."
    versions: list[Any] = list(ApiKey.history.filter(id=key.pk).order_by("-history_id")[:2])
    if versions and _act_of(versions[0]) == (now, actor.name, why):
        versions.pop(0).delete()
        if versions and versions[0].granted == key.granted:
            ApiKey.objects.filter(pk=key.pk).update(granted=key.granted)
            return
    stamp(instance=key, actor=actor, reason=why, now=now)
    key.save(update_fields=["granted"])


def _act_of(version: Any) -> tuple[datetime, str, str]:
    return version.history_date, version.history_actor, version.history_change_reason
