"""A client that costs next to nothing: one kept-alive connection, requests made beforehand, bytes back.

What it costs itself is measured too, against a server that only sends ready bytes.
"""

import json
import socket
import time
from typing import Any, Self

import msgspec

from omniroute_admin.bench.errors import BenchError

HOST = "127.0.0.1"
_MARK = b"\r\n\r\n"
_LENGTH = b"content-length:"
_WITHOUT_BODY = (204, 304)
_PIECE = 1 << 20


class Answer(msgspec.Struct, frozen=True):
    """What came back, and how many seconds passed between the first byte sent and the last one received."""

    status: int
    head: bytes
    body: bytes
    seconds: float

    def header(self, name: str) -> str | None:
        """Return a header's value; None where it was not sent."""
        for line in self.head.split(b"\r\n")[1:]:
            key, _, value = line.partition(b":")
            if key.strip().lower() == name.lower().encode():
                return value.strip().decode("latin-1")
        return None

    def json(self) -> Any:
        """Return the body's value."""
        return json.loads(self.body)


class Client:
    """One connection to a server of this machine; use it in a `with` block."""

    def __init__(self, *, port: int, patience: float = 60.0) -> None:
        self.port, self._patience = port, patience
        self._socket: socket.socket | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def send(self, request: bytes) -> Answer:
        """Send a request and return its answer.

        Raises:
            OSError: the connection broke, or nothing came for as long as this client is patient.
        """
        if self._socket is None:
            self._socket = socket.create_connection((HOST, self.port), timeout=self._patience)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            began = time.perf_counter()
            self._socket.sendall(request)
            head, body = _receive(self._socket)
            seconds = time.perf_counter() - began
        except OSError:
            self.close()
            raise
        return Answer(int(head[9:12]), head, body, seconds)

    def expect(self, request: bytes, *statuses: int) -> Answer:
        """Send a request whose answer has one of these statuses (200 where none is named).

        Raises:
            BenchError: it has another.
        """
        answer = self.send(request)
        if answer.status not in (statuses or (200,)):
            line = request.partition(b"\r\n")[0].decode()
            raise BenchError(f"{line} was answered {answer.status}: {answer.body[:300].decode(errors='replace')}")
        return answer


def request(method: str, path: str, *, headers: dict[str, str], body: bytes | None = None) -> bytes:
    """Return the bytes of a request."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {HOST}", *(f"{name}: {value}" for name, value in headers.items())]
    if body is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode() + (body or b"")


def _receive(connection: socket.socket) -> tuple[bytes, bytes]:
    received = bytearray()
    while (end := received.find(_MARK)) < 0:
        received += _some(connection)
    head = bytes(received[:end])
    start = end + len(_MARK)
    missing = _length_of(head) - (len(received) - start)
    while missing > 0:
        piece = _some(connection)
        received += piece
        missing -= len(piece)
    return head, bytes(received[start:])


def _some(connection: socket.socket) -> bytes:
    piece = connection.recv(_PIECE)
    if not piece:
        raise ConnectionError("the server closed the connection before the answer had ended")
    return piece


def _length_of(head: bytes) -> int:
    if int(head[9:12]) in _WITHOUT_BODY:
        return 0
    place = head.lower().find(_LENGTH)
    if place < 0:
        raise ConnectionError(f"an answer does not say how long it is, its status is {head[9:12].decode()}")
    return int(head[place + len(_LENGTH) :].split(b"\r\n", 1)[0])
