"""Periodic tasks of the project itself. Each can be repeated: a message is delivered at most once, or late."""

from celery import shared_task

from omniroute_admin.common.clock import now
from omniroute_admin.services.heartbeats import record_beat


@shared_task
def beat_heartbeat() -> None:
    """Show that scheduler, broker and worker all live: without one of them this is not run."""
    record_beat(name="beat", now=now())
