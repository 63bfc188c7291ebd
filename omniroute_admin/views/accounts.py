"""How somebody else comes in: an administrator looks at it, and mends it."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import get_user_model
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from omniroute_admin.common import clock
from omniroute_admin.common.core.roles import USERS_WRITE
from omniroute_admin.common.core.screen import Glance
from omniroute_admin.common.core.sign_in import wait_words
from omniroute_admin.common.errors import ProductError
from omniroute_admin.common.history import Actor
from omniroute_admin.common.selectors.sign_in import identities_of, places_of
from omniroute_admin.common.services.oidc import link, unlink
from omniroute_admin.common.services.second_factors import codes_left, factor_of, remove_second_factor
from omniroute_admin.common.services.sessions import sign_out
from omniroute_admin.common.services.sign_in_counts import locked_until, unlock
from omniroute_admin.common.services.users import check_giving
from omniroute_admin.common.views.guard import needs
from omniroute_admin.common.zone import display_zone
from omniroute_admin.forms_sign_in import AccountActForm

_HIGHEST_ID = 2**31 - 1


@needs(USERS_WRITE)
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def account_of_page(request: HttpRequest, user_id: int) -> HttpResponseBase:
    """Show how somebody comes in; sent, do one thing to it, with a reason."""
    user = get_object_or_404(get_user_model(), pk=min(user_id, _HIGHEST_ID))
    if request.method != "POST":
        return _page(request, user)
    form, act = AccountActForm(request.POST), _ACTS.get(request.POST.get("act", ""))
    if act is None or not form.is_valid():
        return _page(request, user, form=form, status=400)
    by = {"actor": Actor(name=request.user.get_username(), user_id=request.user.pk), "now": clock.now()}
    try:
        # Who may not change a superuser must not take over one's way in either.
        check_giving(giver=request.user, user=user, roles=(), is_superuser=user.is_superuser)
        words = act(request, user, form.cleaned_data, by)
    except ProductError as error:
        detail = " ".join([error.detail, *(bad.detail for bad in error.errors)])
        return _page(request, user, form=form, refused=detail, status=error.status)
    messages.success(request, words)
    return redirect("account-of", user_id=user.pk)


def _unlock(request: HttpRequest, user: Any, data: dict[str, Any], by: dict[str, Any]) -> str:
    had = unlock(user=user, reason=data["reason"], **by)
    return "The failed tries are forgotten; the next one is taken." if had else "There was nothing to unlock."


def _remove_factor(request: HttpRequest, user: Any, data: dict[str, Any], by: dict[str, Any]) -> str:
    if not remove_second_factor(user=user, reason=data["reason"], **by):
        return "There was no second factor."
    return "The second factor is removed. The account is signed out everywhere."


def _sign_out(request: HttpRequest, user: Any, data: dict[str, Any], by: dict[str, Any]) -> str:
    return f"Sessions ended: {sign_out(user=user, reason=data['reason'], **by)}."


def _link(request: HttpRequest, user: Any, data: dict[str, Any], by: dict[str, Any]) -> str:
    link(user=user, subject=data["subject"], reason=data["reason"], **by)
    return "Linked: whoever has that number at the provider comes in as this account."


def _unlink(request: HttpRequest, user: Any, data: dict[str, Any], by: dict[str, Any]) -> str:
    text = request.POST.get("identity", "")
    identity_id = int(text) if text.isdecimal() and len(text) < 10 else 0  # noqa: PLR2004
    had = unlink(user=user, identity_id=identity_id, reason=data["reason"], **by)
    return "The link is undone." if had else "There was no such link."


_ACTS: dict[str, Callable[[HttpRequest, Any, dict[str, Any], dict[str, Any]], str]] = {
    "unlock": _unlock,
    "remove-factor": _remove_factor,
    "sign-out": _sign_out,
    "link": _link,
    "unlink": _unlink,
}


def _page(
    request: HttpRequest, user: Any, *, form: AccountActForm | None = None, refused: str = "", status: int = 200
) -> HttpResponse:
    now = clock.now()
    factor, until = factor_of(user), locked_until(account=user.get_username(), now=now)
    context = {
        "section": "account",
        "zone": display_zone().key,
        "account": user,
        "form": form or AccountActForm(),
        "refused": refused,
        "factor": factor,
        "codes_left": codes_left(factor) if factor is not None else 0,
        "locked_for": wait_words(until=until, now=now) if until is not None else "",
        "places": _places(user, now=now),
        "identities": identities_of(user=user),
        "issuer": settings.OIDC_ISSUER,
        "has_password": user.has_usable_password(),
    }
    return render(request, "account/account_of.html", context, status=status)


def _places(user: Any, *, now: datetime) -> list[Any]:
    glance = Glance(now=now, zone=display_zone())
    return [
        (place, place.began_at and glance.ago(place.began_at), place.seen_at and glance.ago(place.seen_at))
        for place in places_of(user_id=user.pk, this=None)
    ]
