"""What the worker and the scheduler tell of themselves: signs of life, how each task ended, and where a task came from.

Connected to Celery's signals in every process; each of them speaks in the process it is about.
"""

import logging
from collections.abc import Callable
from contextvars import Token
from datetime import timedelta
from time import perf_counter
from typing import Any

from celery import signals
from django.conf import settings
from django.db import Error, connection

from omniroute_admin.common.clock import now
from omniroute_admin.common.present import PRESENT, Work
from omniroute_admin.common.selectors.heartbeat import SCHEDULER, WORKER
from omniroute_admin.selectors.queue import SENT_AT
from omniroute_admin.services.heartbeats import record_beat, record_run

ASKED_BY = "asked_by"
"""The header of a message with the id of the request that sent it."""

_OFTEN = timedelta(seconds=5)
_log = logging.getLogger(__name__)
_running: dict[str, tuple[float, Token[Work | None]]] = {}
_noted: dict[str, Any] = {}


def connect() -> None:
    """Connect everything, once."""
    signals.setup_logging.connect(_keep_logging, weak=False)
    signals.before_task_publish.connect(_mark, weak=False)
    signals.task_prerun.connect(_begin, weak=False)
    signals.task_postrun.connect(_end, weak=False)
    signals.worker_ready.connect(_worker_is_ready, weak=False)
    signals.beat_init.connect(_scheduler_begins, weak=False)


def _keep_logging(**_: Any) -> None:
    """Leave the log as the settings have it: that this is connected keeps Celery's own set-up away."""


def _mark(*, headers: dict[str, Any], **_: Any) -> None:
    """Say in a message when it was sent, and at whose request."""
    headers[SENT_AT] = now().isoformat()
    work = PRESENT.get()
    if work is not None:
        headers[ASKED_BY] = work.request_id


def _begin(*, task_id: str, task: Any, **_: Any) -> None:
    asked_by = getattr(task.request, ASKED_BY, None)
    work = Work(asked_by if isinstance(asked_by, str) else task_id, task=task.name)
    _running[task_id] = (perf_counter(), PRESENT.set(work))


def _end(*, task_id: str, task: Any, state: str | None = None, **_: Any) -> None:
    began = _running.pop(task_id, None)
    if began is None:
        return
    PRESENT.reset(began[1])
    is_success = state == "SUCCESS"
    # An eager one belongs to who asked for it; of one that goes well every few seconds not every run is written.
    if not task.request.is_eager and (not is_success or _is_time(f"run {task.name}", _OFTEN)):
        took = perf_counter() - began[0]
        _try(lambda: record_run(task=task.name, is_success=is_success, took_seconds=took, now=now()))


def _worker_is_ready(*, sender: Any, **_: Any) -> None:
    """Show from now on that this worker lives, whether the scheduler sends it anything or not."""
    _beat(WORKER)
    sender.timer.call_repeatedly(settings.HEARTBEAT_SECONDS, _beat, (WORKER,))


def _scheduler_begins(**_: Any) -> None:
    signals.after_task_publish.connect(_scheduler_sent, weak=False)


def _scheduler_sent(**_: Any) -> None:
    """Show that the scheduler lives and reaches the broker."""
    if _is_time(SCHEDULER, timedelta(seconds=settings.HEARTBEAT_SECONDS)):
        _beat(SCHEDULER)


def _is_time(name: str, every: timedelta) -> bool:
    """Tell whether something was not noted for a while, and remember that it is noted now."""
    at, last = now(), _noted.get(name)
    if last is not None and abs(at - last) < every:
        return False
    _noted[name] = at
    return True


def _beat(name: str) -> None:
    _try(lambda: record_beat(name=name, now=now()))


def _try(write: Callable[[], None]) -> None:
    """Write a sign of life; the database out of reach is no reason to end, and told elsewhere."""
    try:
        connection.close_if_unusable_or_obsolete()
        write()
    except Error as error:
        _log.warning("a sign of life was not written: %s", type(error).__name__)
        connection.close()
