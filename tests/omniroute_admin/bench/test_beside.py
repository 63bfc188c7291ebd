"""What runs beside a measurement does what it says, and ends with it."""

import socket
from collections.abc import Iterator

import pytest

from omniroute_admin.bench.abuse import SMALL
from omniroute_admin.bench.children import beside
from omniroute_admin.bench.client import HOST, Client, request


@pytest.fixture
def server() -> Iterator[socket.socket]:
    """Return a server that takes connections and answers nothing."""
    with socket.create_server((HOST, 0), backlog=1_000) as listening:
        listening.settimeout(60)
        yield listening


def abusing(server: socket.socket, manner: str):
    return beside("abuse", port=server.getsockname()[1], key="orl_none", manners=[manner])


def received(connection: socket.socket, end: bytes) -> bytes:
    connection.settimeout(60)
    text = b""
    while end not in text:
        text += connection.recv(1)
    return text


def test_the_client_reads_answers_one_after_the_other_on_one_connection() -> None:
    with beside("echo", size=100_000) as echo, Client(port=echo.said["port"]) as client:
        answers = [client.expect(request("GET", "/", headers={})) for _ in range(3)]
    assert [answer.body for answer in answers] == [b"x" * 100_000] * 3
    assert all(answer.seconds > 0 for answer in answers)
    assert answers[0].header("content-length") == "100000"
    assert answers[0].header("etag") is None


def test_a_client_that_drips_its_body_declares_all_of_it(server: socket.socket) -> None:
    with abusing(server, "drip-small"):
        connection, _ = server.accept()
        with connection:
            head = received(connection, b"\r\n\r\n")
            assert f"Content-Length: {SMALL}\r\n".encode() in head
            assert connection.recv(1) == b"["


def test_a_client_with_slow_headers_never_gets_to_their_end(server: socket.socket) -> None:
    with abusing(server, "slow-headers"):
        connection, _ = server.accept()
        with connection:
            assert received(connection, b"P") == b"P"


def test_idle_clients_hold_hundreds_of_connections_and_let_go_of_them_at_the_end(server: socket.socket) -> None:
    with abusing(server, "idle"):
        held = [server.accept()[0] for _ in range(500)]
    for connection in held:
        with connection:
            connection.settimeout(60)
            assert connection.recv(1) == b""
