"""SPEC 4: errors are RFC 9457 problem documents; no traceback, no key, ever."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import DatabaseError, IntegrityError, OperationalError
from django.db.utils import ConnectionHandler
from django.http import Http404, HttpRequest, HttpResponse
from django.test import RequestFactory, override_settings
from django.urls import path
from rest_framework import exceptions as drf
from rest_framework.response import Response
from rest_framework.views import APIView

from omniroute_admin.common.errors import BadRequest, Conflict, FieldError, NotFound, Unauthenticated, UnknownPool
from omniroute_admin.common.problems import as_product_error, problem_response
from omniroute_admin.urls import urlpatterns as product_urls

RAISED: list[Exception] = []


def plain(request: HttpRequest) -> HttpResponse:
    raise RAISED[-1]


class Rest(APIView):
    authentication_classes = ()
    permission_classes = ()

    def get(self, request: Any) -> Response:
        raise RAISED[-1]


urlpatterns = [
    path("api/v1/plain", plain),
    path("api/v1/rest", Rest.as_view()),
    path("page/plain", plain),
    *product_urls,
]
handler404 = "omniroute_admin.common.problems.page_not_found"
handler500 = "omniroute_admin.common.problems.server_error"
middleware = ["omniroute_admin.common.problems.ProblemMiddleware", "django.middleware.common.CommonMiddleware"]
pytestmark = pytest.mark.urls(__name__)


@pytest.fixture(autouse=True)
def _wired() -> Any:
    handler = {"EXCEPTION_HANDLER": "omniroute_admin.common.problems.exception_handler"}
    with override_settings(MIDDLEWARE=middleware, REST_FRAMEWORK=handler):
        yield


def document(response: Any) -> dict[str, Any]:
    assert response["Content-Type"] == "application/problem+json"
    body: dict[str, Any] = json.loads(response.content)
    assert body["status"] == response.status_code
    assert {"type", "title", "detail", "code"} <= set(body)
    return body


CASES = [
    (BadRequest("x", errors=[FieldError(pointer="/a~1b", detail="d")]), 400, "invalid_body"),
    (Unauthenticated("x"), 401, "unauthenticated"),
    (UnknownPool("x", ids=["auto/thrifty"]), 404, "unknown_pool"),
    (Conflict("x", code="budget_spent", left_usd="1.00"), 409, "budget_spent"),
    (OperationalError("no route to host db.internal"), 503, "state_unavailable"),
    (IntegrityError("UNIQUE constraint failed: secret_table"), 409, "conflict"),
    (Http404("x"), 404, "not_found"),
    (PermissionDenied("x"), 403, "forbidden"),
    (ValidationError({"name": ["bad"], "__all__": ["both"]}), 400, "invalid_body"),
]


@pytest.mark.parametrize("address", ["/api/v1/plain", "/api/v1/rest"])
@pytest.mark.parametrize(("error", "status", "code"), CASES, ids=lambda value: getattr(type(value), "__name__", ""))
def test_an_exception_is_answered_by_its_problem(
    client: Any, address: str, error: Exception, status: int, code: str
) -> None:
    RAISED.append(error)
    response = client.get(address)
    assert (response.status_code, document(response)["code"]) == (status, code)
    assert (response.headers.get("WWW-Authenticate") == "Bearer") == (status == 401)
    assert b"db.internal" not in response.content
    assert b"secret_table" not in response.content


def test_errors_and_extra_members_are_in_the_document() -> None:
    bad = BadRequest("x", errors=[FieldError(pointer="/a~1b", detail="d", code="c")])
    assert document(problem_response(bad))["errors"] == [{"pointer": "/a~1b", "detail": "d", "code": "c"}]
    assert document(problem_response(UnknownPool("x", ids=["auto/thrifty"])))["ids"] == ["auto/thrifty"]


def test_a_key_is_never_repeated() -> None:
    key = "orl_" + "Ab9_-" * 8
    error = NotFound(f"no {key}", errors=[FieldError(pointer=f"/{key}", detail=key)], given=key)
    assert key[:13].encode() not in problem_response(error).content


@pytest.mark.parametrize("debug", [False, True])
def test_an_unforeseen_exception_shows_nothing_of_itself(client: Any, debug: bool) -> None:
    RAISED.append(RuntimeError("inner words"))
    client.raise_request_exception = False
    with override_settings(DEBUG=debug):
        for address in ("/api/v1/plain", "/api/v1/rest"):
            response = client.get(address)
            assert document(response)["code"] == "internal_server_error"
            assert b"inner words" not in response.content
            assert b"Traceback" not in response.content


def test_a_page_without_its_database_is_503_too(client: Any) -> None:
    RAISED.append(OperationalError("no route to host db.internal"))
    client.raise_request_exception = False
    response = client.get("/page/plain")
    assert (response.status_code, response["Content-Type"].split(";")[0]) == (503, "text/html")
    assert b"db.internal" not in response.content


@pytest.mark.django_db
def test_a_damaged_file_is_an_outage_as_well_and_a_row_that_is_gone_is_none(client: Any, tmp_path: Path) -> None:
    """SPEC 6: what cannot be judged fails towards not spending; a router is told 503, not 500."""
    file = tmp_path / "damaged.sqlite3"
    file.write_bytes(b"SQLite format 3\0" + b"\xff" * 8192)
    handler = ConnectionHandler({"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": str(file)}})
    with pytest.raises(DatabaseError) as caught, handler["default"].cursor() as cursor:
        cursor.execute("SELECT name FROM sqlite_master")
    handler.close_all()
    client.raise_request_exception = False
    for error, status in ((caught.value, 503), (DatabaseError("Forced update did not affect any rows."), 500)):
        for address in ("/api/v1/plain", "/api/v1/rest", "/page/plain"):
            RAISED.append(error)
            assert client.get(address).status_code == status, address
            RAISED.clear()


@pytest.mark.parametrize("debug", [False, True])
def test_an_unknown_address_of_the_api_is_a_problem_and_a_page_stays_a_page(client: Any, debug: bool) -> None:
    with override_settings(DEBUG=debug):
        for address in ("/api/v1/none", "/v1/none", "/api/v1/rest/"):
            assert document(client.get(address))["code"] == "not_found"
        assert client.get("/page/none")["Content-Type"].startswith("text/html")


def test_a_method_that_is_not_taken_names_those_that_are(client: Any) -> None:
    response = client.delete("/api/v1/rest")
    assert document(response)["code"] == "method_not_allowed"
    assert "GET" in response["Allow"]


def test_a_foreign_host_is_a_problem(client: Any) -> None:
    assert document(client.get("/api/v1/rest", headers={"host": "evil.example"}))["status"] == 400


def test_a_serializers_nested_errors_keep_their_pointers() -> None:
    error = as_product_error(
        drf.ValidationError(
            {
                "a/b": ["x"],
                "list": [{}, {"c": [drf.ErrorDetail("gone", code="required")]}],
                "items": {1: ["y"]},
                "non_field_errors": ["z"],
            }
        )
    )
    assert error is not None
    assert {(found.pointer, found.code) for found in error.errors} == {
        ("/a~1b", "invalid"),
        ("/list/1/c", "missing"),
        ("/items/1", "invalid"),
        ("", "invalid"),
    }


def test_a_models_errors_keep_their_pointers() -> None:
    error = as_product_error(ValidationError({"name": ["bad", "worse"], "__all__": ["both"]}))
    assert error is not None
    assert [found.pointer for found in error.errors] == ["/name", "/name", ""]
    plain_error = as_product_error(ValidationError("only words"))
    assert plain_error is not None
    assert [(found.pointer, found.detail) for found in plain_error.errors] == [("", "only words")]


def test_an_unforeseen_exception_has_no_product_error(rf: RequestFactory) -> None:
    assert as_product_error(RuntimeError("x")) is None
