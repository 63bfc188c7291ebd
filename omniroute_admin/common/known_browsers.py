"""Browsers that signed in to an account before: a signed cookie says so. It opens nothing.

From such a browser failed tries are counted on their own, so that nobody locks an account's owner out by failing on
purpose elsewhere.
"""

import secrets

from django.conf import settings
from django.core import signing
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.crypto import salted_hmac

from omniroute_admin.common.core.sign_in import account_key

_SALT = "known browser"
_SECONDS = 180 * 24 * 3_600


def known_browser(request: HttpRequest, *, account: str) -> str | None:
    """Return the mark of a browser that is known to the account of that name; None where it is not."""
    try:
        whose, mark = signing.loads(
            request.COOKIES.get(settings.KNOWN_BROWSER_COOKIE_NAME, ""), salt=_SALT, max_age=_SECONDS
        )
    except (signing.BadSignature, ValueError, TypeError):
        return None
    return str(mark) if whose == _whose(account) else None


def remember_browser(response: HttpResponseBase, *, account: str) -> None:
    """Make a browser known to an account."""
    text = signing.dumps([_whose(account), secrets.token_urlsafe(16)], salt=_SALT)
    response.set_cookie(
        settings.KNOWN_BROWSER_COOKIE_NAME,
        text,
        max_age=_SECONDS,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def _whose(account: str) -> str:
    return salted_hmac(_SALT, account_key(account), algorithm="sha256").hexdigest()
