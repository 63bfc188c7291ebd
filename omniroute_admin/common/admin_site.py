"""The admin for everybody with a role: who may open it, and where strangers are led (SPEC 5)."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.admin import AdminSite
from django.contrib.admin.apps import AdminConfig
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from omniroute_admin.common.scopes import rights_of_user

_LEAST = "pools:read"
"""The right that every role has."""


class ConsoleSite(AdminSite):
    """Lets in whoever has a role; each page then asks for the right that it needs. `is_staff` means nothing here."""

    site_title = "Subscription first"
    site_header = "Subscription first"
    index_title = "Admin"
    enable_nav_sidebar = False

    def has_permission(self, request: HttpRequest) -> bool:
        """Tell whether somebody with any role asks."""
        return request.user.is_authenticated and _LEAST in rights_of_user(request.user)

    def admin_view(self, view: Callable[..., Any], cacheable: bool = False) -> Any:
        """Let a view be opened by those who have a role; one who has none is told so, a stranger signs in."""
        inner = super().admin_view(view, cacheable)

        @wraps(inner)
        def ask(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            from omniroute_admin.common.views.guard import require_right

            if request.user.is_authenticated and request.resolver_match is not None:
                is_leaving = request.resolver_match.url_name == "logout"
                if not is_leaving:
                    require_right(request.user, _LEAST)
            return inner(request, *args, **kwargs)

        return ask

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        """Lead to the one page where people sign in, and back."""
        from django.contrib.auth.views import redirect_to_login
        from django.urls import reverse

        wanted = request.GET.get("next", "") or reverse("admin:index", current_app=self.name)
        return redirect_to_login(wanted)

    def password_change(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        """Lead to the one page where people change their password."""
        from django.shortcuts import redirect

        return redirect("account-password")


class ConsoleAdminConfig(AdminConfig):
    """Django's admin, open to everybody with a role (SPEC 5). It stands here, as an apps.py configures one app."""

    default_site = "omniroute_admin.common.admin_site.ConsoleSite"
