"""What every page is drawn with: what its reader may do."""

from typing import Any

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from omniroute_admin.common.scopes import rights_of_user, roles_of_user


def reader(request: HttpRequest) -> dict[str, Any]:
    """Return `rights`, to ask `{% if "settings:write" in rights %}`, and `roles`, both read only where asked for."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return {"rights": frozenset(), "roles": ()}
    return {
        "rights": SimpleLazyObject(lambda: rights_of_user(user)),
        "roles": SimpleLazyObject(lambda: roles_of_user(user)),
    }
