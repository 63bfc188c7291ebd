"""Periodic tasks of the ladder. Each can be repeated: a message is delivered at most once, or late."""

from celery import shared_task

from ladder.services.demo import move_demo
from omniroute_admin.common.clock import now


@shared_task
def move_demo_fleet() -> None:
    """Read the demo fleet anew; where there is none, do nothing."""
    move_demo(now=now())
