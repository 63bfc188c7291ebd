"""Programs of the product that a test kills without warning and starts again, and a router that does not give up."""

import http.client
import json
import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

from celery import Celery

from omniroute_admin import broker
from omniroute_admin.programs import programs_to_run
from tests.processes import GIVE_UP_AFTER, environment, until

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

    @property
    def pid(self) -> int:
        """The number of its head."""
        assert self._child is not None
        return self._child.pid

    @property
    def log(self) -> str:
        return self._log.read_text()

    def has_ended(self) -> bool:
        return self._child is None or self._child.poll() is not None

    def end(self) -> None:
        """Tell it to end, as an operator does, and return when it has."""
        assert self._child is not None
        self._child.terminate()
        self._child.wait(timeout=GIVE_UP_AFTER)
        self.kill()

    def kill(self) -> None:
        """Kill it with a signal that it cannot see, and return when it is gone."""
        if self._child is not None:
            with suppress(ProcessLookupError):
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


class Messages:
    """The embedded broker below a folder, from the side of the scheduler."""

    def __init__(self, folder: Path) -> None:
        broker.install()
        self._folder = folder / "broker" / "messages"
        control = folder / "broker" / "control"
        for one in (self._folder, control):
            one.mkdir(parents=True)
        self._app = Celery("a scheduler", broker="filesystem://", set_as_current=False)
        self._app.conf.task_default_queue = "omniroute_admin"
        self._app.conf.broker_transport_options = {
            "data_folder_in": str(self._folder),
            "data_folder_out": str(self._folder),
            "control_folder": str(control),
        }

    def send(self, *tasks: str) -> None:
        for task in tasks:
            self._app.send_task(task)

    def waiting(self) -> int:
        return len(list(self._folder.glob("*.msg")))


def waits_for_a_lock() -> bool:
    """Tell whether anybody waits for a lock of PostgreSQL."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return bool(cursor.fetchone()[0])
