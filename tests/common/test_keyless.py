"""SPEC 4: the text of a key belongs into one header; bodies, forms and files that hold one are refused unread."""

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory

from omniroute_admin.common.bodies import read_body
from omniroute_admin.common.core.keys import blotted, holds_secret
from omniroute_admin.common.errors import BadRequest
from omniroute_admin.common.keyless import NoKeysInForms
from omniroute_admin.common.selectors.revision import current_revision
from tests.router import make_router

SECRET = "orl_" + "aB3_-x" * 7 + "Z"


@pytest.mark.parametrize(
    ("body", "is_refused"),
    [
        (f'{{"label": "{SECRET}"}}'.encode(), True),
        (f"\xff\xfe{SECRET}".encode("latin-1"), True),
        (f"x{SECRET}y".encode(), True),
        (SECRET[:-1].encode(), False),
        (f'{{"what": "{SECRET[:12]}"}}'.encode(), False),
        (b'{"provider": "orl_"}', False),
        (b"", False),
    ],
)
def test_a_body_that_holds_a_whole_key_is_refused(rf: RequestFactory, body: bytes, is_refused: bool) -> None:
    request = rf.generic("POST", "/api/v1/connections", body, content_type="application/json")
    if not is_refused:
        assert read_body(request) == body
        return
    with pytest.raises(BadRequest) as refused:
        read_body(request)
    assert refused.value.code == "key_in_body"
    assert SECRET[4:9] not in refused.value.detail


@pytest.mark.django_db
def test_nothing_of_a_refused_body_is_kept() -> None:
    router = make_router()
    before = current_revision()
    response: Any = router.post("/api/v1/connections", {"connection_id": "c2", "provider": "x", "label": SECRET})
    assert (response.status_code, response.json()["code"]) == (400, "key_in_body")
    assert current_revision() == before
    assert router.get("/api/v1/connections/c2").status_code == 404


def passed(request: HttpRequest) -> bool:
    middleware = NoKeysInForms(lambda request: HttpResponse())
    return middleware.process_view(request, None, (), {}) is None


def test_a_form_is_refused_for_a_key_in_any_field_or_name(rf: RequestFactory, db: None) -> None:
    assert passed(rf.post("/tuning", {"reason": "leaked: " + SECRET[:12]}))
    assert not passed(rf.post("/tuning", {"reason": f"leaked: {SECRET}"}))
    assert not passed(rf.post("/tuning", {SECRET: "x"}))
    assert not passed(rf.post("/tuning", {"scopes": ["a", SECRET]}))


@pytest.mark.parametrize("where", [0, 65_530, 65_536, 131_040, 200_000])
def test_a_file_is_refused_for_a_key_anywhere_in_it_and_is_read_afterwards(
    rf: RequestFactory, where: int, db: None
) -> None:
    plain = b"y" * where
    file = SimpleUploadedFile("x.csv", plain + SECRET.encode() + b"," * 70_000)
    assert not passed(rf.post("/catalogue/files", {"file": file}))
    request = rf.post("/catalogue/files", {"file": SimpleUploadedFile("x.csv", plain)})
    assert passed(request)
    assert request.FILES["file"].read() == plain
    assert not passed(rf.post("/catalogue/files", {"file": SimpleUploadedFile(f"{SECRET}.csv", b"x")}))


def test_what_only_looks_and_what_the_api_is_sent_is_not_looked_through(rf: RequestFactory) -> None:
    assert passed(rf.get("/audit", {"what": SECRET}))
    assert passed(rf.post("/api/v1/pools", SECRET, content_type="text/plain"))


@pytest.mark.django_db
def test_the_page_says_what_to_do_and_shows_nothing_of_it(client: Client, django_user_model: Any) -> None:
    client.force_login(django_user_model.objects.create_superuser("mira"))
    response = client.post("/keys/new", {"name": SECRET})
    page = response.content.decode()
    assert response.status_code == 400
    assert "rotate or revoke it" in page
    assert SECRET[:9] not in page


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"key {SECRET}.", "key orl_aB3_...."),
        (f"{SECRET} {SECRET}", "orl_aB3_... orl_aB3_..."),
        (SECRET[:20], "orl_aB3_..."),
        (SECRET[:13], "orl_aB3_..."),
        (SECRET[:12], SECRET[:12]),
        ("nothing", "nothing"),
    ],
)
def test_what_is_blotted_out_leaves_the_prefix_alone(text: str, left: str) -> None:
    assert blotted(text) == left
    assert not holds_secret(blotted(text))
