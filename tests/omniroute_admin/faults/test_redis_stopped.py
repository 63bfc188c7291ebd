"""SPEC 6: a slow or dead broker delays charts and alerts, not decisions and not the ledger."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from redis import Redis
from redis.exceptions import ConnectionError as NotThere

from tests.omniroute_admin.faults.installation import PROGRAMS, Installation
from tests.omniroute_admin.faults.load import bad, check_nothing_is_lost, under_load
from tests.omniroute_admin.killing import SECONDS
from tests.processes import environment, until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.redis,
    pytest.mark.skipif(shutil.which("redis-server") is None, reason="redis-server is not installed"),
]
QUEUE = "omniroute_admin"
NOT_SENT = "Couldn't apply scheduled task"


class Broker:
    """A Redis that a test takes down, and that has forgotten everything when it comes back."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._socket = folder, folder / "redis.sock"
        self.url = f"redis+socket://{self._socket}"
        self._child: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = ["redis-server", "--port", "0", "--unixsocket", str(self._socket), "--save", ""]
        with (self._folder / "redis.log").open("ab") as log:
            self._child = subprocess.Popen(command, stdout=log, cwd=self._folder, env=environment())
        until(self._answers, "Redis")

    def stop(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.wait(timeout=SECONDS)
            self._child = None

    def waiting(self) -> int:
        """Return how many messages wait for the worker."""
        with Redis(unix_socket_path=str(self._socket)) as redis:
            return int(redis.llen(QUEUE))  # type: ignore[arg-type] # this client is no asynchronous one

    def _answers(self) -> bool:
        try:
            with Redis(unix_socket_path=str(self._socket)) as redis:
                return bool(redis.ping())
        except NotThere:
            return False


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    broker = Broker(tmp_path)
    broker.start()
    yield broker
    broker.stop()


def test_redis_stopped_and_started_under_load(tmp_path: Path, broker: Broker) -> None:
    url = f"sqlite:///{tmp_path / 'state.sqlite3'}"
    installed = Installation(tmp_path, url, CELERY_BROKER_URL=broker.url)
    try:
        installed.prepare()
        installed.start(*PROGRAMS)
        with under_load(installed) as load:
            installed.beats()
            for _ in range(2):
                failed = installed.programs["beat"].log.count(NOT_SENT)
                broker.stop()
                until(lambda failed=failed: installed.programs["beat"].log.count(NOT_SENT) > failed, "a failed message")
                # Without it, all goes on as before.
                load.is_answered(times=20)
                broker.start()
                # Back again, what is periodic goes on by itself, and what could not be sent meanwhile is no flood.
                installed.beats()
                installed.looks()
                assert broker.waiting() <= len(settings.CELERY_BEAT_SCHEDULE)
        assert bad(load.told) == []
        assert installed.kept_running()
        check_nothing_is_lost(installed, load)
    finally:
        installed.end()
