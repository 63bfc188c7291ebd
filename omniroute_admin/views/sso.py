"""Single sign-on: the way to the provider and the way back. Without a provider neither address answers."""

import logging
from collections.abc import Callable
from functools import wraps

from django.conf import settings
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from omniroute_admin.common import clock
from omniroute_admin.common.client import client_address
from omniroute_admin.common.core.sign_in import SINGLE_SIGN_ON
from omniroute_admin.common.errors import Forbidden
from omniroute_admin.common.services.oidc import account_of_claims
from omniroute_admin.views.letting_in import let_in, safe_next

_NEXT = "sso_next"
_SECONDS = 600
_FAILED = "Single sign-on did not work. Try again; an administrator finds the reason in the log."
_log = logging.getLogger("omniroute_admin.security")
View = Callable[[HttpRequest], HttpResponseBase]


def _with_provider(view: View) -> View:
    @wraps(view)
    def ask(request: HttpRequest) -> HttpResponseBase:
        if not settings.OIDC_ISSUER:
            raise Http404
        return view(request)

    return ask


@_with_provider
@never_cache
@require_GET
def start(request: HttpRequest) -> HttpResponseBase:
    """Lead to the provider.

    By a link and no form: browsers hold a form's whole way, from one host of the provider to the next, against our
    policy (`form-action`). Who is led here from elsewhere signs in as themselves, at most.
    """
    from omniroute_admin.common.adapters.oidc import OidcError, to_provider

    wanted = safe_next(request, request.GET.get("next", ""))
    if request.user.is_authenticated:
        return redirect(wanted)
    request.session[_NEXT] = wanted
    request.session.set_expiry(_SECONDS)
    try:
        return to_provider(request, callback=request.build_absolute_uri(reverse("sso-callback")))
    except OidcError as error:
        return _refused(request, _FAILED, why=error.why)


@_with_provider
@never_cache
@require_GET
def callback(request: HttpRequest) -> HttpResponseBase:
    """Take what the provider says of the one who comes back, and let them in."""
    from omniroute_admin.common.adapters.oidc import OidcError, claims_of_answer

    try:
        claims = claims_of_answer(request)
    except OidcError as error:
        return _refused(request, _FAILED, why=error.why)
    try:
        user = account_of_claims(claims=claims, now=clock.now())
    except Forbidden as error:
        return _refused(request, error.detail, why=error.code)
    wanted = safe_next(request, str(request.session.pop(_NEXT, "")))
    let_in(request, user, way=SINGLE_SIGN_ON)
    return redirect(wanted)


def _refused(request: HttpRequest, words: str, *, why: str) -> HttpResponseBase:
    """Lead back to the page where people sign in, which says so, once."""
    _log.warning("single sign-on refused: %s, from %s", why, client_address(request))
    request.session["refused"] = words
    return redirect("login")
