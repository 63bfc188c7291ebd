"""Checks of the periodic work: broker, queue, the heartbeat that goes through beat, broker and worker."""

from datetime import UTC, datetime

from django.conf import settings
from kombu import Connection

from omniroute_admin.celery import app
from omniroute_admin.common.core.words import count_text
from omniroute_admin.common.selectors.heartbeat import PeriodicState, periodic_work
from omniroute_admin.doctor.report import Check, Needs, Said, age, error, ok, warning

LONG_QUEUE = 100
_PATIENCE_SECONDS = 3
_LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


def check_broker(now: datetime) -> Said:
    """Look whether the broker answers, and how much waits in it."""
    try:
        with app.connection_for_read() as broker:
            broker.ensure_connection(max_retries=1, timeout=_PATIENCE_SECONDS, interval_start=0)
            waiting = _waiting(broker)
    except Exception as problem:  # noqa: BLE001 - each transport has errors of its own
        return error(
            f"The broker does not answer ({type(problem).__name__}): charts and alerts stand still, decisions go on.",
            "Start it, or mend CELERY_BROKER_URL; worker and beat find it again by themselves.",
        )
    if waiting > LONG_QUEUE:
        return warning(
            f"{waiting} messages wait in the broker: no worker takes them in time.", "Start a worker, or more."
        )
    return ok(f"The broker answers; {count_text(waiting, 'message waits', 'messages wait')}.")


def _waiting(broker: Connection) -> int:
    queue = settings.CELERY_TASK_DEFAULT_QUEUE
    try:
        return int(broker.default_channel.queue_declare(queue=queue, passive=True).message_count)
    except broker.channel_errors:
        return 0  # nobody has sent anything yet


def check_heartbeat(now: datetime) -> Said:
    """Look when the schedule last went through beat, broker and worker."""
    work = periodic_work(now=now, started_at=_LONG_AGO)
    mend = "Start beat (one) and a worker, and look at their logs; quickstart runs both."
    if work.last_beat_at is None:
        return error("Beat and worker were never seen: charts and alerts stand still, decisions go on.", mend)
    seen = age((now - work.last_beat_at).total_seconds())
    if work.state is PeriodicState.LATE:
        return error(f"Beat and worker were last seen {seen} ago.", mend)
    return ok(f"Beat and worker were seen {seen} ago.")


CHECKS = (
    Check("broker", Needs.NOTHING, check_broker),
    Check("periodic_work", Needs.TABLES, check_heartbeat),
)
