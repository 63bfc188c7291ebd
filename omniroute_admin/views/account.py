"""One's own account: who I am, what I may, my password, my second factor, and where I am signed in."""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import logout, update_session_auth_hash
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from omniroute_admin.common import clock
from omniroute_admin.common.client import client_address
from omniroute_admin.common.core.screen import Glance
from omniroute_admin.common.core.sign_in import PASSWORD, SECOND_FACTOR
from omniroute_admin.common.errors import ProductError, TooManyTries
from omniroute_admin.common.history import Actor
from omniroute_admin.common.selectors.sign_in import identities_of, places_of
from omniroute_admin.common.services.own_password import require_both, require_password
from omniroute_admin.common.services.second_factors import (
    codes_left,
    confirm_second_factor,
    factor_of,
    remove_second_factor,
    renew_recovery_codes,
    start_second_factor,
    started_factor,
)
from omniroute_admin.common.services.sessions import end_sessions
from omniroute_admin.common.sessions import SIGNED_IN
from omniroute_admin.common.views.guard import needs_sign_in
from omniroute_admin.common.zone import display_zone
from omniroute_admin.forms_sign_in import CodeForm, OwnPasswordForm, PasswordAndCodeForm, PasswordForm
from omniroute_admin.views.sign_in import picture_of, shown_codes, too_many


@needs_sign_in
@never_cache
@require_safe
def account_page(request: HttpRequest) -> HttpResponse:
    """Show who is signed in, what they may, and from where."""
    glance, factor = Glance(now=clock.now(), zone=display_zone()), factor_of(request.user)
    places = [
        (place, place.began_at and glance.ago(place.began_at), place.seen_at and glance.ago(place.seen_at))
        for place in places_of(user_id=_pk(request), this=request.session.session_key)
    ]
    context = {
        "section": "account",
        "zone": display_zone().key,
        "places": places,
        "factor": factor,
        "codes_left": codes_left(factor) if factor is not None else 0,
        "identities": identities_of(user=request.user),
        "is_local": _me(request).has_usable_password(),
        "idle_minutes": settings.SESSION_IDLE_MINUTES,
    }
    return render(request, "account/account.html", context)


@needs_sign_in
@sensitive_post_parameters()
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def password_page(request: HttpRequest) -> HttpResponseBase:
    """Change one's own password; every other session of the account ends with the old one."""
    if not _me(request).has_usable_password():
        messages.info(request, "This account has no password: it comes in by single sign-on.")
        return redirect("account")
    form = OwnPasswordForm(_me(request), request.POST if request.method == "POST" else None)
    form.address = client_address(request)
    if form.is_valid():
        update_session_auth_hash(request, form.save())
        messages.success(request, "The password is changed. Every other session of this account has ended.")
        return redirect("account")
    context = {"section": "account", "form": form}
    response = render(request, "account/password.html", context, status=400 if form.is_bound else 200)
    return too_many(response, until=form.until)


@needs_sign_in
@sensitive_post_parameters()
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def factor_page(request: HttpRequest) -> HttpResponseBase:
    """Set up a second factor, renew its recovery codes, or remove it."""
    if not _me(request).has_usable_password():
        messages.info(request, "This account comes in by single sign-on: the provider asks for a second factor.")
        return redirect("account")
    act = _ACTS.get(request.POST.get("act", ""))
    if request.method == "POST":
        return act(request) if act is not None else _factor(request, status=400)
    return _factor(request)


@needs_sign_in
@never_cache
@require_POST
def sign_out_page(request: HttpRequest) -> HttpResponseBase:
    """Sign out everywhere else, or everywhere."""
    if request.POST.get("where") == "others":
        count = end_sessions(user_id=_pk(request), but=request.session.session_key)
        messages.success(request, f"Signed out elsewhere: {count}.")
        return redirect("account")
    end_sessions(user_id=_pk(request))
    logout(request)
    return redirect("login")


def _start(request: HttpRequest) -> HttpResponseBase:
    form, now = PasswordForm(request.POST), clock.now()
    if form.is_valid():
        try:
            require_password(user=request.user, now=now, address=client_address(request), **form.cleaned_data)
            start_second_factor(user=request.user, now=now)
        except ProductError as error:
            return _refused(request, form, error)
        return redirect("account-factor")
    return _factor(request, form=form, status=400)


def _confirm(request: HttpRequest) -> HttpResponseBase:
    form = CodeForm(request.POST)
    if form.is_valid():
        try:
            codes = confirm_second_factor(
                user=request.user, code=form.cleaned_data["code"], actor=_actor(request), now=clock.now()
            )
        except ProductError as error:
            return _refused(request, form, error)
        _hold_to_both(request)
        return shown_codes(request, codes, wanted=reverse("account"))
    return _factor(request, form=form, status=400)


def _renew(request: HttpRequest) -> HttpResponseBase:
    form, now = PasswordAndCodeForm(request.POST), clock.now()
    if form.is_valid():
        try:
            require_both(user=request.user, now=now, address=client_address(request), **form.cleaned_data)
            codes = renew_recovery_codes(user=request.user, actor=_actor(request), now=now)
        except ProductError as error:
            return _refused(request, form, error)
        return shown_codes(request, codes, wanted=reverse("account"))
    return _factor(request, form=form, status=400)


def _remove(request: HttpRequest) -> HttpResponseBase:
    form, now = PasswordAndCodeForm(request.POST), clock.now()
    if form.is_valid() and not settings.REQUIRE_TOTP:
        try:
            require_both(user=request.user, now=now, address=client_address(request), **form.cleaned_data)
        except ProductError as error:
            return _refused(request, form, error)
        remove_second_factor(user=request.user, actor=_actor(request), reason="", now=now)
        messages.success(request, "The second factor is removed: the password alone opens this account now.")
        return redirect("account")
    return _factor(request, form=form, status=400)


_ACTS: dict[str, Callable[[HttpRequest], HttpResponseBase]] = {
    "start": _start,
    "confirm": _confirm,
    "renew": _renew,
    "remove": _remove,
}


def _factor(request: HttpRequest, *, form: Any = None, status: int = 200) -> HttpResponse:
    factor, started = factor_of(request.user), started_factor(user=request.user)
    context = {"section": "account", "factor": factor, "form": form, "may_remove": not settings.REQUIRE_TOTP}
    if factor is not None:
        return render(request, "account/factor.html", context | {"codes_left": codes_left(factor)}, status=status)
    if started is None:
        return render(request, "account/factor.html", context, status=status)
    context |= picture_of(started, name=request.user.get_username())
    return render(request, "account/new_factor.html", context, status=status)


def _refused(request: HttpRequest, form: Any, error: ProductError) -> HttpResponse:
    """Show the page again with what was refused, at its field."""
    for bad in error.errors:
        name = bad.pointer.removeprefix("/")
        form.add_error(name if name in form.fields else None, bad.detail)
    if not error.errors:
        form.add_error(None, error.detail)
    until = error.until if isinstance(error, TooManyTries) else None
    return too_many(_factor(request, form=form, status=error.status), until=until)


def _hold_to_both(request: HttpRequest) -> None:
    """End the other sessions, which came in by the password alone; this one has shown both now."""
    end_sessions(user_id=_pk(request), but=request.session.session_key)
    said = request.session.get(SIGNED_IN)
    if said is not None and said["way"] == PASSWORD:
        request.session[SIGNED_IN] = said | {"way": SECOND_FACTOR}


def _pk(request: HttpRequest) -> int:
    return int(_me(request).pk)


def _me(request: HttpRequest) -> Any:
    return request.user


def _actor(request: HttpRequest) -> Actor:
    return Actor(name=request.user.get_username(), user_id=request.user.pk)
