"""The way in for local accounts: name and password, then a code where the account has a second factor or needs one."""

from datetime import datetime
from typing import Any

import segno
from django.conf import settings
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.cache import add_never_cache_headers
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from omniroute_admin.common import clock
from omniroute_admin.common.client import client_address
from omniroute_admin.common.core.sign_in import PASSWORD, SECOND_FACTOR
from omniroute_admin.common.core.waits import seconds_until
from omniroute_admin.common.errors import BadRequest, TooManyTries
from omniroute_admin.common.history import Actor
from omniroute_admin.common.models_sign_in import SecondFactor
from omniroute_admin.common.sealing import opens
from omniroute_admin.common.services.second_factors import (
    app_address,
    confirm_second_factor,
    factor_of,
    refuse_unreadable,
    secret_of,
    start_second_factor,
    started_factor,
    takes_code,
)
from omniroute_admin.common.services.sign_in_counts import begin_try, give_back, note_failure
from omniroute_admin.forms_sign_in import CodeForm, SignInForm, keys_of_request
from omniroute_admin.views.letting_in import held_next, held_user, hold, let_in, make_known

_TOO_MANY = 429
_WRONG = "This code is wrong or was used before. The app shows a new one every 30 seconds."
_WRONG_RECOVERY_CODE = "This recovery code is wrong or was used before."


class SignInView(LoginView):
    """Name and password; and the way to the provider of single sign-on, where there is one."""

    authentication_form = SignInForm
    redirect_authenticated_user = True

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Return what the page is drawn with."""
        sso = settings.OIDC_NAME if settings.OIDC_ISSUER else ""
        return super().get_context_data(**kwargs) | {"sso": sso, "refused": self.request.session.pop("refused", "")}

    def form_valid(self, form: Any) -> HttpResponseBase:  # type: ignore[override] # Django names one kind of answer
        """Let somebody in, or ask for the second factor."""
        user, now = form.get_user(), clock.now()
        has_factor = factor_of(user) is not None
        if not has_factor and not settings.REQUIRE_TOTP:
            let_in(self.request, user, way=PASSWORD, taken=form.taken)
            return make_known(redirect(self.get_success_url()), user)
        give_back(taken=form.taken, now=now)
        hold(self.request, user, wanted=self.get_success_url())
        if has_factor:
            return redirect("login-code")
        start_second_factor(user=user, now=now)
        return redirect("login-new-factor")

    def form_invalid(self, form: Any) -> HttpResponse:
        """Show the form again; too many tries are told by the status as well."""
        return too_many(super().form_invalid(form), until=form.until)


def too_many(response: HttpResponse, *, until: datetime | None) -> HttpResponse:
    """Return a form's answer with the status of too many tries, where the next one is taken at an instant to come."""
    if until is not None:
        response.status_code = _TOO_MANY
        response["Retry-After"] = str(seconds_until(instant=until, now=clock.now()))
    return response


@sensitive_post_parameters()
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def code_page(request: HttpRequest) -> HttpResponseBase:
    """Ask for a code of the second factor; right, the one whose password was right is in."""
    user = held_user(request)
    factor = factor_of(user) if user is not None else None
    if user is None or factor is None:
        return redirect("login")
    form = CodeForm(request.POST if request.method == "POST" else None)
    status = 400 if form.is_bound else 200
    context = {"form": form, "is_readable": opens(factor.secret_box)}
    if form.is_valid():
        now = clock.now()
        try:
            refuse_unreadable(user=user, code=form.cleaned_data["code"])
            taken = begin_try(keys=keys_of_request(request, account=user.get_username()), now=now)
        except BadRequest as error:
            form.add_error("code", error.errors[0].detail)
            return render(request, "account/code.html", context, status=status)
        except TooManyTries as error:
            form.add_error("code", error.detail)
            return too_many(render(request, "account/code.html", context), until=error.until)
        if takes_code(user=user, code=form.cleaned_data["code"], now=now):
            wanted = held_next(request)
            let_in(request, user, way=SECOND_FACTOR, taken=taken)
            return make_known(redirect(wanted), user)
        note_failure(taken=taken, account=user.get_username(), address=client_address(request), now=now)
        form.add_error("code", _WRONG if context["is_readable"] else _WRONG_RECOVERY_CODE)
    return render(request, "account/code.html", context, status=status)


@sensitive_post_parameters()
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def new_factor_page(request: HttpRequest) -> HttpResponseBase:
    """Set up the second factor without which nobody comes in (REQUIRE_TOTP); its first code right, one is in."""
    user = held_user(request)
    factor = started_factor(user=user) if user is not None else None
    if user is None or factor is None or not settings.REQUIRE_TOTP:
        return redirect("login")
    form = CodeForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        actor = Actor(name=user.get_username(), user_id=user.pk)
        try:
            codes = confirm_second_factor(user=user, code=form.cleaned_data["code"], actor=actor, now=clock.now())
        except BadRequest as error:
            form.add_error("code", error.errors[0].detail)
        else:
            wanted = held_next(request)
            let_in(request, user, way=SECOND_FACTOR)
            return make_known(shown_codes(request, codes, wanted=wanted), user)
    context = {"form": form, "is_needed": True} | picture_of(factor, name=user.get_username())
    return render(request, "account/new_factor.html", context, status=400 if form.is_bound else 200)


def picture_of(factor: SecondFactor, *, name: str) -> dict[str, Any]:
    """Return the secret of a second factor that is being set up, as a picture for an app and as text."""
    secret = secret_of(factor) or ""
    picture = segno.make(app_address(factor=factor, name=name), micro=False, error="m")
    return {"picture": _svg(picture), "secret": " ".join(secret[at : at + 4] for at in range(0, len(secret), 4))}


def shown_codes(request: HttpRequest, codes: list[str], *, wanted: str) -> HttpResponse:
    """Return the one page that shows recovery codes; it answers the form, as an address would have to keep them."""
    response = render(request, "account/recovery_codes.html", {"codes": codes, "wanted": wanted})
    add_never_cache_headers(response)
    return response


def _svg(picture: segno.QRCode) -> SafeString:
    drawn = picture.svg_inline(scale=5, border=4, dark="#000", light="#fff", svgclass="qr")
    return mark_safe(drawn)  # noqa: S308 - drawn by the library from its own modules: no text of anybody is in it
