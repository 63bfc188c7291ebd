"""Scheduler, broker and worker as real processes: the schedule ticks, on each broker and each database."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from ladder.models import RungFlip, TimelineCursor
from ladder.services.connections import create_connection
from omniroute_admin.common.clock import now
from omniroute_admin.common.models import Heartbeat
from omniroute_admin.programs import programs_to_run
from tests.factories_ladder import OPERATOR
from tests.processes import running, until


@contextmanager
def periodic_work(tmp_path: Path, **changes: str) -> Iterator[None]:
    _, *celery = programs_to_run(host="127.0.0.1", port=1, workers=1)
    with ExitStack() as stack:
        for program in celery:
            log = tmp_path / f"{program.name}.log"
            stack.enter_context(running(program.command, log, VAR_DIR=str(tmp_path), HEARTBEAT_SECONDS="1", **changes))
        yield


def ticks_twice() -> None:
    first = until(lambda: Heartbeat.objects.filter(name="beat").first(), "a heartbeat")
    until(lambda: Heartbeat.objects.filter(name="beat", beat_at__gt=first.beat_at).exists(), "another heartbeat")


def notes_a_flip() -> None:
    until(TimelineCursor.objects.exists, "a first look at the ladder")
    row = create_connection(
        connection_id="c1", provider="claude", auth_type="oauth", actor=OPERATOR, reason="a test", now=now()
    )
    flip = until(lambda: RungFlip.objects.filter(connection=row).first(), "a flip")
    assert (flip.from_state, flip.cause) == ("", "operator")


def test_the_schedule_ticks_on_the_embedded_broker(tmp_path: Path, database_url: str) -> None:
    with periodic_work(tmp_path, DATABASE_URL=database_url):
        ticks_twice()
        notes_a_flip()
    assert list((tmp_path / "broker" / "messages").glob(".*.tmp")) == []


@pytest.mark.redis
@pytest.mark.sqlite
@pytest.mark.skipif(shutil.which("redis-server") is None, reason="redis-server is not installed")
def test_the_schedule_ticks_on_redis(tmp_path: Path, database_url: str) -> None:
    socket = tmp_path / "redis.sock"
    server = ["redis-server", "--port", "0", "--unixsocket", str(socket), "--save", "", "--dir", str(tmp_path)]
    with running(server, tmp_path / "redis.log"):
        until(socket.exists, "Redis")
        with periodic_work(tmp_path, DATABASE_URL=database_url, CELERY_BROKER_URL=f"redis+socket://{socket}"):
            ticks_twice()
    assert not (tmp_path / "broker").exists()
