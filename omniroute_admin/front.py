"""What stands between the web server and Django: it collects bodies beside the thread that answers.

granian's WSGI interface hands a request on as soon as its headers are there; whoever then sends the body slowly holds
the thread that reads it, without end. RSGI, granian's own interface, lets bodies come in side by side.
"""

import asyncio
import logging
from functools import partial
from time import perf_counter
from typing import Any

from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler

from omniroute_admin.arriving import Arrivals, declared_bytes
from omniroute_admin.common.asked import request_id_of
from omniroute_admin.common.errors import ProductError
from omniroute_admin.common.problems import problem_response
from omniroute_admin.desk import Desk, ask, send

_log = logging.getLogger(__name__)


class Application:
    """What granian calls: once at the start of a process, then for each request."""

    def __init__(self, django: WSGIHandler) -> None:
        self._django = django

    def __rsgi_init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to answer."""
        self._desk = Desk(loop)
        self._arrivals = Arrivals(
            most_bytes=settings.DATA_UPLOAD_MAX_MEMORY_SIZE,
            most_together=settings.BODIES_MAX_BYTES,
            seconds=settings.BODY_SECONDS,
        )

    async def __rsgi__(self, scope: Any, protocol: Any) -> None:
        """Answer a request, or refuse what never became one."""
        try:
            declared = declared_bytes(scope.headers)
            if not declared:
                await self._answer(scope, protocol, b"")
                return
            async with self._arrivals.body(protocol, declared=declared) as body:
                await self._answer(scope, protocol, body)
        except ProductError as error:
            _refuse(error, scope, protocol)

    async def _answer(self, scope: Any, protocol: Any, body: bytes) -> None:
        await self._desk.serve(partial(ask, self._django, scope, body, perf_counter()), protocol)


def _refuse(error: ProductError, scope: Any, protocol: Any) -> None:
    request_id = request_id_of(scope.headers.get("x-request-id"))
    _log.info("a body was refused: %s [%s]", error.code, request_id)
    response = problem_response(error)
    response["X-Request-Id"] = request_id
    # What is left of the body is not read: no other request can come on this connection.
    send((response.status_code, [*response.items(), ("Connection", "close")], response), protocol)
