"""What waits in the broker, on each broker that there is."""

import shutil
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from kombu import Connection, Producer, Queue

from omniroute_admin import broker
from omniroute_admin.common.clock import now
from omniroute_admin.periodic import _mark
from omniroute_admin.selectors.metrics import read_queue_metrics
from omniroute_admin.selectors.queue import BrokerUnreachableError, look_at_queue
from tests.processes import free_port, running, until

SECOND = timedelta(seconds=1)


def send(url: str, options: dict[str, Any]) -> datetime:
    """Send a message as Celery does and return when."""
    headers: dict[str, Any] = {}
    at = now()
    _mark(headers=headers)
    with Connection(url, transport_options=options) as connection:
        queue = Queue("omniroute_admin", routing_key="omniroute_admin")
        Producer(connection).publish({}, routing_key="omniroute_admin", headers=headers, declare=[queue])
    return at


def check_counts(settings: Any) -> None:
    """Check that the queue is empty, then send twice, and check what is told."""
    assert (look_at_queue().waiting, look_at_queue().oldest_sent_at) == (0, None)
    told = {one.name: dict(one.samples) for one in read_queue_metrics(now=now())}
    assert told["omniroute_queue_oldest_age_seconds"] == {(): 0}
    options = getattr(settings, "CELERY_BROKER_TRANSPORT_OPTIONS", {})
    first, _ = (send(settings.CELERY_BROKER_URL, options) for _ in range(2))
    queue = look_at_queue()
    assert queue.waiting == 2
    assert queue.oldest_sent_at is not None
    assert first <= queue.oldest_sent_at <= now()
    told = {one.name: dict(one.samples) for one in read_queue_metrics(now=queue.oldest_sent_at + 7 * SECOND)}
    assert told["omniroute_broker_up"] == {(): 1}
    assert told["omniroute_queue_messages"] == {(): 2}
    assert told["omniroute_queue_oldest_age_seconds"] == {(): 7}


def test_messages_in_files_are_counted_and_the_oldest_has_its_age(tmp_path: Path, settings: Any) -> None:
    broker.install()
    for name in ("messages", "control"):
        (tmp_path / name).mkdir()
    settings.CELERY_BROKER_URL = "filesystem://"
    settings.CELERY_BROKER_TRANSPORT_OPTIONS = {
        "data_folder_in": str(tmp_path / "messages"),
        "data_folder_out": str(tmp_path / "messages"),
        "control_folder": str(tmp_path / "control"),
    }
    check_counts(settings)
    shutil.rmtree(tmp_path / "messages")
    assert [(one.name, one.samples) for one in read_queue_metrics(now=now())] == [("omniroute_broker_up", (((), 0),))]


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[str]:
    socket = tmp_path / "redis.sock"
    server = ["redis-server", "--port", "0", "--unixsocket", str(socket), "--save", "", "--dir", str(tmp_path)]
    with running(server, tmp_path / "redis.log"):
        until(socket.exists, "Redis")
        yield f"redis+socket://{socket}"


@pytest.mark.redis
@pytest.mark.skipif(shutil.which("redis-server") is None, reason="redis-server is not installed")
def test_messages_in_redis_are_counted_and_the_oldest_has_its_age(redis: str, settings: Any) -> None:
    settings.CELERY_BROKER_URL, settings.CELERY_BROKER_TRANSPORT_OPTIONS = redis, {}
    check_counts(settings)


@pytest.mark.parametrize("url", ["redis://:hidden@127.0.0.1:{port}/0", "amqp://u:hidden@127.0.0.1:{port}//"])
def test_a_broker_that_does_not_answer_is_told_and_its_address_is_not(url: str, settings: Any) -> None:
    settings.CELERY_BROKER_URL = url.format(port=free_port())
    with pytest.raises(BrokerUnreachableError) as error:
        look_at_queue()
    assert "hidden" not in str(error.value)
    assert [(one.name, one.samples) for one in read_queue_metrics(now=now())] == [("omniroute_broker_up", (((), 0),))]
