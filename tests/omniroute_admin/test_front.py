"""Clients that send slowly, or too much, are sent away; nobody else notices them."""

import asyncio
import contextlib
import json
import os
import re
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

import pytest

from omniroute_admin.arriving import Arrivals, declared_bytes
from omniroute_admin.bench.client import Answer, Client, request
from omniroute_admin.common.errors import BadRequest, LengthNeeded, TooBusy, TooLarge, TooSlow
from omniroute_admin.desk import environ_of
from omniroute_admin.programs import programs_to_run
from tests.processes import free_port, is_running, manage, running, until

HOST = "127.0.0.1"
SLOW_CLIENTS = 50
NEVER = 3_600.0
PASSWORD = "correct-horse-battery"
EXPORT = "/spend/events.csv"


async def sent(*pieces: bytes, then: asyncio.Event | None = None) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
    if then is not None:
        await then.wait()
    yield b""


def run(work):
    """Await something in a thread of its own: the browser of other tests keeps a loop in this one."""
    with ThreadPoolExecutor(1) as one:
        return one.submit(asyncio.run, work).result()


def arrivals(*, most_bytes: int = 100, most_together: int = 1_000, seconds: float = NEVER) -> Arrivals:
    return Arrivals(most_bytes=most_bytes, most_together=most_together, seconds=seconds)


async def received(arriving: Arrivals, *pieces: bytes, declared: int, then: asyncio.Event | None = None) -> bytes:
    async with arriving.body(sent(*pieces, then=then), declared=declared) as body:
        return body


# --- bodies on their way ---------------------------------------------------------------------------------------------
def test_a_body_is_what_its_pieces_are_together() -> None:
    assert run(received(arrivals(), b"ab", b"c", declared=3)) == b"abc"


def test_a_body_that_says_it_is_too_large_is_refused_and_not_read() -> None:
    async def unread() -> AsyncIterator[bytes]:
        raise AssertionError("it was read")
        yield b""

    async def refused() -> None:
        async with arrivals(most_bytes=100).body(unread(), declared=101):
            raise AssertionError("it was handed on")

    with pytest.raises(TooLarge, match="at most 100 bytes"):
        run(refused())


def test_a_body_that_is_not_there_in_time_is_refused() -> None:
    async def dripping() -> bytes:
        return await received(arrivals(seconds=0.001), b"[", declared=9, then=asyncio.Event())

    with pytest.raises(TooSlow):
        run(dripping())


def test_a_body_that_breaks_off_is_refused() -> None:
    with pytest.raises(BadRequest) as refusal:
        run(received(arrivals(), b"ab", declared=3))
    assert refusal.value.code == "unreadable_body"


def test_the_largest_body_goes_when_all_together_are_too_large_and_the_others_arrive() -> None:
    async def together() -> list[bytes | BaseException]:
        arriving, end = arrivals(most_together=150), asyncio.Event()
        large = asyncio.create_task(received(arriving, b"x" * 90, declared=100, then=end))
        await asyncio.sleep(0)
        small = [await received(arriving, b"y" * 30, declared=30)]
        kept = asyncio.create_task(received(arriving, b"z" * 61, declared=70, then=end))
        return [*small, *await asyncio.gather(large, return_exceptions=True), await _ended(kept)]

    small, large, kept = run(together())
    assert small == b"y" * 30
    assert isinstance(large, TooBusy)
    assert kept == "waits"


async def _ended(task: "asyncio.Task[bytes]") -> str:
    waits = not task.done()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    return "waits" if waits else "ended"


def test_a_body_counts_until_its_request_is_answered_and_no_longer() -> None:
    async def two() -> bytes:
        arriving = arrivals(most_together=150)
        async with arriving.body(sent(b"x" * 100), declared=100):
            with pytest.raises(TooBusy):
                await received(arriving, b"y" * 60, declared=60)
        return await received(arriving, b"z" * 100, declared=100)

    assert run(two()) == b"z" * 100


def test_a_request_says_how_long_its_body_is() -> None:
    assert declared_bytes({}) == 0
    assert declared_bytes({"content-length": "12"}) == 12
    with pytest.raises(LengthNeeded):
        declared_bytes({"transfer-encoding": "chunked"})
    with pytest.raises(BadRequest):
        declared_bytes({"content-length": "-1"})


# --- what Django is told ---------------------------------------------------------------------------------------------
class Headers(NamedTuple):
    pairs: list[tuple[str, str]]

    def items(self) -> list[tuple[str, str]]:
        return self.pairs


class Scope(NamedTuple):
    headers: Headers
    server: str = "[::1]:8000"
    client: str = "[::1]:50000"
    http_version: str = "1.1"
    method: str = "GET"
    path: str = "/caf\u00e9"
    query_string: str = "q=%C3%A9"
    scheme: str = "http"
    authority: str | None = None


def test_headers_that_come_twice_are_joined_and_one_that_feigns_anothers_name_is_left_out() -> None:
    pairs = [("cookie", "a=1"), ("cookie", "b=2"), ("x-a", "1"), ("x-a", "2"), ("content-type", "text/plain")]
    environ = environ_of(Scope(Headers([*pairs, ("x_forwarded_proto", "https")])), b"body")
    assert environ["HTTP_COOKIE"] == "a=1; b=2"
    assert environ["HTTP_X_A"] == "1,2"
    assert environ["CONTENT_TYPE"] == "text/plain"
    assert "HTTP_X_FORWARDED_PROTO" not in environ
    assert environ["wsgi.input"].read() == b"body"


def test_addresses_and_paths_are_told_as_wsgi_has_them() -> None:
    environ = environ_of(Scope(Headers([]), authority="ladder.example.com"), b"")
    assert (environ["SERVER_NAME"], environ["SERVER_PORT"], environ["REMOTE_ADDR"]) == ("::1", "8000", "::1")
    assert environ["PATH_INFO"].encode("latin-1").decode() == "/caf\u00e9"
    assert environ["HTTP_HOST"] == "ladder.example.com"


# --- a server that runs ----------------------------------------------------------------------------------------------
class Server(NamedTuple):
    port: int
    pid: int

    def ask(self, asked: bytes) -> Answer:
        with Client(port=self.port) as client:
            return client.send(asked)

    def connect(self) -> socket.socket:
        return socket.create_connection((HOST, self.port), timeout=60)

    def begin(self, *, declared: int) -> socket.socket:
        """Open a connection and send the head of a request whose body is still to come."""
        connection = self.connect()
        head = f"POST /api/v1/pools/auto/thrifty HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: {declared}\r\n\r\n["
        connection.sendall(head.encode())
        return connection


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("front")


@contextlib.contextmanager
def serving(folder: Path, **changes: str) -> Iterator[Server]:
    variables = _variables(folder) | changes
    port = free_port()
    web = programs_to_run(host=HOST, port=port, workers=1)[0]
    if not (folder / "static").exists():
        assert manage("migrate", "--verbosity", "0", **variables).returncode == 0
        assert manage("collectstatic", "--noinput", "--verbosity", "0", **variables).returncode == 0
    with running(web.command, folder / "web.log", **variables) as child:
        server = Server(port, child.pid)
        until(lambda: _is_up(server), "the server")
        yield server


def _variables(folder: Path) -> dict[str, str]:
    return {"VAR_DIR": str(folder), "DATABASE_URL": f"sqlite:///{folder / 'front.sqlite3'}"}


def _is_up(server: Server) -> bool:
    try:
        return server.ask(request("GET", "/healthz", headers={})).status == 200
    except OSError:
        return False


@pytest.fixture(scope="module")
def patient(folder: Path) -> Iterator[Server]:
    """Return a server that waits for bodies longer than any test runs."""
    with serving(folder, BODY_SECONDS="600") as server:
        yield server


def test_a_good_client_is_served_while_many_others_drip(patient: Server) -> None:
    with contextlib.ExitStack() as held:
        slow = [held.enter_context(patient.begin(declared=1_000_000)) for _ in range(SLOW_CLIENTS)]
        answers = [patient.ask(request("GET", "/readyz", headers={})).status for _ in range(20)]
        posted = patient.ask(request("POST", "/api/v1/pools/auto/thrifty", headers={}, body=b"{}"))
        assert answers == [200] * 20
        assert posted.status == 401
        # They are still being waited for: it is beside them that the others were served.
        for connection in slow:
            connection.setblocking(False)
            with pytest.raises(BlockingIOError):
                connection.recv(1)


def test_a_client_that_drips_is_told_408_and_disconnected(folder: Path) -> None:
    with serving(folder, BODY_SECONDS="1") as server, server.begin(declared=1_000_000) as connection:
        answer = _all_of(connection)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["code"] == "too_slow"


def test_a_body_of_fifty_megabytes_is_refused_before_it_is_sent(patient: Server) -> None:
    with patient.begin(declared=50 * 1024 * 1024) as connection:
        answer = _all_of(connection)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["code"] == "too_large"


def test_a_body_of_open_length_is_refused(patient: Server) -> None:
    asked = request("POST", "/api/v1/pools/auto/thrifty", headers={"Transfer-Encoding": "chunked"})
    assert patient.ask(asked + b"2\r\n{}\r\n0\r\n\r\n").status == 411


def test_a_connection_goes_on_after_a_body(patient: Server) -> None:
    asked = request("POST", "/api/v1/pools/auto/thrifty", headers={}, body=b"[" * 500_000)
    with Client(port=patient.port) as client:
        statuses = [client.send(asked).status for _ in range(3)]
        held = client._socket
        assert client.send(request("GET", "/healthz", headers={})).status == 200
        assert client._socket is held
    assert statuses == [401] * 3


def test_a_file_is_served_whole(patient: Server) -> None:
    page = patient.ask(request("GET", "/login", headers={}))
    path = _found(rb'href="(/static/[^"]+\.css)"', page.body)
    with Client(port=patient.port) as client:
        served = client.expect(request("GET", path, headers={}))
    assert len(served.body) == int(served.header("Content-Length") or 0) > 0


def test_a_form_signs_in_and_an_export_comes_to_its_end(patient: Server, folder: Path) -> None:
    who = {"DJANGO_SUPERUSER_USERNAME": "ada", "DJANGO_SUPERUSER_EMAIL": "", "DJANGO_SUPERUSER_PASSWORD": PASSWORD}
    assert manage("createsuperuser", "--noinput", **_variables(folder), **who).returncode == 0
    page = patient.ask(request("GET", "/login", headers={}))
    token = _found(rb'name="csrfmiddlewaretoken" value="(\w+)"', page.body)
    cookie = _found(rb"csrftoken=(\w+)", page.head)
    body = urlencode({"csrfmiddlewaretoken": token, "username": "ada", "password": PASSWORD}).encode()
    asked = request("POST", "/login", headers={"Cookie": f"csrftoken={cookie}"}, body=body)
    asked = asked.replace(b"application/json", b"application/x-www-form-urlencoded")
    session = _found(rb"sessionid=(\w+)", patient.ask(asked).head)
    with patient.connect() as connection:
        headers = {"Cookie": f"sessionid={session}", "Connection": "close"}
        connection.sendall(request("GET", EXPORT, headers=headers))
        answer = _all_of(connection)
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b"text/csv" in answer
    # In pieces, as many as there are, and then the end.
    assert answer.endswith(b"\r\n0\r\n\r\n")


def test_the_server_ends_while_clients_drip(folder: Path) -> None:
    with serving(folder, BODY_SECONDS="600") as server, server.begin(declared=1_000_000):
        os.kill(server.pid, signal.SIGTERM)
        until(lambda: not is_running(server.pid), "the end of the server")


def _found(pattern: bytes, text: bytes) -> str:
    found = re.search(pattern, text)
    assert found, f"{pattern!r} is not in {text!r}"
    return found.group(1).decode()


def _all_of(connection: socket.socket) -> bytes:
    """Return what comes until the server closes the connection."""
    received = b""
    while piece := connection.recv(1 << 16):
        received += piece
    return received
