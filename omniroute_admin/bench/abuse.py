"""Clients that misbehave: each way once, told by how many of them there are."""

import itertools
import socket
import time
from collections.abc import Callable, Iterable

import msgspec

from omniroute_admin.bench.client import HOST

LARGE = 50 * 1024 * 1024
SMALL = 1024 * 1024
_PIECE = b"x" * 65_536
_DRIP_SECONDS = 1.0
_IDLE = 500
_HEADERS = "POST /api/v1/pools/auto/thrifty HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {key}\r\n"


class Manner(msgspec.Struct, frozen=True):
    """One way to misbehave, done again and again by a number of clients at once."""

    what: str
    act: Callable[[int, str], None]
    clients: int


def _opened(port: int) -> socket.socket:
    return socket.create_connection((HOST, port), timeout=30)


def _head(key: str, size: int) -> bytes:
    start = _HEADERS.format(host=HOST, key=key)
    return f"{start}Content-Type: application/json\r\nContent-Length: {size}\r\n\r\n".encode()


def _send_large(port: int, key: str) -> None:
    with _opened(port) as connection:
        connection.sendall(_head(key, LARGE))
        for _ in range(LARGE // len(_PIECE)):
            connection.sendall(_PIECE)
        connection.recv(1 << 16)


def _drip_large(port: int, key: str) -> None:
    _drip(port, _head(key, LARGE), itertools.repeat(b"[", LARGE))


def _drip_small(port: int, key: str) -> None:
    _drip(port, _head(key, SMALL), itertools.repeat(b"[", SMALL))


def _drip_headers(port: int, key: str) -> None:
    _drip(port, b"", (bytes([one]) for one in _head(key, SMALL)))


def _drip(port: int, begin: bytes, rest: Iterable[bytes]) -> None:
    """Send the beginning at once and the rest byte by byte, until the server has had enough."""
    with _opened(port) as connection:
        connection.sendall(begin)
        for piece in rest:
            connection.sendall(piece)
            time.sleep(_DRIP_SECONDS)


def _stay_idle(port: int, key: str) -> None:
    """Hold many connections open and say nothing on them; those the server closes are opened again."""
    held = [_opened(port) for _ in range(_IDLE)]
    try:
        while True:
            time.sleep(_DRIP_SECONDS)
            held = [one if _is_open(one) else _opened(port) for one in held]
    finally:
        for one in held:
            one.close()


def _is_open(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return bool(connection.recv(1))
    except BlockingIOError:
        return True
    except OSError:
        return False


ABUSES = {
    "large-body": Manner("a body of 50 MB, as fast as the server takes it", _send_large, 2),
    "drip-large": Manner("a body declared as 50 MB, one byte a second", _drip_large, 10),
    "drip-small": Manner("a body declared as 1 MB, one byte a second", _drip_small, 50),
    "slow-headers": Manner("headers, one byte a second", _drip_headers, 50),
    "idle": Manner(f"{_IDLE} connections on which nothing is said", _stay_idle, 1),
}
