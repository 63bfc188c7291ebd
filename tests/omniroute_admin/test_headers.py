"""What a browser is told of every page: one strict policy without `unsafe-inline`, no framing, no sniffing, no leaking.

Every page works without an inline script or style, so that no nonce is needed: `'self'` alone is stricter.
"""

from typing import Any

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import reverse

from omniroute_admin.common.history import Actor
from omniroute_admin.common.services.keys import create_key
from tests.factories_ladder import NOW
from tests.omniroute_admin.test_who_may import PAGES, WAYS_IN, there  # noqa: F401 - a fixture
from tests.processes import manage

pytestmark = pytest.mark.django_db

OF_ALL = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}
OF_PAGES = OF_ALL | {"Cross-Origin-Resource-Policy": "same-origin"}
POLICY = {
    "default-src": "'self'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "object-src": "'none'",
    "base-uri": "'none'",
    "form-action": "'self'",
    "frame-ancestors": "'none'",
}


def policy_of(response: Any) -> dict[str, str]:
    parts = (part.strip().partition(" ") for part in response["Content-Security-Policy"].split(";"))
    return {name: value for name, _, value in parts}


def assert_page(address: str, response: Any) -> None:
    assert {name: response.get(name) for name in OF_PAGES} == OF_PAGES, address
    assert policy_of(response) == POLICY, address
    assert "camera=()" in response["Permissions-Policy"], address


def test_every_page_and_every_refusal_has_the_headers(client: Client, django_user_model: Any, there: Any) -> None:  # noqa: F811
    for address, _, _ in WAYS_IN.values():
        assert_page(address, client.get(address))
    client.force_login(django_user_model.objects.create_superuser("root"))
    for line in PAGES.values():
        address = line.address.format(**there)
        assert_page(address, client.get(address))
    for address in ("/nothing-here", "/admin/", "/api/docs/", "/api/v1/settings"):
        assert_page(address, client.get(address))
    for model in admin.site._registry:
        address = reverse(f"admin:{model._meta.label_lower.replace('.', '_')}_changelist")
        assert_page(address, client.get(address))


def test_no_page_holds_a_script_or_a_style_of_its_own(client: Client, django_user_model: Any, there: Any) -> None:  # noqa: F811
    client.force_login(django_user_model.objects.create_superuser("root", password="correct-horse-battery-9"))
    for line in PAGES.values():
        response = client.get(line.address.format(**there))
        if response.streaming:
            continue
        text = response.content.decode(errors="replace")
        assert "<style" not in text, line.address
        assert " style=" not in text, line.address
        assert "<script>" not in text, line.address
        assert " onclick=" not in text, line.address


def test_a_call_by_a_key_has_what_costs_nothing(client: Client) -> None:
    _, secret = create_key(name="r", scopes=["pools:read"], expires_at=None, actor=Actor(name="t"), reason="", now=NOW)
    for address in ("/api/v1/pools", "/api/v1/settings", "/api/v1/nothing"):
        response = client.get(address, headers={"authorization": f"Bearer {secret}"})
        assert {name: response.get(name) for name in OF_ALL} == OF_ALL, address


def test_over_https_browsers_are_told_to_remember(client: Client, settings: Any) -> None:
    settings.SECURE_HSTS_SECONDS = 31_536_000
    # The middleware reads the setting when it is made, so a client that makes one anew asks.
    assert Client().get("/login", secure=True)["Strict-Transport-Security"] == "max-age=31536000"
    assert "Strict-Transport-Security" not in Client().get("/login")


def test_the_check_of_a_deployment_finds_nothing(tmp_path: Any) -> None:
    key = "ci-" * 10 + "0123456789-abcdefghijklmnopqrstuvwxyz"
    given = {"SECURE_SSL": "true", "ALLOWED_HOSTS": "ladder.example.com", "SECRET_KEY": key, "VAR_DIR": str(tmp_path)}
    # What Playwright needs of these tests is none of a deployment.
    done = manage("check", "--deploy", "--fail-level", "WARNING", DJANGO_ALLOW_ASYNC_UNSAFE="", **given)
    assert done.returncode == 0, done.stderr
    assert "no issues" in done.stdout + done.stderr
