"""The dependency audit fails for a known vulnerability, and never takes a service that is away for a clean bill."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from tests.processes import free_port
from tests.shared import ROOT

HOLE = {
    "id": "GHSA-test",
    "modified": "2026-01-01T00:00:00Z",
    "affected": [{"package": {"name": "Django", "ecosystem": "PyPI"}, "versions": ["5.2.19"], "ranges": []}],
}


@contextmanager
def service(knows: dict[str, Any]) -> Iterator[str]:
    """A vulnerability service that knows holes by package, as OSV answers."""

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            hole = knows.get(asked["package"]["name"].lower())
            body = json.dumps({"vulns": [hole]} if hole else {}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1/query"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def audit(url: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / ".ci" / "audit.py"), url]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_packages_that_are_all_known_and_clean_pass() -> None:
    with service({}) as url:
        done = audit(url)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no known vulnerability" in done.stdout


def test_a_known_vulnerability_fails_and_is_named() -> None:
    with service({"django": HOLE}) as url:
        done = audit(url)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "GHSA-test" in done.stdout


def test_a_service_that_is_away_is_no_clean_bill() -> None:
    done = audit(f"http://127.0.0.1:{free_port()}/v1/query")
    assert done.returncode == 3
    assert done.stdout.startswith("THE DEPENDENCY AUDIT WAS NOT DONE.")
