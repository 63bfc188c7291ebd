"""Periodic tasks of the catalogue. Each can be repeated: a message is delivered at most once, or late."""

from celery import shared_task

from billing_catalog.services import price_sync
from billing_catalog.services.price_lists import read_all
from omniroute_admin.common.clock import now
from omniroute_admin.common.history import Actor


@shared_task
def sync_prices() -> None:
    """Bring the installed price lists into the catalogue; operators' prices are kept, the same lists change nothing."""
    at = now()
    wanted = price_sync.wanted_prices(read=read_all(litellm_file=None, now=at))
    price_sync.sync_prices(wanted=wanted, actor=Actor(name="sync_prices"), now=at)
