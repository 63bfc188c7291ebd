"""What a live page is told when it asks whether its picture still holds (SPEC 5, 1)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse

from ladder.views.picture import is_current, picture_of, sums_of
from omniroute_admin.common.backends import token_read_with
from omniroute_admin.common.selectors.revision import current_token
from omniroute_admin.common.views.guard import require_right, sign_in_again
from omniroute_admin.common.zone import display_zone


def answer_held(request: HttpRequest, *, right: str, now: datetime) -> HttpResponse | None:
    """Return 204 while the picture of the browser holds, None where it is to be drawn anew for who has the right.

    Signed out is 401, not the way to the login page: a script asks here, and its page tells the operator. `now` is read
    before: what was read of the database before an instant is shown as of it only if nothing was written between.

    Raises:
        RoleNeededError: the picture is to be drawn, and not for this user.
    """
    if not request.user.is_authenticated:
        return sign_in_again()
    held = picture_of(request.GET.get("v", ""))
    if held and is_current(held, token=token_read_with(request.user) or current_token(), now=now, zone=display_zone()):
        return HttpResponse(status=204)
    require_right(request.user, right)
    return None


def changed_regions(request: HttpRequest, context: Mapping[str, Any]) -> dict[str, str]:
    """Return the regions of a picture that the browser holds otherwise, by name."""
    held = sums_of(request.GET.get("v", ""))
    return {name: html for name, html in context["regions"].items() if held.get(name) != context["sums"][name]}
