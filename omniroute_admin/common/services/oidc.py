"""Accounts of people who come by single sign-on: found by their number at the provider, and by nothing else.

A mail address or a user name that an account happens to share links nobody: either may be somebody else's at the
provider. An administrator links an account that was there before, by its number there.
"""

import logging
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db import IntegrityError, transaction

from omniroute_admin.common.core.roles import ROLES
from omniroute_admin.common.core.sign_in import name_of_claims, numbered, roles_of_claims
from omniroute_admin.common.errors import BadRequest, Conflict, Forbidden, field
from omniroute_admin.common.history import Actor, stamp
from omniroute_admin.common.models_sign_in import OidcIdentity
from omniroute_admin.common.services.revision import deciding_write
from omniroute_admin.common.services.users import lock_administrators, note_user

ACTOR = Actor(name="single sign-on")
_LONGEST = 255
_LONGEST_MAIL = 254
_log = logging.getLogger("omniroute_admin.security")


def account_of_claims(*, claims: Mapping[str, Any], now: datetime) -> Any:
    """Return the account of somebody whom the provider vouches for, with the roles that its claim gives.

    Somebody new gets an account, where that is allowed, without a role unless the claim gives one.

    Raises:
        Forbidden: nobody new may come in, or the account is switched off.
    """
    try:
        return _account(claims, now=now)
    except IntegrityError:
        # The same person came in twice at once, for the first time.
        return _account(claims, now=now)


def _account(claims: Mapping[str, Any], *, now: datetime) -> Any:
    issuer, subject = settings.OIDC_ISSUER, str(claims["sub"])
    with deciding_write() as write:
        write.changed = False
        identity = OidcIdentity.objects.select_for_update().filter(issuer=issuer, subject=subject).first()
        user = _new_account(claims, now=now) if identity is None else identity.user
        if not user.is_active:
            raise Forbidden("This account is switched off.", code="inactive")
        OidcIdentity.objects.filter(issuer=issuer, subject=subject).update(used_at=now)
        write.changed = _give_roles(user, claims, now=now) or identity is None
    return user


def link(*, user: Any, subject: str, actor: Actor, reason: str, now: datetime) -> OidcIdentity:
    """Let somebody at the provider in as an account that is there already: an administrator says who they are.

    Raises:
        BadRequest: no provider is configured, or there is no such number.
        Conflict: that number is another account's.
    """
    if not settings.OIDC_ISSUER:
        raise BadRequest("No provider of single sign-on is configured.")
    if not subject or len(subject) > _LONGEST or not subject.isprintable():
        raise BadRequest("This links nobody.", errors=[field("subject", "Give the person's number at the provider.")])
    with transaction.atomic():
        if OidcIdentity.objects.filter(issuer=settings.OIDC_ISSUER, subject=subject).exists():
            raise Conflict("That number at the provider belongs to an account already.")
        made = OidcIdentity.objects.create(user=user, issuer=settings.OIDC_ISSUER, subject=subject, made_at=now)
        note_user(user=user, actor=actor, reason=reason, now=now, act="single sign-on linked")
    _log.warning("single sign-on linked: account %s, by %s", user.get_username(), actor.name)
    return made


def unlink(*, user: Any, identity_id: int, actor: Actor, reason: str, now: datetime) -> bool:
    """Undo a link, and tell whether there was one: whoever it was comes in as this account no more."""
    with transaction.atomic():
        found, _ = OidcIdentity.objects.filter(user=user, pk=identity_id).delete()
        if found:
            note_user(user=user, actor=actor, reason=reason, now=now, act="single sign-on unlinked")
    if found:
        _log.warning("single sign-on unlinked: account %s, by %s", user.get_username(), actor.name)
    return bool(found)


def _new_account(claims: Mapping[str, Any], *, now: datetime) -> Any:
    """Return a new account without a password or a role.

    Raises:
        Forbidden: nobody new may come in.
    """
    subject = str(claims["sub"])
    if not settings.OIDC_NEW_ACCOUNTS:
        raise Forbidden("Nobody new may come in by single sign-on; an administrator links an account.", code="unknown")
    if len(subject) > _LONGEST:
        raise Forbidden("The provider's number of this person is longer than can be kept.", code="unknown")
    user = get_user_model()(username=_free_name(claims), email=_mail_of(claims))
    user.set_unusable_password()
    stamp(instance=user, actor=ACTOR, reason="came in for the first time", now=now)
    user.save(force_insert=True)
    OidcIdentity.objects.create(user=user, issuer=settings.OIDC_ISSUER, subject=subject, made_at=now)
    _log.warning("account made by single sign-on: %s", user.get_username())
    return user


def _free_name(claims: Mapping[str, Any]) -> str:
    """Return a user name that nobody has, large and small letters alike."""
    users, wanted = get_user_model()._default_manager, name_of_claims(claims, issuer=settings.OIDC_ISSUER)
    number = 1
    while users.filter(username__iexact=numbered(wanted, number)).exists():
        number += 1
    return numbered(wanted, number)


def _mail_of(claims: Mapping[str, Any]) -> str:
    """Return the mail address, where the provider has checked it."""
    mail = claims.get("email")
    is_checked = claims.get("email_verified") is True and isinstance(mail, str) and len(mail) <= _LONGEST_MAIL
    return mail if is_checked and isinstance(mail, str) and mail.isprintable() else ""


def _give_roles(user: Any, claims: Mapping[str, Any], *, now: datetime) -> bool:
    """Give and take the roles that the mapping speaks of, by the claim; the others are the administrators' to give.

    Tells whether any changed. The provider's word counts even where nobody is left who may give roles: an account that
    it took the role from must not keep it.
    """
    mapped = frozenset(settings.OIDC_ROLES.values())
    if not mapped:
        return False
    lock_administrators()
    had = frozenset(user.groups.values_list("name", flat=True))
    said = roles_of_claims(claims, claim=settings.OIDC_ROLES_CLAIM, mapping=settings.OIDC_ROLES)
    wanted = (had - mapped) | frozenset(said)
    if wanted == had:
        return False
    stamp(instance=user, actor=ACTOR, reason=f"as the claim {settings.OIDC_ROLES_CLAIM} says", now=now)
    user.groups.set(_groups(wanted))
    _log.warning(
        "roles by single sign-on: account %s, now %s", user.get_username(), ", ".join(sorted(wanted)) or "none"
    )
    return True


def _groups(names: Collection[str]) -> Any:
    missing = [name for name in names if name in ROLES and not Group.objects.filter(name=name).exists()]
    Group.objects.bulk_create([Group(name=name) for name in missing], ignore_conflicts=True)
    return Group.objects.filter(name__in=names)
