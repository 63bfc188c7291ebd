"""Whether a caller may: each view names the scope that each method needs (SPEC 4)."""

from typing import Any

from django.core.exceptions import ImproperlyConfigured
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from omniroute_admin.common.authentication import Caller, caller
from omniroute_admin.common.errors import Forbidden


def require_scope(who: Caller, scope: str) -> None:
    """Check one scope.

    Raises:
        Forbidden: the caller has it not.
    """
    if scope in who.scopes:
        return
    lost = " The key was given it, but who made the key has it no more: somebody who has it edits or rotates the key."
    raise Forbidden(f"This needs the scope {scope}.{lost if scope in who.lost else ''}", scope=scope)


class RequiresScope(BasePermission):
    """Reads `view.required_scopes`, as in `{"GET": "pools:read", "POST": "pools:read"}`; HEAD counts as GET."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """Tell that the caller may.

        Raises:
            Unauthenticated: nobody known calls.
            Forbidden: the scope is lacking.
            ImproperlyConfigured: the view has a method that it names no scope for.
        """
        who = caller(request)
        scopes: dict[str, str] = getattr(view, "required_scopes", {})
        method = "GET" if request.method == "HEAD" else str(request.method)
        if method in scopes:
            require_scope(who, scopes[method])
        elif method != "OPTIONS" and hasattr(view, method.lower()):
            raise ImproperlyConfigured(f"{type(view).__name__} names no scope for {method}")
        return True
