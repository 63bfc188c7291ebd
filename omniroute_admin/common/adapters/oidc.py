"""The provider of single sign-on (OpenID Connect, code flow with PKCE), by Authlib: nothing is checked by hand here.

Authlib keeps state, nonce and PKCE's verifier in the session, and checks signature, issuer, audience, expiry and nonce
of the ID token. This module says how strictly, keeps what the provider publishes for an hour, and turns every failure
into one error that holds no secret.
"""

import logging
import time
from functools import lru_cache
from typing import Any

from authlib.common.errors import AuthlibBaseError
from authlib.integrations.base_client.errors import MismatchingStateError
from authlib.integrations.django_client import DjangoOAuth2App
from authlib.integrations.django_client.integration import DjangoIntegration
from django.conf import settings
from django.http import HttpRequest, HttpResponseRedirect
from joserfc.errors import JoseError
from requests import RequestException

_log = logging.getLogger("omniroute_admin.security")
_ALGORITHMS = ("RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512", "EdDSA")
"""Signatures by a key that only the provider has; one by the shared secret, or none at all, is not taken."""

_SECONDS = 5
_KEPT_SECONDS = 3_600
_LEEWAY_SECONDS = 60
_STATE = "_state_oidc"


class OidcError(Exception):
    """The provider did not answer, or its answer was not taken; `why` is for the log and holds no secret."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class Provider(DjangoOAuth2App):
    """A provider, as its own description has it, which is read again every hour: so are its keys."""

    server_metadata: dict[str, Any]
    _fresh_until = 0.0

    def load_server_metadata(self) -> dict[str, Any]:
        """Return the provider's description, with the signatures that are taken.

        Raises:
            OidcError: it speaks for another issuer, or offers no signature that is taken.
        """
        if time.monotonic() < self._fresh_until:
            return dict(self.server_metadata)
        self.server_metadata = {}
        self._take(super().load_server_metadata())
        return dict(self.server_metadata)

    def _take(self, found: dict[str, Any]) -> None:
        offered = found.get("id_token_signing_alg_values_supported") or ["RS256"]
        taken = [name for name in offered if name in _ALGORITHMS]
        if problem := _problem(found, taken):
            raise OidcError(problem)
        found["id_token_signing_alg_values_supported"] = taken
        self._fresh_until = time.monotonic() + _KEPT_SECONDS


def is_configured() -> bool:
    """Tell whether there is a provider at all."""
    return bool(settings.OIDC_ISSUER)


def to_provider(request: HttpRequest, *, callback: str) -> HttpResponseRedirect:
    """Return the way to the provider; what has to come back with it is kept in the session.

    Raises:
        OidcError: the provider does not answer.
    """
    for name in [name for name in request.session.keys() if name.startswith(_STATE)]:  # noqa: SIM118 - no dict
        del request.session[name]
    try:
        return _provider().authorize_redirect(request, callback)
    except (AuthlibBaseError, RequestException, ValueError, RuntimeError) as error:
        raise _told(error) from None


def claims_of_answer(request: HttpRequest) -> dict[str, Any]:
    """Return what the provider says of the person who comes back from it, every check passed.

    Raises:
        OidcError: somebody refused, it is no answer to a question of this browser, or the token is not to be trusted.
    """
    provider = _provider()
    options = {
        "iss": {"essential": True, "value": settings.OIDC_ISSUER},
        "aud": {"essential": True, "value": settings.OIDC_CLIENT_ID},
        "exp": {"essential": True},
        "iat": {"essential": True},
        "sub": {"essential": True},
        "nonce": {"essential": True},
    }
    try:
        token = provider.authorize_access_token(request, claims_options=options, leeway=_LEEWAY_SECONDS)
    except (AuthlibBaseError, JoseError, RequestException, ValueError, RuntimeError, KeyError, TypeError) as error:
        raise _told(error) from None
    claims = token.get("userinfo")
    if not claims or not isinstance(claims.get("sub"), str) or not claims["sub"]:
        raise OidcError("the answer holds no ID token")
    return dict(claims)


def _provider() -> Provider:
    return _made(settings.OIDC_ISSUER, settings.OIDC_CLIENT_ID, settings.OIDC_CLIENT_SECRET, settings.OIDC_SCOPES)


@lru_cache(maxsize=1)
def _made(issuer: str, client_id: str, secret: str, scopes: str) -> Provider:
    return Provider(
        DjangoIntegration("oidc"),
        name="oidc",
        client_id=client_id,
        client_secret=secret or None,
        server_metadata_url=f"{issuer.rstrip('/')}/.well-known/openid-configuration",
        client_kwargs={
            "scope": scopes,
            "code_challenge_method": "S256",
            "default_timeout": _SECONDS,
            "token_endpoint_auth_method": "client_secret_basic" if secret else "none",
        },
    )


def _problem(found: dict[str, Any], taken: list[str]) -> str:
    if found.get("issuer") != settings.OIDC_ISSUER:
        return "the provider's description is of another issuer than OIDC_ISSUER, to the letter"
    if not taken:
        return "the provider signs by no method that is taken"
    return ""


def _told(error: Exception) -> OidcError:
    """Return the error by its kind and code alone: its words may repeat what the provider or a stranger sent."""
    if isinstance(error, MismatchingStateError):
        return OidcError("it answers no question of this browser (state)")
    said = [getattr(error, name, None) for name in ("error", "claim")]
    codes = ": ".join(str(code) for code in said if _is_code(code))
    return OidcError(f"{type(error).__name__}{f' ({codes})' if codes else ''}")


def _is_code(code: Any) -> bool:
    return isinstance(code, str) and code.replace("_", "").isalnum() and code.isascii() and len(code) <= 40  # noqa: PLR2004
