"""Whoever changes an account, by a page, a command or in a shell: the history hears of it (SPEC 3).

Its sessions end with its password and with its being active.
"""

from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.contrib.auth.signals import user_logged_in
from django.db.models.signals import m2m_changed, post_delete, post_save, pre_delete
from simple_history.models import HistoricalRecords

from omniroute_admin.common import clock
from omniroute_admin.common.client import client_address
from omniroute_admin.common.core.sign_in import PASSWORD
from omniroute_admin.common.history import Actor
from omniroute_admin.common.services.sessions import end_sessions, note_sign_in
from omniroute_admin.common.services.users import note_user

SIGN_IN = frozenset({"last_login"})
"""What a sign-in writes: no change of the account."""

WAY = "sign_in_way"
"""What a view that lets somebody in writes on its request: by which way."""


def watch_users() -> None:
    """Connect the receivers; called when the app is ready."""
    user = get_user_model()
    post_save.connect(_saved, sender=user, dispatch_uid="common.user_saved")
    post_delete.connect(_deleted, sender=user, dispatch_uid="common.user_deleted")
    m2m_changed.connect(_roles_changed, sender=user.groups.through, dispatch_uid="common.user_roles")
    user_logged_in.connect(_signed_in, dispatch_uid="common.user_signed_in")
    pre_delete.connect(_note_members, sender=Group, dispatch_uid="common.role_members")
    post_delete.connect(_role_deleted, sender=Group, dispatch_uid="common.role_deleted")


def _saved(*, instance: Any, update_fields: Any, raw: bool, **_: Any) -> None:
    if not raw and (update_fields is None or not set(update_fields) <= SIGN_IN):
        # Django forgets the new password after the save only.
        note_user(user=instance, password_set=instance._password is not None, **_act(instance))
        if instance._password is not None or not instance.is_active:
            # Whoever changes their own password goes on: their session gets a new key right afterwards.
            end_sessions(user_id=instance.pk)


def _signed_in(*, request: Any, **_: Any) -> None:
    agent = request.headers.get("User-Agent", "")
    way = getattr(request, WAY, PASSWORD)
    note_sign_in(session=request.session, way=way, address=client_address(request), agent=agent, now=clock.now())


def _deleted(*, instance: Any, **_: Any) -> None:
    note_user(user=instance, is_deleted=True, **_act(instance))


def _roles_changed(*, instance: Any, action: str, reverse: bool, pk_set: Any, **_: Any) -> None:
    if action == "pre_clear" and reverse:
        _note_members(instance=instance)
    if not action.startswith("post_"):
        return
    for user in _whose_roles_changed(instance, action, reverse=reverse, pk_set=pk_set):
        note_user(user=user, **_act(instance))


def _whose_roles_changed(instance: Any, action: str, *, reverse: bool, pk_set: Any) -> Any:
    if not reverse:
        return [instance]
    if action == "post_clear":
        return instance._members
    return get_user_model()._default_manager.filter(pk__in=pk_set or ())


def _note_members(*, instance: Any, **_: Any) -> None:
    """Remember who has a role that is about to be taken from all of them at once."""
    instance._members = list(instance.user_set.all())


def _role_deleted(*, instance: Any, **_: Any) -> None:
    for user in instance._members:
        note_user(user=user, **_act(instance))


def _act(instance: Any) -> dict[str, Any]:
    """Return who acts, why and when: as `stamp` put it on the instance, else the signed-in user of the request."""
    stamped = getattr(instance, "_history_date", None)
    if stamped is not None:
        actor = Actor(name=instance._history_actor, user_id=instance._history_user_id)
        return {"actor": actor, "reason": instance._change_reason or "", "now": stamped}
    request = getattr(HistoricalRecords.context, "request", None)
    user: Any = getattr(request, "user", None)
    is_known = user is not None and user.is_authenticated
    actor = Actor(name=user.get_username(), user_id=user.pk) if is_known else Actor(name="")
    return {"actor": actor, "reason": "", "now": clock.now()}
