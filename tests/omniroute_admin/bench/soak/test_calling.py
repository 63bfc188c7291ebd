"""Calls come at their rate, whatever the server does, and each is charged with the time it waited."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from omniroute_admin.bench.client import HOST, Answer, request
from omniroute_admin.bench.soak.calling import Calls
from omniroute_admin.bench.soak.kinds import Kind, Talk
from tests.processes import until

ASKED = request("GET", "/", headers={})
STOPPED_SECONDS = 0.5


@contextmanager
def answering(*, statuses: list[int], stop_first: float = 0.0) -> Iterator[int]:
    """Serve one connection with these statuses, one after the other and the last for ever."""
    with socket.create_server((HOST, 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                left = list(statuses)
                time.sleep(stop_first)
                while connection.recv(1 << 16):
                    status = left.pop(0) if len(left) > 1 else left[0]
                    connection.sendall(b"HTTP/1.1 %d X\r\nContent-Length: 2\r\n\r\n{}" % status)

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]


def made(port: int, *, per_second: float, length: float) -> Calls:
    kind = Kind("one", per_second, 1, lambda _: Talk(lambda _: ASKED))
    calls = Calls(kind, per_second=per_second, port=port)
    (thread,) = calls.threads(began=time.monotonic(), length=length, stop=threading.Event())
    thread.start()
    thread.join()
    return calls


def test_every_call_that_is_due_is_made_and_those_behind_one_that_hangs_are_charged_with_it() -> None:
    with answering(statuses=[200], stop_first=STOPPED_SECONDS) as port:
        calls = made(port, per_second=100, length=1.0)
    assert [round(one.due * 100) for one in calls.made] == list(range(100))
    assert (calls.errors, calls.statuses) == (0, {200: 100})
    # None of those that were due while nobody answered counts from when it was sent.
    held_up = [one for one in calls.made if one.due < STOPPED_SECONDS]
    assert len(held_up) == 50
    assert all(one.due + one.seconds >= STOPPED_SECONDS for one in held_up)


def test_calls_that_are_stopped_end_and_those_that_were_due_are_told() -> None:
    with answering(statuses=[200]) as port:
        calls, stop = (
            Calls(Kind("one", 10, 1, lambda _: Talk(lambda _: ASKED)), per_second=10, port=port),
            threading.Event(),
        )
        (thread,) = calls.threads(began=time.monotonic(), length=3_600.0, stop=stop)
        thread.start()
        until(lambda: calls.made, "a first call")
        stop.set()
        thread.join()
    assert calls.not_made(length=10.0) == 100 - len(calls.made)
    assert calls.not_made(length=0.0) == 0


def test_another_status_is_an_error_and_so_is_no_answer() -> None:
    with answering(statuses=[200, 500, 503, 200]) as port:
        calls = made(port, per_second=50, length=0.2)
    assert (calls.errors, calls.statuses) == (2, {200: 8, 500: 1, 503: 1})
    assert [one[:3] for one in calls.examples] == ["500", "503"]
    nobody = made(1, per_second=10, length=0.2)
    assert (nobody.errors, nobody.statuses) == (2, {0: 2})


def test_a_talk_repeats_the_tag_or_the_token_it_was_told() -> None:
    talk = Talk(lambda talk: talk.said.encode())
    talk.hear(Answer(200, b'HTTP/1.1 200 OK\r\nETag: W/"a"', b"{}", 0.0))
    assert talk.ask() == b'W/"a"'
    talk.hear(Answer(200, b"HTTP/1.1 200 OK", b'<main data-token="7&amp;8">', 0.0))
    assert talk.ask() == b"7&8"
    talk.hear(Answer(204, b"HTTP/1.1 204 No Content", b"", 0.0))
    assert talk.ask() == b"7&8"
