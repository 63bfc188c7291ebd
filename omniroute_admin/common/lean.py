"""What only people need, left out of a router's calls: sessions, messages, the policy for pages.

A call of the API that carries an Authorization header is answered by that header alone, so no cookie is looked at.
Pages, and calls of the API by a signed-in user, go through all of it.
"""

from collections.abc import Callable
from typing import Any

from csp.middleware import CSPMiddleware
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.messages.middleware import MessageMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django_htmx.middleware import HtmxMiddleware

from omniroute_admin.common import clock
from omniroute_admin.common.services.sessions import note_seen

_API = ("/api/v1/", "/v1/", "/metrics")
_RENEWS_ITSELF = "/live/"
_NOTHING_OF = ("camera", "display-capture", "geolocation", "microphone", "payment", "usb")
_OF_PAGES = (
    ("Permissions-Policy", ", ".join(f"{name}=()" for name in _NOTHING_OF)),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)


def is_keyed(request: HttpRequest) -> bool:
    """Tell whether a request is a call of the API that says by a header who calls."""
    return "HTTP_AUTHORIZATION" in request.META and request.path_info.startswith(_API)


class ForPeople:
    """Passes a router's calls by; stands before a middleware in a class's bases."""

    get_response: Callable[[HttpRequest], Any]

    def __call__(self, request: HttpRequest) -> Any:
        """Answer the request, without this middleware where a router calls."""
        return self.get_response(request) if is_keyed(request) else super().__call__(request)  # type: ignore[misc]


class Policy(ForPeople, CSPMiddleware):
    """The content security policy of pages, and what else a browser is told of them.

    The other headers (no sniffing, no framing, referrer, opener) are Django's own and stand on every answer.
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """Add the headers."""
        response = super().process_response(request, response)
        for name, value in _OF_PAGES:
            response.headers.setdefault(name, value)
        return response


class Sessions(ForPeople, SessionMiddleware):
    """Sessions of signed-in people; what they do is noted, so that one left alone ends."""

    def process_response(self, request: HttpRequest, response: Any) -> Any:
        """Save the session; note that somebody was here, unless a page has only renewed itself."""
        row = getattr(request.session, "row", None)
        response = super().process_response(request, response)
        if row is not None and row.user_id is not None and not request.path_info.startswith(_RENEWS_ITSELF):
            note_seen(row=row, now=clock.now())
        return response


class Authentication(ForPeople, AuthenticationMiddleware):
    """Who is signed in."""


class Messages(ForPeople, MessageMiddleware):
    """What a page says after a form."""


class Htmx(ForPeople, HtmxMiddleware):
    """Whether a part of a page is asked for."""
