"""Servers that tests send alerts to: HTTP that answers as it is told, and mail."""

from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any, NamedTuple


class Request(NamedTuple):
    path: str
    headers: dict[str, str]
    body: bytes


class HttpReceiver:
    """Keeps what is posted; answers with the statuses in `answers`, then with 200; while `may_answer` is set."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.answers: list[int] = []
        self.may_answer = Event()
        self.may_answer.set()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                receiver.requests.append(Request(self.path, headers, body))
                receiver.may_answer.wait(timeout=60)
                status = receiver.answers.pop(0) if receiver.answers else 200
                self.send_response(status)
                if 300 <= status < 400:
                    self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"ok")

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port: int = self.server.server_port
        self.place = f"127.0.0.1:{self.port}"


@contextmanager
def http_receiver() -> Iterator[HttpReceiver]:
    receiver = HttpReceiver()
    Thread(target=receiver.server.serve_forever, daemon=True).start()
    try:
        yield receiver
    finally:
        receiver.may_answer.set()
        receiver.server.shutdown()
        receiver.server.server_close()


class MailReceiver:
    """Keeps the mails that arrive."""

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        self.port = 0

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802 - aiosmtpd's name
        self.mails.append(message_from_bytes(envelope.content, policy=policy.default))
        return "250 OK"


@contextmanager
def mail_receiver() -> Iterator[MailReceiver]:
    from aiosmtpd.controller import Controller

    from tests.processes import free_port

    receiver = MailReceiver()
    controller = Controller(receiver, hostname="127.0.0.1", port=free_port())
    controller.start()
    receiver.port = controller.port
    try:
        yield receiver
    finally:
        controller.stop()
