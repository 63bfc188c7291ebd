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
from django_htmx.middleware import HtmxMiddleware

_API = ("/api/v1/", "/v1/", "/metrics")


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
    """The content security policy of pages."""


class Sessions(ForPeople, SessionMiddleware):
    """Sessions of signed-in people."""


class Authentication(ForPeople, AuthenticationMiddleware):
    """Who is signed in."""


class Messages(ForPeople, MessageMiddleware):
    """What a page says after a form."""


class Htmx(ForPeople, HtmxMiddleware):
    """Whether a part of a page is asked for."""
