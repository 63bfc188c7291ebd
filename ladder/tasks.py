"""Periodic tasks of the ladder. Each can be repeated: a message is delivered at most once, or late."""

import logging
from datetime import timedelta

from celery import shared_task
from django.conf import settings

from ladder.services import alert_sending, alerts, closing, retention, timeline
from ladder.services.demo import move_demo
from ladder.services.pruning import Run
from ladder.services.thinning import KEEP_ALL_FOR, thin_readings, thin_refusals
from omniroute_admin.common.clock import now

_log = logging.getLogger(__name__)


@shared_task
def move_demo_fleet() -> None:
    """Read the demo fleet anew; where there is none, do nothing."""
    move_demo(now=now())


@shared_task
def note_flips() -> None:
    """Note what changed on the ladder since the last look; one that comes late tells the same instants."""
    timeline.note_flips(now=now())


@shared_task
def sample_occupancy() -> None:
    """Keep how each rung stands in this minute, once."""
    timeline.sample_occupancy(now=now())


@shared_task
def thin_timeline() -> None:
    """Drop the samples of all minutes of an hour but the first, where they are older than a month."""
    timeline.thin_timeline(now=now())


@shared_task
def thin_history(*, keep_all_for_days: int = KEEP_ALL_FOR.days) -> None:
    """Thin old readings and drop old reports of refusals; no verdict changes (Q5)."""
    at = now()
    thin_readings(now=at, keep_all_for=timedelta(days=keep_all_for_days))
    thin_refusals(now=at)


@shared_task
def prune_kept() -> None:
    """Prune what is older than its period; where the clock cannot be trusted, say so and prune nothing."""
    at = now()
    age = retention.read_age(now=at)
    if age.at is None:
        _log.info("Nothing is pruned. %s", age.refusal)
        return
    pruned = retention.prune(cutoffs=retention.cutoffs_of(age=age.at, periods=settings.KEEP), run=Run(now=at))
    for name in pruned.kept_faulty:
        _log.error("Event %s is kept one by one: its rows do not add up. See manage.py check_ledger.", name)


@shared_task
def expire_holds() -> None:
    """Mark the holds that ended by time; they have stopped acting without it."""
    closing.expire_holds(now=now())


@shared_task
def close_budget_windows() -> None:
    """Tell the timeline of budget windows that ended, and log where the rows of one do not add up."""
    closing.close_budget_windows(now=now())


SENT_AT_MOST = 50
"""How many deliveries one call of `send_alerts` attempts: other tasks wait for it."""


@shared_task
def look_for_alerts() -> None:
    """Raise and resolve alerts; a look that comes late does each once."""
    alerts.look_for_alerts(now=now())


@shared_task
def send_alerts() -> None:
    """Send what is due; a channel that fails is left alone for the rest of this call."""
    failing: set[str] = set()
    for _ in range(SENT_AT_MOST):
        sent = alert_sending.send_next(now=now(), without=failing)
        if sent is None:
            break
        if not sent.outcome.is_delivered:
            failing.add(sent.channel)


@shared_task
def thin_alerts() -> None:
    """Drop alerts that were over long ago, with their deliveries."""
    alerts.thin_alerts(now=now())
