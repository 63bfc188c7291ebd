"""Between the web server's events and Django: one thread in which requests are answered, one after the other."""

import asyncio
import queue
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from io import BytesIO
from typing import Any

from django.core.handlers.wsgi import WSGIHandler
from django.db import connections
from django.http import FileResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from omniroute_admin.common.asked import ARRIVED_AT

Headers = list[tuple[str, str]]
Answer = tuple[int, Headers, HttpResponseBase]
"""Status, headers, and the response whose content is still to be sent."""

_SAME_FOR_ALL: dict[str, Any] = {
    "SCRIPT_NAME": "",
    "SERVER_SOFTWARE": "granian",
    "wsgi.version": (1, 0),
    "wsgi.errors": sys.stderr,
    "wsgi.multithread": False,
    "wsgi.multiprocess": True,
    "wsgi.run_once": False,
}
_UNPREFIXED = {"CONTENT_TYPE", "CONTENT_LENGTH"}
_END = object()


def environ_of(scope: Any, body: bytes) -> dict[str, Any]:
    """Return what WSGI tells an application about a request of the web server."""
    server, _, port = scope.server.rpartition(":")
    environ = _SAME_FOR_ALL | {
        "SERVER_NAME": server.strip("[]"),
        "SERVER_PORT": port,
        "SERVER_PROTOCOL": f"HTTP/{scope.http_version}",
        "REMOTE_ADDR": scope.client.rpartition(":")[0].strip("[]"),
        "REQUEST_METHOD": scope.method,
        # WSGI wants the bytes of the path, each as one character.
        "PATH_INFO": scope.path.encode().decode("latin-1"),
        "QUERY_STRING": scope.query_string,
        "wsgi.url_scheme": scope.scheme,
        "wsgi.input": BytesIO(body),
    }
    _add_headers(environ, scope.headers.items())
    if scope.authority and "HTTP_HOST" not in environ:  # as HTTP/2 has it
        environ["HTTP_HOST"] = scope.authority
    return environ


def _add_headers(environ: dict[str, Any], headers: Headers) -> None:
    for header, value in headers:
        # `X_Forwarded_Proto` would pass for the `X-Forwarded-Proto` that a proxy sets and guards.
        if "_" in header:
            continue
        name = header.upper().replace("-", "_")
        if name not in _UNPREFIXED:
            name = f"HTTP_{name}"
        if name in environ:
            environ[name] += f"{'; ' if name == 'HTTP_COOKIE' else ','}{value}"
        else:
            environ[name] = value


def ask(django: WSGIHandler, scope: Any, body: bytes, arrived_at: float) -> Answer:
    """Let Django answer a request; `arrived_at` is the reading of `perf_counter` since when it waits."""
    told: list[tuple[str, Headers]] = []

    def start(status: str, headers: Headers, exc_info: Any = None, /) -> Callable[[bytes], object]:
        told.append((status, headers))
        return _write_nothing

    environ = environ_of(scope, body)
    environ[ARRIVED_AT] = arrived_at
    response = django(environ, start)
    status, headers = told[0]
    return int(status[:3]), headers, response


def _write_nothing(piece: bytes) -> None:
    raise NotImplementedError("Django hands its content back.")


class Desk:
    """Answers requests in one thread of its own: Django's database connections and caches belong to a thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: queue.SimpleQueue[tuple[Callable[[], Answer], Any, asyncio.Future[Any]]] = queue.SimpleQueue()
        threading.Thread(target=self._work, name="desk", daemon=True).start()

    async def serve(self, asked: Callable[[], Answer], protocol: Any) -> None:
        """Call `asked` in the thread and send what it returns; what is made while it is sent comes in pieces."""
        done = self._loop.create_future()
        self._waiting.put((asked, protocol, done))
        streamed = await done
        if streamed is not None:
            await _stream(self._loop, streamed, protocol)

    def _work(self) -> None:
        while True:
            asked, protocol, done = self._waiting.get()
            tell: Callable[[Any], None] = done.set_result
            try:
                said: Any = send(asked(), protocol)
            except BaseException as error:  # noqa: BLE001 - whatever it is, the web server has to tell it
                tell, said = done.set_exception, error
            with suppress(RuntimeError):  # the loop has ended before the answer came
                self._loop.call_soon_threadsafe(tell, said)


def send(answer: Answer, protocol: Any) -> Answer | None:
    """Send an answer; one that is made while it is sent is returned instead."""
    status, headers, response = answer
    if isinstance(response, StreamingHttpResponse) and not isinstance(response, FileResponse):
        return answer
    try:
        protocol.response_bytes(status, headers, b"".join(response))
    finally:
        response.close()
    return None


async def _stream(loop: asyncio.AbstractEventLoop, answer: Answer, protocol: Any) -> None:
    status, headers, response = answer
    # The pieces come from the database: all of them in one thread, whose connections end with it.
    with ThreadPoolExecutor(max_workers=1) as thread:
        try:
            pieces: Iterator[Any] = iter(response)
            transport = protocol.response_stream(status, headers)
            while (piece := await loop.run_in_executor(thread, next, pieces, _END)) is not _END:
                await transport.send_bytes(piece)
        finally:
            await loop.run_in_executor(thread, _close, response)


def _close(response: HttpResponseBase) -> None:
    response.close()
    connections.close_all()
