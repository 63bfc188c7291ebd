"""Who may open a page: signed in, and with the right that it names; refused in words that name the role (SPEC 5)."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.csrf import csrf_failure as default_csrf_failure

from omniroute_admin.common.core.roles import role_words
from omniroute_admin.common.scopes import rights_of_user, roles_of_user

View = Callable[..., HttpResponseBase]


class RoleNeededError(PermissionDenied):
    """The signed-in user lacks a right."""

    def __init__(self, right: str) -> None:
        super().__init__(f"This needs the role {role_words(right)}.")
        self.right = right


def require_right(user: Any, right: str) -> None:
    """Check one right.

    Raises:
        RoleNeededError: the user has it not.
    """
    if right not in rights_of_user(user):
        raise RoleNeededError(right)


def sign_in_again() -> HttpResponse:
    """Return what a script is told that asks for somebody who is signed out: its page stays and says so."""
    return _denied(HttpResponse("Sign in again.", status=401, content_type="text/plain"), "signed_out")


def needs(right: str, *, to_change: str | None = None) -> Callable[[View], View]:
    """Let a view be opened only with a right, and sent a form only with the right `to_change` (else the same).

    A stranger is led to the login page; a script that asks in a page's place is told 401.
    """

    def decorate(view: View) -> View:
        @wraps(view)
        def guard(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            require_right(request.user, right)
            if to_change is not None and request.method not in {"GET", "HEAD", "OPTIONS"}:
                require_right(request.user, to_change)
            return view(request, *args, **kwargs)

        return needs_sign_in(guard)

    return decorate


def needs_sign_in(view: View) -> View:
    """Let a view be opened by whoever is signed in, with a role or without."""
    signed_in = login_required(view)

    @wraps(view)
    def ask(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if "HX-Request" in request.headers and not request.user.is_authenticated:
            return sign_in_again()
        return signed_in(request, *args, **kwargs)

    return ask


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 403 with the role that is needed, where the refusal names one."""
    right = getattr(exception, "right", None)
    code = "role_needed" if right else "forbidden"
    if "HX-Request" in request.headers:
        words = str(exception) or "This is not allowed."
        return _denied(HttpResponse(words, status=403, content_type="text/plain"), code)
    signed_in = request.user.is_authenticated
    context = {
        "needed": role_words(right) if right else "",
        "roles": roles_of_user(request.user) if signed_in else (),
    }
    return _denied(render(request, "403.html", context, status=403), code)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Answer a form that another site may have sent (Django's CSRF_FAILURE_VIEW)."""
    return _denied(default_csrf_failure(request, reason), "csrf_failed")


def _denied(response: HttpResponse, code: str) -> HttpResponse:
    """Put the code on a response, for the log."""
    response.denied = code  # type: ignore[attr-defined]
    return response
