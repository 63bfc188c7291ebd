"""What is being answered: the id of each request, for its lines in the log and its answer, and how long it took.

The outermost middleware of all, so that it stands on every request's way, whoever serves: a microsecond here is one of
every pool call.
"""

import logging
import os
import re
from collections.abc import Callable
from itertools import count
from time import perf_counter

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.encoding import escape_uri_path

from omniroute_admin.common.meters import REQUESTS
from omniroute_admin.common.present import PRESENT, Work

ARRIVED_AT = "omniroute.arrived_at"
"""In a request's META: the reading of `perf_counter` at which all of it was there, where the server tells."""

_GIVEN = re.compile(r"[A-Za-z0-9._-]{1,64}")
_METHODS = {name: name for name in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")}
_CLASSES = {number: f"{number}xx" for number in range(1, 6)}
_access = logging.getLogger("omniroute_admin.access")
_numbers = count(1)
_start = os.urandom(6).hex()


def request_id_of(given: str | None) -> str:
    """Return the id that a caller gave, where it can stand in a header and a line of the log, else a new one."""
    if given is not None and _GIVEN.fullmatch(given):
        return given
    return f"{_start}-{next(_numbers):x}"


def observing(get_response: Callable[[HttpRequest], HttpResponseBase]) -> Callable[[HttpRequest], HttpResponseBase]:
    """Return the middleware: an id for each request, its time among the metrics, and a line where that is wanted."""
    says = settings.ACCESS_LOG

    def observed(request: HttpRequest) -> HttpResponseBase:
        meta = request.META
        started = meta.get(ARRIVED_AT) or perf_counter()
        request_id = request_id_of(meta.get("HTTP_X_REQUEST_ID"))
        request.request_id = request_id  # type: ignore[attr-defined]
        token = PRESENT.set(Work(request_id, request))
        try:
            response = get_response(request)
        finally:
            PRESENT.reset(token)
        response.headers["X-Request-Id"] = request_id
        status, took = response.status_code, perf_counter() - started
        method = _METHODS.get(request.method or "", "other")
        REQUESTS.observe((route_of(request), method, _CLASSES.get(status // 100, "other")), took)
        if says:
            _tell(request, status, took)
        return response

    return observed


def route_of(request: HttpRequest) -> str:
    """Return the template of a request's address; never the address, of which there are any number."""
    match = request.resolver_match
    if match is not None:
        return match.route
    return "static" if request.path_info.startswith(settings.STATIC_URL) else "unmatched"


def _tell(request: HttpRequest, status: int, took: float) -> None:
    """Write the line of a request; what was asked beside the path may be anybody's secret and is left out."""
    path, milliseconds = escape_uri_path(request.path), round(took * 1000, 3)
    more = {"request": request, "status_code": status, "duration_ms": milliseconds, "path": path}
    _access.info("%s %s %d %.3f ms", request.method, path, status, milliseconds, extra=more)


def _begin_anew() -> None:
    """Give other ids after a fork than the parent does."""
    global _start  # noqa: PLW0603 - one per process
    _start = os.urandom(6).hex()


os.register_at_fork(after_in_child=_begin_anew)
