"""The variables of signing in: a bad value is refused with its name and the remedy, and no secret is repeated."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from omniroute_admin.environment import Environment
from omniroute_admin.environment_sign_in import long_secret, provider, role_mapping

ISSUER = "https://login.example.com/realms/main"


@pytest.mark.parametrize(
    ("values", "named", "read"),
    [
        ({"OIDC_ISSUER": ISSUER}, "OIDC_CLIENT_ID", provider),
        ({"OIDC_CLIENT_ID": "ladder"}, "OIDC_ISSUER", provider),
        ({"OIDC_ISSUER": "http://login.example.com", "OIDC_CLIENT_ID": "x"}, "OIDC_ISSUER", provider),
        ({"OIDC_ISSUER": "login.example.com", "OIDC_CLIENT_ID": "x"}, "OIDC_ISSUER", provider),
        ({"OIDC_ISSUER": "http://localhost.evil.example", "OIDC_CLIENT_ID": "x"}, "OIDC_ISSUER", provider),
        ({"OIDC_ISSUER": f"{ISSUER}?x=1", "OIDC_CLIENT_ID": "x"}, "OIDC_ISSUER", provider),
        ({"S": "hidden", "S_FILE": "/etc/hostname"}, "S_FILE", lambda env: env.secret("S")),
        ({"S_FILE": "/nowhere/at/all"}, "S_FILE", lambda env: env.secret("S")),
        ({"K": "hidden"}, "K", lambda env: long_secret(env, "K")),
        ({"R": "ops=emperor"}, "R", lambda env: role_mapping(env, "R")),
        ({"R": "ops"}, "R", lambda env: role_mapping(env, "R")),
        ({"R": "=operator"}, "R", lambda env: role_mapping(env, "R")),
        ({"R": "ops=operator,ops=viewer"}, "R", lambda env: role_mapping(env, "R")),
    ],
)
def test_a_bad_value_is_refused_with_its_name(values: Any, named: str, read: Callable[[Environment], Any]) -> None:
    with pytest.raises(ImproperlyConfigured) as refusal:
        read(Environment(values))
    assert str(refusal.value).startswith(f"{named}: ")
    assert "hidden" not in str(refusal.value)


def test_a_secret_comes_from_the_variable_or_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("from the file\n")
    assert Environment({"S_FILE": str(file)}).secret("S") == "from the file"
    assert Environment({"S": "from the variable"}).secret("S") == "from the variable"
    assert Environment({}).secret("S") == ""
    file.write_text("\n")
    with pytest.raises(ImproperlyConfigured, match="empty"):
        Environment({"S_FILE": str(file)}).secret("S")


@pytest.mark.parametrize(
    ("text", "mapping"),
    [
        ("", {}),
        ("ops=operator, boss = administrator,", {"ops": "operator", "boss": "administrator"}),
        ("cn=ops,dc=x=operator; b=viewer", {"cn=ops,dc=x": "operator", "b": "viewer"}),
    ],
)
def test_values_are_mapped_to_roles(text: str, mapping: dict[str, str]) -> None:
    assert role_mapping(Environment({"R": text}), "R") == mapping


@pytest.mark.parametrize("issuer", [ISSUER, "https://a.example/", "http://127.0.0.1:8080/realm", "http://localhost"])
def test_a_provider_is_reached_by_https_or_on_this_machine(issuer: str) -> None:
    assert provider(Environment({"OIDC_ISSUER": issuer, "OIDC_CLIENT_ID": "x"})) == (issuer, "x")
    assert provider(Environment({})) == ("", "")
