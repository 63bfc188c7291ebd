"""Errors as RFC 9457 problem documents: one form for every refusal under /api/ and /v1/ (SPEC 4)."""

import logging
import re
import sqlite3
import sys
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Any

import msgspec
from django.conf import settings
from django.core.exceptions import NON_FIELD_ERRORS, PermissionDenied, RequestDataTooBig
from django.core.exceptions import ValidationError as ModelError
from django.db import DatabaseError, IntegrityError, InterfaceError, OperationalError
from django.db.models import ProtectedError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.template.loader import render_to_string
from django.views.defaults import page_not_found as default_page_not_found
from django.views.defaults import server_error as default_server_error
from rest_framework import exceptions as drf
from rest_framework.views import set_rollback

from omniroute_admin.common.constraints import field_errors
from omniroute_admin.common.core.keys import blotted
from omniroute_admin.common.denials import DENIED, is_turned_away, note_denial, note_response
from omniroute_admin.common.errors import (
    BadRequest,
    Conflict,
    FieldError,
    Forbidden,
    MalformedJson,
    NotFound,
    ProductError,
    RateLimited,
    StateUnavailable,
    TooLarge,
    Unauthenticated,
    escape_pointer,
)
from omniroute_admin.common.meters import PROBLEMS

CONTENT_TYPE = "application/problem+json"
_API_PATHS = ("/api/", "/v1/", "/metrics")
_BODY_WIDE = {"non_field_errors", NON_FIELD_ERRORS}
_REFUSED, _LED_ELSEWHERE = 400, 302
# A caller may have put a key where it does not belong; an answer that repeats it would spread it.
_KEY = re.compile(rb"orl_[A-Za-z0-9_-]{8,}")
_log = logging.getLogger(__name__)


def is_api(path: str) -> bool:
    """Tell whether a path belongs to the API, where every error is a problem document."""
    return path.startswith(_API_PATHS)


def problem_document(error: ProductError) -> dict[str, Any]:
    """Return the members of the problem document of an error."""
    document: dict[str, Any] = {
        "type": "about:blank",
        "title": error.title,
        "status": error.status,
        "detail": error.detail,
        "code": error.code,
    }
    if error.errors:
        document["errors"] = error.errors
    return document | error.extra


def problem_response(error: ProductError) -> HttpResponse:
    """Return the answer that tells an error; a key in it is blotted out."""
    PROBLEMS.add((error.code,))
    body = _KEY.sub(b"orl_...", msgspec.json.encode(problem_document(error)))
    response = HttpResponse(body, status=error.status, content_type=CONTENT_TYPE)
    response["Cache-Control"] = "no-store"
    if error.status == HTTPStatus.UNAUTHORIZED:
        response["WWW-Authenticate"] = "Bearer"
    if isinstance(error, RateLimited):
        response["Retry-After"] = str(error.wait)
    response.denied = error.code  # type: ignore[attr-defined] # for the log, where it is a denial
    return response


class _HttpError(ProductError):
    """An error of HTTP itself that the product has no word of its own for (405, 415, ...)."""

    def __init__(self, status: int, detail: str, code: str | None = None) -> None:
        name = HTTPStatus(status)
        super().__init__(detail, code=code or name.phrase.lower().replace(" ", "_").replace("-", "_"))
        self.status = status  # type: ignore[misc]
        self.title = name.phrase  # type: ignore[misc]


def unavailable(error: BaseException | None = None) -> StateUnavailable:
    """Return the error of a database out of reach, or of one whose disk is full."""
    if _is_full(error):
        return StateUnavailable("The database has no room to write: nothing of this call was kept. Free its disk.")
    return StateUnavailable("The database cannot be reached; nothing is decided from memory. Try again.")


def _is_full(error: BaseException | None) -> bool:
    """Tell whether the driver said that it cannot write for want of room: SQLite's code, or PostgreSQL's."""
    cause = getattr(error, "__cause__", None)
    full = getattr(cause, "sqlite_errorcode", None) in _NO_ROOM or getattr(cause, "sqlstate", None) == _DISK_FULL
    return bool(full)


_NO_ROOM = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE}
_DISK_FULL = "53100"


def is_outage(error: BaseException | None) -> bool:
    """Tell whether an exception means that the database is out of reach, damaged or too busy to answer."""
    return isinstance(error, OperationalError | InterfaceError) or _is_damage(error)


def _is_damage(error: BaseException | None) -> bool:
    """Tell whether SQLite found its file damaged: the one error for which its driver has no narrower class.

    Django raises the same class by itself where a row to save is gone; no driver's error stands behind that one.
    """
    return type(error) is DatabaseError and error.__cause__ is not None


def as_product_error(error: BaseException) -> ProductError | None:
    """Return what an exception means to a caller; None for one that nobody foresaw."""
    if isinstance(error, ProductError):
        return error
    if is_outage(error):
        reason = "has no room to write" if _is_full(error) else "is out of reach"
        _log.error("the database %s: %s", reason, type(error).__name__)
        return unavailable(error)
    if isinstance(error, drf.APIException):
        return _of_rest_framework(error)
    return _of_django(error)


_MEANINGS: dict[type[BaseException], Callable[[], ProductError]] = {
    Http404: lambda: NotFound("There is nothing at this address."),
    PermissionDenied: lambda: Forbidden("This is not allowed.", code="forbidden"),
    RequestDataTooBig: lambda: TooLarge("The body is larger than this product reads."),
    ProtectedError: lambda: Conflict("Other rows need this one.", code="in_use"),
    IntegrityError: lambda: Conflict("Another row has these values already, or one that this names is gone."),
}


def _of_django(error: BaseException) -> ProductError | None:
    if isinstance(error, ModelError):
        return BadRequest("The request is not valid.", errors=field_errors(error))
    return next((meaning() for kind, meaning in _MEANINGS.items() if isinstance(error, kind)), None)


def _of_rest_framework(error: drf.APIException) -> ProductError:
    if isinstance(error, drf.ValidationError):
        return BadRequest("The request is not valid.", errors=list(serializer_errors(error.detail)))
    if isinstance(error, drf.ParseError):
        return MalformedJson("The body is not JSON.")
    if isinstance(error, drf.NotAuthenticated | drf.AuthenticationFailed):
        return Unauthenticated("Send a key: Authorization: Bearer <key>.")
    if isinstance(error, drf.PermissionDenied):
        csrf = str(error.detail).startswith("CSRF")
        return Forbidden(str(error.detail), code="csrf_failed" if csrf else "forbidden")
    if isinstance(error, drf.NotFound):
        return NotFound("There is nothing at this address.")
    return _HttpError(error.status_code, str(error.detail))


def serializer_errors(detail: Any, pointer: str = "") -> Iterator[FieldError]:
    """Yield the errors in a serializer's nested answer, each with its JSON pointer."""
    if isinstance(detail, dict):
        for name, inner in detail.items():
            yield from serializer_errors(inner, pointer + _pointer(str(name)))
    elif isinstance(detail, list | tuple):
        nested = any(isinstance(inner, dict | list) for inner in detail)
        for index, inner in enumerate(detail):
            yield from serializer_errors(inner, f"{pointer}/{index}" if nested else pointer)
    else:
        yield FieldError(pointer=pointer, detail=str(detail), code=_code(detail))


def _pointer(name: str) -> str:
    return "" if name in _BODY_WIDE else f"/{escape_pointer(name)}"


def _code(detail: Any) -> str:
    """Return the code of a serializer's message in the words that bodies use."""
    code = getattr(detail, "code", None) or "invalid"
    return "missing" if code == "required" else str(code)


def exception_handler(exc: Exception, context: dict[str, Any]) -> HttpResponse | None:
    """Answer a REST framework view's exception; None lets an unforeseen one go on to become a 500."""
    error = as_product_error(exc)
    if error is None:
        return None
    set_rollback()
    return problem_response(error)


def without_keys(response: HttpResponseBase) -> HttpResponseBase:
    """Return a page of an error without keys: the one that DEBUG shows for an unknown address repeats the address."""
    if isinstance(response, HttpResponse) and b"orl_" in response.content:
        response.content = blotted(response.content.decode(response.charset, "replace")).encode()
        response["Content-Length"] = str(len(response.content))
    return response


class ProblemMiddleware:
    """Makes every error under /api/ and /v1/ a problem document, whoever answered it. Stands first in the list."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer the request; an error page becomes a problem document, a denial is logged."""
        response = self.get_response(request)
        status = response.status_code
        if status < _REFUSED:
            if status == _LED_ELSEWHERE and is_turned_away(request, response):
                note_denial(request, code="signed_out")
            return response
        if status in DENIED:
            note_response(request, response)
        if not is_api(request.path_info):
            return without_keys(response) if settings.DEBUG else response
        if response.headers.get("Content-Type", "").startswith(CONTENT_TYPE):
            return response
        return _replaced(response)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Answer the exception of a plain view."""
        if not is_api(request.path_info):
            return None
        error = as_product_error(exception)
        return problem_response(error) if error is not None else None


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer an unknown address (Django's handler404); the API needs no page made for that."""
    if is_api(request.path_info):
        return problem_response(NotFound("There is nothing at this address."))
    return default_page_not_found(request, exception)


def server_error(request: HttpRequest, *args: Any) -> HttpResponse:
    """Answer a request that failed (Django's handler500): 503 where the database is out of reach."""
    error = sys.exc_info()[1]
    outage = is_outage(error)
    if is_api(request.path_info):
        # No page is drawn for it: what failed may be what pages are drawn with.
        return problem_response(unavailable(error) if outage else _HttpError(500, _DETAILS[500]))
    return _outage_page(request) if outage else default_server_error(request)


def _outage_page(request: HttpRequest) -> HttpResponse:
    """Return the page that says so, drawn without anything that is read from the database."""
    is_get = request.method in {"GET", "HEAD"}
    context = {"is_get": is_get, "address": request.get_full_path() if is_get else "/"}
    page = render_to_string("503.html", context)
    headers = {"Retry-After": "10", "Cache-Control": "no-store"}
    return HttpResponse(page, status=HTTPStatus.SERVICE_UNAVAILABLE, headers=headers)


_DETAILS = {
    400: "The request is not valid.",
    403: "This is not allowed.",
    404: "There is nothing at this address.",
    405: "This address does not take that method.",
    500: "Something went wrong here; it was written to the log.",
}


def _replaced(response: HttpResponseBase) -> HttpResponse:
    """Return the problem document in place of an error page, with the headers that say how to go on."""
    status = response.status_code
    detail = _DETAILS.get(status, f"{HTTPStatus(status).phrase}.")
    answer = problem_response(_HttpError(status, detail))
    for name in ("Allow", "Retry-After"):
        if name in response.headers:
            answer[name] = response.headers[name]
    return answer
