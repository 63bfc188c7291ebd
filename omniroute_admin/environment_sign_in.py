"""The variables of signing in. A bad value is refused with its name and the remedy; a secret is never repeated."""

import re

from omniroute_admin.common.core.roles import ROLES
from omniroute_admin.environment import Environment, refusal

_TOTP_KEY_LENGTH = 32
_HERE = r"http://(localhost|127\.0\.0\.1|\[::1\])(:\d+)?"


def provider(env: Environment) -> tuple[str, str]:
    """Return the address of the provider of single sign-on and our name there; both are empty where there is none.

    Raises:
        ImproperlyConfigured: one is there without the other, or the address is not of HTTPS.
    """
    issuer, client = env.text("OIDC_ISSUER"), env.text("OIDC_CLIENT_ID")
    if issuer and not re.fullmatch(rf"(https://[^/\s?#]+|{_HERE})(/[^\s?#]*)?", issuer):
        remedy = "write it as the provider does, as in https://login.example.com/realms/main"
        raise refusal("OIDC_ISSUER", "it is no https:// address", remedy)
    if bool(issuer) != bool(client):
        missing, given = ("OIDC_CLIENT_ID", "OIDC_ISSUER") if issuer else ("OIDC_ISSUER", "OIDC_CLIENT_ID")
        raise refusal(missing, f"it is missing, and {given} is there", "set both, or neither")
    return issuer, client


def long_secret(env: Environment, name: str) -> str:
    """Return a key that may be left out.

    Raises:
        ImproperlyConfigured: it is too short.
    """
    value = env.secret(name)
    if value and len(value) < _TOTP_KEY_LENGTH:
        problem = f"it has fewer than {_TOTP_KEY_LENGTH} characters"
        raise refusal(name, problem, "give a longer random text, or leave it out")
    return value


def role_mapping(env: Environment, name: str) -> dict[str, str]:
    """Return what roles the values of a claim stand for: `value=role`, with commas between, or `;` where it has one.

    Raises:
        ImproperlyConfigured: a part is none, a role is unknown, or a value stands for two.
    """
    text = env.text(name)
    found: dict[str, str] = {}
    for part in filter(None, (one.strip() for one in text.split(";" if ";" in text else ","))):
        # From the right: a value may be a name of a directory, as in cn=ops,dc=example=operator.
        value, _, role = (piece.strip() for piece in part.rpartition("="))
        if not value or role not in ROLES:
            raise refusal(name, f"{part!r} maps no value to a role", f"write value=role, role of {', '.join(ROLES)}")
        if value in found:
            raise refusal(name, f"{value!r} is there twice", "map each value once")
        found[value] = role
    return found
