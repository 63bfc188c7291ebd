"""Everything that `/metrics` tells: what is read from the database, and what is known without it."""

import platform
from collections.abc import Iterator
from datetime import datetime
from importlib.metadata import version

from django.conf import settings
from django.db import Error, connection

from ladder.selectors.metrics import read_ladder_metrics
from omniroute_admin.common.core.families import Gauge, gauge, gauges
from omniroute_admin.common.models import Heartbeat, TaskRun
from omniroute_admin.common.selectors.heartbeat import PROCESSES
from omniroute_admin.selectors.queue import BrokerUnreachableError, look_at_queue

_PRODUCT = "0.1.0"


def read_state_metrics(*, now: datetime) -> list[Gauge]:
    """Return what the database tells at `now`; without it, that it is out of reach and nothing else.

    It belongs to the thread that answers requests: the prepared snapshot is that thread's.
    """
    try:
        told = [
            *read_ladder_metrics(now=now, connections_at_most=settings.METRICS_CONNECTIONS_AT_MOST),
            *_of_periodic_work(),
        ]
    except Error:
        told = []
    return [
        *told,
        gauge("omniroute_database_up", "1 where the database answered this very request.", bool(told)),
        gauges(
            "omniroute_build_info",
            "What runs; the number is always 1.",
            "version python django database",
            [((_PRODUCT, platform.python_version(), version("django"), connection.vendor), 1)],
        ),
    ]


def _of_periodic_work() -> Iterator[Gauge]:
    beats = dict(Heartbeat.objects.filter(name__in=PROCESSES).order_by("name").values_list("name", "beat_at"))
    runs = list(TaskRun.objects.order_by("name"))
    yield gauges(
        "omniroute_heartbeat_timestamp_seconds",
        "Last sign of life: the worker process, the scheduler, and a message that went all the way (chain).",
        "process",
        (((PROCESSES[name],), at.timestamp()) for name, at in beats.items()),
    )
    ended = {
        "success": ("When the periodic task last ended well.", "succeeded_at"),
        "failure": ("When the periodic task last failed.", "failed_at"),
    }
    for word, (help_text, field) in ended.items():
        at = (((run.name,), getattr(run, field)) for run in runs)
        samples = ((labels, instant.timestamp()) for labels, instant in at if instant is not None)
        yield gauges(f"omniroute_task_{word}_timestamp_seconds", help_text, "task", samples)
    yield gauges(
        "omniroute_task_failures",
        "How often the periodic task failed since it was first seen.",
        "task",
        (((run.name,), run.failures) for run in runs),
    )
    yield gauges(
        "omniroute_task_duration_seconds",
        "How long the periodic task took when it last ended.",
        "task",
        (((run.name,), run.took_milliseconds / 1000) for run in runs),
    )


def read_queue_metrics(*, now: datetime) -> list[Gauge]:
    """Return what waits in the broker; it may take a second, and needs no database."""
    try:
        queue = look_at_queue()
    except BrokerUnreachableError:
        return [_broker_up(False)]
    oldest = queue.oldest_sent_at
    age = 0.0 if not queue.waiting else None if oldest is None else max(0.0, (now - oldest).total_seconds())
    return [
        _broker_up(True),
        gauge("omniroute_queue_messages", "Messages in the broker that wait for the worker.", queue.waiting),
        gauge("omniroute_queue_oldest_age_seconds", "How long the oldest of them has waited; 0 where none does.", age),
    ]


def _broker_up(is_up: bool) -> Gauge:
    return gauge("omniroute_broker_up", "1 where the broker answered within a second.", is_up)
