"""Who calls: the holder of a key, or a signed-in user; never both (SPEC 4)."""

from typing import Any

import msgspec
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest
from rest_framework import authentication
from rest_framework.request import Request

from omniroute_admin.common import clock
from omniroute_admin.common.backends import token_read_with
from omniroute_admin.common.errors import RateLimited, Unauthenticated
from omniroute_admin.common.history import Actor
from omniroute_admin.common.scopes import NO_SCOPES, scopes_of_user
from omniroute_admin.common.selectors.keys import live_key
from omniroute_admin.common.services.key_rate import take_call
from omniroute_admin.common.services.key_use import note_use


class Caller(msgspec.Struct, frozen=True):
    """Who calls and what they may do, and the revision that was read for this call to tell (SPEC 3).

    `lost` are the scopes that a key was given and has no more, as its maker has them no more.
    """

    actor: Actor
    scopes: frozenset[str]
    revision: int | None = None
    lost: frozenset[str] = NO_SCOPES


def caller(request: Request) -> Caller:
    """Return who calls a REST framework view.

    Raises:
        Unauthenticated: nobody known.
    """
    if isinstance(request.auth, Caller):
        return request.auth
    raise Unauthenticated("Send a key: Authorization: Bearer <key>.")


def caller_by_key(request: HttpRequest) -> Caller | None:
    """Return the holder of the key in the Authorization header; None without a Bearer header.

    A plain view may call this itself; a REST framework view has it done by `KeyAuthentication`.

    Raises:
        Unauthenticated: the header holds no live key; which way it is not live is not told.
        RateLimited: the key has had its calls of this minute.
    """
    scheme, _, secret = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
    if scheme.lower() != "bearer":
        return None
    now = clock.now()
    facts = live_key(secret=secret.strip(), now=now)
    if facts is None:
        raise Unauthenticated("The key is wrong, expired or revoked.")
    actor = Actor(name=f"key {facts.name} ({facts.prefix})")
    note_use(key_id=facts.id, now=now)
    request.called_by = actor.name  # type: ignore[attr-defined] # for the log, should the call be refused
    if facts.calls_per_minute is not None:
        wait = take_call(key_id=facts.id, limit=facts.calls_per_minute, now=now)
        if wait:
            raise RateLimited(f"This key may call {facts.calls_per_minute} times a minute.", wait=wait)
    return Caller(actor, facts.scopes, facts.revision, facts.lost)


def caller_by_user(user: Any) -> Caller:
    """Return a signed-in user as a caller, with the scopes of their role."""
    token = token_read_with(user)
    actor = Actor(name=user.get_username(), user_id=user.pk)
    return Caller(actor, scopes_of_user(user), None if token is None else token[0])


class KeyAuthentication(authentication.BaseAuthentication):
    """Takes `Authorization: Bearer <key>`. Stands first: with that header no cookie counts."""

    def authenticate(self, request: Request) -> tuple[AnonymousUser, Caller] | None:
        """Return nobody as the user, and the key's holder as `request.auth`; None without the header."""
        found = caller_by_key(request._request)
        return None if found is None else (AnonymousUser(), found)

    def authenticate_header(self, request: Request) -> str:
        """Return what a 401 asks for."""
        return "Bearer"


class SessionAuthentication(authentication.SessionAuthentication):
    """Takes the session of a signed-in user; methods that change something need the CSRF token."""

    def authenticate(self, request: Request) -> tuple[Any, Any] | None:
        """Return the user, and as `request.auth` the same as a caller; None where nobody is signed in."""
        found = super().authenticate(request)
        return None if found is None else (found[0], caller_by_user(found[0]))

    def enforce_csrf(self, request: Request) -> None:
        """Check the CSRF token; whose it should have been is remembered for the log."""
        request._request.called_by = f"user {request._request.user.get_username()}"  # type: ignore[attr-defined]
        super().enforce_csrf(request)
