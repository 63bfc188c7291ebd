"""Letting somebody in whose every factor was right: a new session, and what is remembered and forgotten with it."""

import logging
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth import login
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.crypto import constant_time_compare
from django.utils.http import url_has_allowed_host_and_scheme

from omniroute_admin.common import clock
from omniroute_admin.common.backends import TokenBackend
from omniroute_admin.common.client import client_address
from omniroute_admin.common.known_browsers import remember_browser
from omniroute_admin.common.receivers import WAY
from omniroute_admin.common.services.sessions import forget_ended_sessions
from omniroute_admin.common.services.sign_in_counts import Try, end_tries

_PENDING = "pending_sign_in"
_PENDING_FOR = timedelta(minutes=10)
_log = logging.getLogger("omniroute_admin.security")


def let_in(request: HttpRequest, user: Any, *, way: str, taken: Try | None = None) -> None:
    """Sign somebody in: the session gets a new key, and the account's failures are forgotten."""
    now = clock.now()
    request.session.pop(_PENDING, None)
    setattr(request, WAY, way)
    login(request, user, backend="omniroute_admin.common.backends.TokenBackend")
    if taken is not None:
        end_tries(taken=taken, now=now)
    forget_ended_sessions(now=now)
    _log.info("signed in by %s: account %s, from %s", way, user.get_username(), client_address(request))


def make_known(response: HttpResponseBase, user: Any) -> HttpResponseBase:
    """Return an answer that makes the browser known to an account that it signed in to by password."""
    remember_browser(response, account=user.get_username())
    return response


def safe_next(request: HttpRequest, address: str) -> str:
    """Return where somebody wanted to go, if it is here; else the first page."""
    hosts, is_secure = {request.get_host()}, request.is_secure()
    is_here = url_has_allowed_host_and_scheme(address, allowed_hosts=hosts, require_https=is_secure)
    return address if is_here else settings.LOGIN_REDIRECT_URL


# --- between the two factors -----------------------------------------------------------------------------------------
def hold(request: HttpRequest, user: Any, *, wanted: str) -> None:
    """Remember for some minutes whose password was right; nobody is signed in by it."""
    request.session.cycle_key()
    request.session[_PENDING] = {
        "user": user.pk,
        "hash": user.get_session_auth_hash(),
        "at": clock.now().isoformat(),
        "next": wanted,
    }
    request.session.set_expiry(int(_PENDING_FOR.total_seconds()))


def held_user(request: HttpRequest) -> Any | None:
    """Return the account whose password was right in this browser; None where none was, or too long ago."""
    held = request.session.get(_PENDING)
    if held is None or clock.now() - datetime.fromisoformat(held["at"]) > _PENDING_FOR:
        return None
    user = TokenBackend().get_user(held["user"])
    if user is None or not constant_time_compare(held["hash"], user.get_session_auth_hash()):
        return None
    return user


def held_next(request: HttpRequest) -> str:
    """Return where the one who is held wanted to go."""
    held = request.session.get(_PENDING) or {}
    return safe_next(request, held.get("next", ""))
