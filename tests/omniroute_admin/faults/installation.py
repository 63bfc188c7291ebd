"""An installation of the product as an operator runs it: a folder, a database, and programs that a test takes down."""

import re
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import psycopg

from omniroute_admin.bench.client import Answer, Client, request
from omniroute_admin.common.scopes import SCOPES
from tests.omniroute_admin.killing import Killable
from tests.processes import free_port, manage, until

PASSWORD = "correct-horse-battery"
PROGRAMS = ("web", "worker", "beat")
PATIENCE = 60.0
"""Seconds after which a call counts as hung; a refusal takes 5 at most, the wait for a database that is not there."""


class Installation:
    """Programs, database and who may call. `changes` are variables of every program's environment."""

    def __init__(self, folder: Path, database_url: str, **changes: str) -> None:
        self.folder, self.database_url, self.port = folder, database_url, free_port()
        self.variables = {
            "VAR_DIR": str(folder / "var"),
            "DATABASE_URL": database_url,
            "HEARTBEAT_SECONDS": "1",
            **changes,
        }
        self.programs = {name: Killable(name, folder, port=self.port, **self.variables) for name in PROGRAMS}
        self.secret = self.session = ""

    # --- what an operator does -----------------------------------------------------------------------------------
    def prepare(self) -> None:
        """Make the tables, the facts, an operator and a key with every scope."""
        for command in ("migrate", "collectstatic --noinput", "load_facts"):
            self.manage(*command.split(), "--verbosity", "0")
        who = {"DJANGO_SUPERUSER_USERNAME": "ada", "DJANGO_SUPERUSER_EMAIL": "", "DJANGO_SUPERUSER_PASSWORD": PASSWORD}
        self.manage("createsuperuser", "--noinput", **who)
        scopes = [word for scope in SCOPES for word in ("--scope", scope)]
        self.secret = self.manage("create_key", "tests", *scopes).strip().splitlines()[-1]

    def manage(self, *arguments: str, **changes: str) -> str:
        done = manage(*arguments, **self.variables, **changes)
        assert done.returncode == 0, f"{arguments}: {done.stdout}\n{done.stderr}"
        return done.stdout

    def start(self, *names: str) -> None:
        """Start programs, and return when the server among them is ready."""
        for name in names:
            self.programs[name].start()
        if "web" in names:
            until(self.is_ready, "the server")

    def end(self) -> None:
        for program in self.programs.values():
            program.kill()

    def is_ready(self) -> bool:
        try:
            return self.ask(request("GET", "/readyz", headers={})).status == 200
        except OSError:
            return False

    # --- who calls -----------------------------------------------------------------------------------------------
    def ask(self, asked: bytes) -> Answer:
        with Client(port=self.port, patience=PATIENCE) as client:
            return client.send(asked)

    def keyed(self, method: str, path: str, body: bytes | None = None) -> bytes:
        return request(method, f"/api/v1/{path}", headers={"Authorization": f"Bearer {self.secret}"}, body=body)

    def call(self, method: str, path: str, body: bytes | None = None) -> Any:
        """Return what a call answers that must go well."""
        answer = self.ask(self.keyed(method, path, body))
        assert answer.status < 300, (path, answer.status, answer.body)
        return answer.json() if answer.body else None

    def sign_in(self) -> None:
        page = self.ask(request("GET", "/login", headers={}))
        token = _found(rb'name="csrfmiddlewaretoken" value="(\w+)"', page.body)
        cookie = _found(rb"csrftoken=(\w+)", page.head)
        body = urlencode({"csrfmiddlewaretoken": token, "username": "ada", "password": PASSWORD}).encode()
        asked = request("POST", "/login", headers={"Cookie": f"csrftoken={cookie}"}, body=body)
        asked = asked.replace(b"application/json", b"application/x-www-form-urlencoded")
        self.session = _found(rb"sessionid=(\w+)", self.ask(asked).head)

    def visit(self, path: str) -> bytes:
        return request("GET", path, headers={"Cookie": f"sessionid={self.session}"})

    # --- what is stored ------------------------------------------------------------------------------------------
    def rows(self, statement: str) -> list[Any]:
        """Return what the database holds, past the product."""
        if self.database_url.startswith("sqlite"):
            connection: Any = sqlite3.connect(self.database_url.removeprefix("sqlite:///"), timeout=60)
        else:
            connection = psycopg.connect(self.database_url)
        try:
            return list(connection.execute(statement).fetchall())
        finally:
            connection.close()

    def values(self, statement: str) -> set[Any]:
        return {row[0] for row in self.rows(statement)}

    def beats(self) -> None:
        """Return when scheduler, broker and worker have done something from now on."""
        self._changes("SELECT beat_at FROM common_heartbeat WHERE name = 'beat'", "a heartbeat")

    def looks(self) -> None:
        """Return when the worker has looked at the ladder from now on."""
        self._changes("SELECT version FROM ladder_timelinecursor", "a look at the ladder")

    def _changes(self, statement: str, what: str) -> None:
        before: Sequence[Any] = self.rows(statement)
        until(lambda: self.rows(statement) not in (before, []), what)

    def kept_running(self) -> bool:
        """Tell whether no program that was started has ended."""
        return not any(program.has_ended() for program in self.programs.values())


def _found(pattern: bytes, text: bytes) -> str:
    found = re.search(pattern, text)
    assert found, f"{pattern!r} is not in {text!r}"
    return found.group(1).decode()


def instant() -> float:
    return time.monotonic()
