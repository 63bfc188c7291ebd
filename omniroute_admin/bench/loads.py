"""What goes on beside a measurement, in a process of its own: `python -m omniroute_admin.bench.loads`.

It reads one line of JSON that says what to do, answers with a line when it does so, goes on until its input ends (so
it never outlives the run), and then says in one more line what it did.
"""

import json
import select
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from omniroute_admin.bench.abuse import ABUSES
from omniroute_admin.bench.bodies import Reader, Said, reading_bodies
from omniroute_admin.bench.client import HOST, Client, request
from omniroute_admin.bench.results import timing_of

Told = dict[str, Any]
_OK = (200, 204)


def main() -> None:
    """Do what the first line of the input says until the input ends."""
    what: Told = json.loads(sys.stdin.readline())
    LOADS[what.pop("kind")](**what)


def say(**what: Any) -> None:
    """Tell the run something."""
    print(json.dumps(what), flush=True)


def has_ended() -> bool:
    """Tell whether the run wants this process to end."""
    ready, _, _ = select.select([sys.stdin], [], [], 0)
    return bool(ready)


def readings(*, port: int, key: str, readers: list[Reader], per_second: float, says: Said) -> None:
    """Send single readings at a steady pace; where the server is slower, as fast as it takes them."""
    bodies = reading_bodies(readers, says=says)
    headers = {"Authorization": f"Bearer {key}"}
    with Client(port=port) as client:
        _pace(
            lambda: (
                client.send(request("POST", "/api/v1/telemetry/readings", headers=headers, body=next(bodies))).status
            ),
            every=1 / per_second,
        )


def polls(*, port: int, cookie: str, path: str, pages: int, every: float) -> None:
    """Keep pages open, each with a connection of its own that asks at its own moment."""
    asked = request("GET", path, headers={"Cookie": f"sessionid={cookie}", "HX-Request": "true"})
    clients = [Client(port=port) for _ in range(pages)]
    turn = iter(range(sys.maxsize))
    _pace(lambda: clients[next(turn) % pages].send(asked).status, every=every / pages)


def _pace(act: Callable[[], int], *, every: float) -> None:
    """Act once every so often until told to end, then say how often, how fast and how well."""
    act()
    say(ready=True)
    began = due = time.monotonic()
    took: list[float] = []
    failures = 0
    while not has_ended():
        time.sleep(max(0.0, due - time.monotonic()))
        due += every
        before = time.monotonic()
        try:
            failures += act() not in _OK
        except OSError:
            failures += 1
        took.append(time.monotonic() - before)
    seconds = time.monotonic() - began
    timing = timing_of(took) if took else None
    say(
        beside_sent=len(took),
        beside_per_second=round(len(took) / seconds, 1),
        beside_median_ms=None if timing is None else round(timing.median * 1000, 3),
        beside_failures=failures,
    )


def echo(*, size: int) -> None:
    """Answer whatever is asked with the same ready bytes: what is left is what the client itself costs."""
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + b"x" * size
    with socket.create_server((HOST, 0)) as server:
        threading.Thread(target=_echo, args=(server, answer), daemon=True).start()
        say(port=server.getsockname()[1])
        sys.stdin.read()
    say(ended=True)


def _echo(server: socket.socket, answer: bytes) -> None:
    while True:
        connection, _ = server.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while connection.recv(1 << 16):
            connection.sendall(answer)


def abuse(*, port: int, manners: list[str], key: str) -> None:
    """Misbehave in every one of these ways at once."""
    counts: dict[str, int] = dict.fromkeys(manners, 0)
    for manner in manners:
        for act in [ABUSES[manner].act] * ABUSES[manner].clients:
            threading.Thread(target=_again, args=(act, port, key, counts, manner), daemon=True).start()
    time.sleep(1)
    say(ready=True)
    sys.stdin.read()
    say(abused=counts)


def _again(act: Callable[[int, str], None], port: int, key: str, counts: dict[str, int], manner: str) -> None:
    while True:
        try:
            act(port, key)
        except OSError:
            time.sleep(0.05)
        counts[manner] += 1


LOADS: dict[str, Callable[..., None]] = {"readings": readings, "polls": polls, "echo": echo, "abuse": abuse}

if __name__ == "__main__":
    main()
