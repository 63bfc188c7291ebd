"""The page with a traceback that DEBUG shows, without the secrets of whoever sent the request that failed."""

from collections.abc import Iterator
from html import escape
from typing import Any
from urllib.parse import unquote, urlsplit

from django.conf import settings
from django.http import HttpRequest
from django.utils.safestring import SafeString, mark_safe
from django.views.debug import ExceptionReporter

from omniroute_admin.common.core.keys import blotted

_STARS = "********************"
_SHORTEST = 6
_TELLING = ("pass", "secret", "token", "key", "otp", "code")


class BlottingReporter(ExceptionReporter):
    """The page with a traceback that DEBUG shows, without what its reader may not pass on."""

    def get_traceback_html(self) -> SafeString:
        """Return the page."""
        return self._without_secrets(super().get_traceback_html())

    def get_traceback_text(self) -> SafeString:
        """Return the text."""
        return self._without_secrets(super().get_traceback_text())

    def _without_secrets(self, page: str) -> SafeString:
        text = str(page)
        for secret in sorted(set(self._secrets()), key=len, reverse=True):
            for written in {secret, escape(secret)}:
                text = text.replace(written, _STARS)
        return mark_safe(blotted(text))  # noqa: S308 - Django has escaped it, and stars are added alone

    def _secrets(self) -> Iterator[str]:
        """Yield what a page would show in values of variables: Django only hides what bears a telling name."""
        own = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS, settings.DATABASES["default"].get("PASSWORD")]
        own += [settings.TOTP_KEY, settings.OIDC_CLIENT_SECRET, settings.ALERT_WEBHOOK_SECRET]
        broker = urlsplit(settings.CELERY_BROKER_URL).password or ""
        own += [broker, unquote(broker)]
        sent = list(_sent(self.request)) if isinstance(self.request, HttpRequest) else []
        yield from (str(value) for value in (*own, *sent) if value and len(str(value)) >= _SHORTEST)


def _sent(request: HttpRequest) -> Iterator[Any]:
    yield from request.COOKIES.values()
    yield request.META.get("CSRF_COOKIE")
    yield request.META.get("HTTP_X_CSRFTOKEN")
    yield request.META.get("HTTP_AUTHORIZATION", "").partition(" ")[2].strip()
    session = getattr(request, "session", None)
    yield getattr(session, "session_key", None)
    try:
        for name, values in request.POST.lists():
            if any(part in name.lower() for part in _TELLING):
                yield from values
    except Exception:  # noqa: BLE001 - a body that cannot be read holds nothing that was read
        return
