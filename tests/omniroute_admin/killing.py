"""Programs of the product that a test kills without warning and starts again, and a router that does not give up."""

import http.client
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

from omniroute_admin.programs import programs_to_run
from tests.processes import environment, until

SECONDS = 30


class Killable:
    """One program of the product in a session of its own, so that a kill takes all of its processes at once."""

    def __init__(self, name: str, folder: Path, *, port: int = 1, **changes: str) -> None:
        programs = programs_to_run(host="127.0.0.1", port=port, workers=1)
        self._command = next(one.command for one in programs if one.name == name)
        self._log, self._environment = folder / f"{name}.log", environment(**changes)
        self._child: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as output:
            self._child = subprocess.Popen(
                self._command,
                env=self._environment,
                stdout=output,
                stderr=output,
                cwd=self._log.parent,
                start_new_session=True,
            )

    def kill(self) -> None:
        """Kill it with a signal that it cannot see, and return when it is gone."""
        if self._child is not None:
            os.killpg(self._child.pid, signal.SIGKILL)
            self._child.wait()
            self._child = None


class PatientRouter:
    """Sends a body until it is answered, as a router does through restarts."""

    def __init__(self, port: int, secret: str) -> None:
        self._port, self._headers = port, {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}
        self.cut = 0
        """How many requests ended without an answer."""

    def send(self, path: str, body: Any) -> dict[str, Any]:
        return until(lambda: self._try(path, body), f"an answer to {path}")

    def _try(self, path: str, body: Any) -> dict[str, Any] | None:
        try:
            connection = self.send_only(path, body)
        except OSError:
            return None
        try:
            response = connection.getresponse()
            text = response.read()
        except (OSError, http.client.HTTPException):
            self.cut += 1
            return None
        finally:
            connection.close()
        assert response.status == 200, text
        answer: dict[str, Any] = json.loads(text)
        return answer

    def send_only(self, path: str, body: Any) -> http.client.HTTPConnection:
        """Send a body and leave the answer unread.

        Raises:
            OSError: nobody listens, or no longer.
        """
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=SECONDS)
        try:
            connection.request("POST", f"/api/v1/telemetry/{path}", json.dumps(body), self._headers)
        except OSError:
            connection.close()
            raise
        return connection
