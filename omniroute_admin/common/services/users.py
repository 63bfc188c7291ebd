"""Accounts and their roles: what the history keeps of them, and what nobody may do (SPEC 3, 5)."""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db.models import Q

from omniroute_admin.common.core.keys import blotted
from omniroute_admin.common.core.roles import ADMINISTRATOR, ROLES, rights_of_roles
from omniroute_admin.common.errors import Conflict, Forbidden
from omniroute_admin.common.history import LONGEST_REASON, Actor
from omniroute_admin.common.models import UserVersion
from omniroute_admin.common.scopes import rights_of_user
from omniroute_admin.common.services.key_grants import regrant_keys
from omniroute_admin.common.services.revision import deciding_write

_TRACKED = ("username", "email", "is_active", "is_superuser")
_PERMITS = ("is_active", "is_superuser", "roles")


def note_user(
    *,
    user: Any,
    actor: Actor,
    reason: str,
    now: datetime,
    password_set: bool = False,
    is_deleted: bool = False,
    act: str = "",
) -> None:
    """Write a version of an account where it differs from the last one; permissions that differ move the revision.

    What one act (same instant, same actor) writes in several steps is one version. `act` says what was done that no
    column tells, as `second factor removed`; it makes a version by itself.
    """
    with deciding_write() as write:
        last = UserVersion.objects.filter(id=user.pk).order_by("-history_id").first()
        said = _said(user, is_deleted=is_deleted)
        is_same = last is not None and all(getattr(last, name) == value for name, value in said.items())
        # A reading of one index where nothing differs: it also mends what a bare statement in a shell left behind.
        moved = regrant_keys(maker_ids=[user.pk], actor=actor, reason=reason, now=now, gone=is_deleted)
        differs = last is None or any(getattr(last, name) != said[name] for name in _PERMITS)
        write.changed = is_deleted or differs or bool(moved)
        if is_same and not password_set and not is_deleted and not act:
            return
        letter = "-" if is_deleted else "~" if last else "+"
        row = UserVersion(id=user.pk, history_type=letter)
        if last is not None and not is_deleted and (last.history_date, last.history_actor) == (now, actor.name):
            row = last
        for name, value in said.items():
            setattr(row, name, value)
        row.password_set, row.act = row.password_set or password_set, act or row.act
        row.history_date, row.history_actor, row.history_user_id = now, actor.name, actor.user_id
        row.history_change_reason = blotted(reason)[:LONGEST_REASON] or None
        row.save()


def lock_administrators() -> None:
    """Let who changes accounts go one after the other, to the end of the transaction."""
    list(Group.objects.select_for_update().filter(name=ADMINISTRATOR))


def require_administrator() -> None:
    """Check that somebody is left who may give roles; to be called after the change, under `lock_administrators`.

    Raises:
        Conflict: nobody is.
    """
    may = Q(is_superuser=True) | Q(groups__name=ADMINISTRATOR)
    if not get_user_model()._default_manager.filter(may, is_active=True).exists():
        raise Conflict("Nothing was changed: this would leave nobody who may give roles. Name another one first.")


def check_giving(*, giver: Any, user: Any, roles: Collection[str], is_superuser: bool) -> None:
    """Check that nobody gives more than they have, nor works on an account that may more.

    `user` is the account as it is stored, or a new one.

    Raises:
        Forbidden: says what is too much.
    """
    if giver.is_superuser:
        return
    if user.is_superuser or is_superuser:
        raise Forbidden("Only a superuser makes, changes or ends a superuser.")
    had = _roles_of(user) if user.pk else []
    held = rights_of_user(giver)
    too_much = [name for name in roles if name not in had and not rights_of_roles([name]) <= held]
    if too_much:
        raise Forbidden(f"Nobody gives more than they have: {', '.join(sorted(too_much))}.")


def _said(user: Any, *, is_deleted: bool) -> dict[str, Any]:
    roles = [] if is_deleted else _roles_of(user)
    return {name: getattr(user, name) for name in _TRACKED} | {"roles": roles}


def _roles_of(user: Any) -> list[str]:
    names = set(user.groups.order_by().values_list("name", flat=True))
    return [*(name for name in ROLES if name in names), *sorted(names - set(ROLES))]
