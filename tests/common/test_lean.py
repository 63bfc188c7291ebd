"""A router's call goes past what only people need; nothing else does."""

import pytest
from django.test import Client, RequestFactory

from omniroute_admin.common.lean import is_keyed
from omniroute_admin.common.services.keys import create_key
from tests.factories_ladder import NOW, OPERATOR

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("path", "header", "passes"),
    [
        ("/api/v1/pools", "Bearer orl_x", True),
        ("/v1/models", "Bearer orl_x", True),
        ("/api/v1/pools", None, False),
        ("/", "Bearer orl_x", False),
        ("/admin/", "Bearer orl_x", False),
        ("/api/docs/", "Bearer orl_x", False),
        ("/apiary", "Basic x", False),
    ],
)
def test_only_a_call_of_the_api_with_a_header_goes_past(rf: RequestFactory, path, header, passes):
    headers = {} if header is None else {"authorization": header}
    assert is_keyed(rf.get(path, headers=headers)) is passes


def test_a_call_with_a_key_looks_at_no_cookie_and_a_page_has_its_policy(client: Client, django_user_model):
    client.force_login(django_user_model.objects.create_superuser("mira"))
    _, secret = create_key(
        name="router", scopes=["pools:read"], expires_at=None, actor=OPERATOR, reason="a test", now=NOW
    )
    by_key = client.get("/api/v1/settings", headers={"authorization": f"Bearer {secret}"})
    assert by_key.status_code == 403
    assert "Content-Security-Policy" not in by_key
    assert client.get("/api/v1/settings").status_code == 200
    assert client.get("/api/v1/settings", headers={"authorization": "Bearer wrong"}).status_code == 401
    page = client.get("/", headers={"authorization": "Bearer wrong"})
    assert (page.status_code, "Content-Security-Policy" in page) == (200, True)
