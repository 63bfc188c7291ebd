"""The product as it runs: counts of several web processes are whole, signs of life come, each line is one object."""

import json
import os
import re
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from omniroute_admin.bench.client import Client, request
from omniroute_admin.common.models import Heartbeat, TaskRun
from omniroute_admin.programs import programs_to_run
from tests.processes import environment, free_port, manage, running, until

HOST = "127.0.0.1"
POOL = "/api/v1/pools/auto/thrifty"


class Told(NamedTuple):
    status: int
    body: bytes


class Server(NamedTuple):
    port: int
    key: str
    log: Path

    def ask(self, path: str, **headers: str) -> Told:
        """Ask on a connection of its own, so that any process may answer."""
        with closing(HTTPConnection(HOST, self.port, timeout=60)) as connection:
            connection.request("GET", path, headers={"Authorization": f"Bearer {self.key}"} | headers)
            response = connection.getresponse()
            return Told(response.status, response.read())

    def counted(self, route: str, status: str = "2xx") -> float:
        answer = self.ask("/metrics")
        assert answer.status == 200, answer.body
        pattern = rf'duration_seconds_count{{method="GET",route="{re.escape(route)}",status="{status}"}} (\S+)'
        found = re.search(pattern, answer.body.decode())
        return float(found[1]) if found else 0.0

    def workers(self) -> list[int]:
        """Return the processes that answered, as the log of the server names them when it starts them."""
        return [int(pid) for pid in re.findall(r"Spawning worker-\d+ with PID: (\d+)", self.log.read_text())]


@contextmanager
def serving(folder: Path, *, workers: int, **changes: str) -> Iterator[Server]:
    variables = {"VAR_DIR": str(folder), "DATABASE_URL": f"sqlite:///{folder / 'x.sqlite3'}", "LOG_LEVEL": "INFO"}
    variables |= {"LOG_FORMAT": "json", "ACCESS_LOG": "true", **changes}
    for command in (["migrate", "--verbosity", "0"], ["collectstatic", "--noinput", "--verbosity", "0"]):
        assert manage(*command, **variables).returncode == 0
    scopes = ("--scope", "metrics:read", "--scope", "pools:read")
    key = _found(r"(orl_\S+)", manage("create_key", "p", *scopes, **variables).stdout)
    port, log = free_port(), folder / "web.log"
    web = programs_to_run(host=HOST, port=port, workers=workers)[0]
    with running(web.command, log, **variables):
        server = Server(port, key, log)
        until(lambda: _is_up(server), "the server")
        until(lambda: log.read_text().count("Started worker") >= 2 * workers, "every worker")
        yield server


def _is_up(server: Server) -> bool:
    try:
        return server.ask("/healthz").status == 200
    except OSError:
        return False


def _found(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    assert found, text
    return found[1]


def lines(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def test_counts_are_whole_whichever_of_the_workers_answers_and_survive_one_that_is_killed(tmp_path: Path) -> None:
    with serving(tmp_path, workers=2) as server:
        route = "api/v1/pools/<path:pool_id>"
        for number in range(1, 31):
            assert server.ask(POOL, **{"X-Request-Id": f"ask-{number}"}).status == 200
        # Asked so often that both have told.
        assert {server.counted(route) for _ in range(12)} == {30.0}
        before = set(server.workers())
        os.kill(max(before), signal.SIGKILL)
        until(lambda: len(server.workers()) > len(before), "another worker")
        until(lambda: server.log.read_text().count("Started worker") >= 6, "its start")
        for _ in range(10):
            assert server.ask(POOL).status == 200
        assert {server.counted(route) for _ in range(12)} == {40.0}
        boards = list((tmp_path / "metrics").rglob("*.board"))
        assert len(boards) == 2
        said = lines(server.log)
    asked = [one for one in said if one["logger"] == "omniroute_admin.access" and one["path"] == POOL]
    assert len(asked) == 40
    assert [one["request_id"] for one in asked[:30]] == [f"ask-{number}" for number in range(1, 31)]
    assert {one["logger"] for one in said} >= {"_granian", "omniroute_admin.access"}
    assert server.key[:13] not in server.log.read_text()


def test_metrics_work_on_a_tree_that_nobody_may_write(tmp_path: Path) -> None:
    """The folder of the metrics is all that has to be writable, and if not even that is, one process tells its own."""
    shared = tmp_path / "in-memory"
    with serving(tmp_path, workers=2, METRICS_DIR=str(shared)) as server:
        assert server.counted("healthz") >= 1
    assert len(list(shared.rglob("*.board"))) >= 1
    assert not (tmp_path / "metrics").exists()


def test_a_folder_for_metrics_that_cannot_be_written_is_named_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = manage("check", METRICS_DIR=str(tmp_path / "file" / "x"))
    assert done.returncode == 1
    assert f"METRICS_DIR: the folder {tmp_path}/file/x cannot be written" in done.stderr


def test_a_body_that_is_refused_before_it_is_read_has_an_id_too(tmp_path: Path) -> None:
    with serving(tmp_path, workers=1) as server, Client(port=server.port) as client:
        headers = {"Transfer-Encoding": "chunked", "X-Request-Id": "mine.1"}
        answer = client.send(request("POST", POOL, headers=headers) + b"0\r\n\r\n")
        assert (answer.status, answer.header("X-Request-Id")) == (411, "mine.1")
        assert 'omniroute_problems_total{code="length_required"} 1.0' in server.ask("/metrics").body.decode()


@pytest.mark.parametrize("answers", [True, False], ids=["refused", "silent"])
def test_a_postgresql_that_is_gone_is_not_ready_and_the_process_goes_on(tmp_path: Path, answers: bool) -> None:
    """A port that nobody listens on, and one where the connection is taken and nothing is ever said."""
    with ExitStack() as stack:
        silent = stack.enter_context(socket.create_server((HOST, 0)))
        port = free_port() if answers else silent.getsockname()[1]
        web_port = free_port()
        web = programs_to_run(host=HOST, port=web_port, workers=1)[0]
        url = f"postgres://u:hidden@{HOST}:{port}/none"
        variables = {"VAR_DIR": str(tmp_path), "DATABASE_URL": url, "LOG_FORMAT": "json"}
        (tmp_path / "static").mkdir()
        (tmp_path / "static" / "staticfiles.json").write_text('{"paths": {}, "version": "1.1", "hash": ""}')
        stack.enter_context(running(web.command, tmp_path / "web.log", **variables))
        server = Server(web_port, "orl_" + "x" * 43, tmp_path / "web.log")
        until(lambda: _is_up(server), "the server")
        for path, code in (("/readyz", "database_unreachable"), ("/metrics", "state_unavailable")):
            answer = server.ask(path)
            assert (answer.status, json.loads(answer.body)["code"]) == (503, code)
        assert server.ask("/healthz").status == 200
        assert "hidden" not in server.log.read_text()


def test_worker_scheduler_and_tasks_show_that_they_live(tmp_path: Path, database_url: str) -> None:
    _, *celery = programs_to_run(host=HOST, port=1, workers=1)
    more = {"VAR_DIR": str(tmp_path), "DATABASE_URL": database_url, "HEARTBEAT_SECONDS": "1", "LOG_FORMAT": "json"}
    with ExitStack() as stack:
        for program in celery:
            stack.enter_context(running(program.command, tmp_path / f"{program.name}.log", LOG_LEVEL="INFO", **more))
        for name in ("beat", "worker", "scheduler"):
            first = until(lambda name=name: Heartbeat.objects.filter(name=name).first(), name)
            until(lambda one=first: Heartbeat.objects.filter(name=one.name, beat_at__gt=one.beat_at).exists(), name)
        run = until(lambda: TaskRun.objects.filter(name="ladder.tasks.note_flips").first(), "a run")
        assert (run.failures, run.failed_at) == (0, None)
        until(lambda: TaskRun.objects.filter(pk=run.pk, succeeded_at__isnull=False).exists(), "its end")
    said = [line for name in ("worker", "beat") for line in (tmp_path / f"{name}.log").read_text().splitlines()]
    objects = []
    for line in said:
        with suppress(ValueError):
            objects.append(json.loads(line))
    assert {"celery.apps.worker", "celery.worker.consumer.connection"} <= {one["logger"] for one in objects}


def test_a_scheduler_without_a_broker_gives_no_sign_of_life_and_a_worker_does(
    tmp_path: Path, database_url: str
) -> None:
    """Who of the three is down can be told apart: here only the worker runs."""
    worker = programs_to_run(host=HOST, port=1, workers=1)[1]
    more = {"VAR_DIR": str(tmp_path), "DATABASE_URL": database_url, "HEARTBEAT_SECONDS": "1"}
    with running(worker.command, tmp_path / "worker.log", **more):
        first = until(lambda: Heartbeat.objects.filter(name="worker").first(), "the worker")
        until(lambda: Heartbeat.objects.filter(name="worker", beat_at__gt=first.beat_at).exists(), "its next sign")
    assert not Heartbeat.objects.exclude(name="worker").exists()


def test_children_are_told_where_to_find_the_form_of_the_servers_lines() -> None:
    web = programs_to_run(host=HOST, port=1, workers=1)[0]
    config = json.loads(Path(web.command[web.command.index("--log-config") + 1]).read_text())
    assert config["formatters"]["server"]["()"] == "omniroute_admin.server_log.server_formatter"
    assert environment()["VAR_DIR"]
