"""Write which price list serves which provider, and who sells seats (T)."""

from datetime import datetime
from typing import TypedDict

from billing_catalog.models import PriceSource
from billing_catalog.services.rows import create_row, delete_row, update_row
from omniroute_admin.common.history import Actor


class SourceValues(TypedDict, total=False):
    """The fields of a price source; the lists are named by the ids that genai-prices and LiteLLM give them."""

    provider: str
    price_list: str
    capability_list: str
    sells_seats: bool


def create_source(*, values: SourceValues, actor: Actor, reason: str, now: datetime) -> PriceSource:
    """Say which lists serve a provider.

    Raises:
        ValidationError: names every bad field.
        Conflict: the provider has a price source already.
    """
    return create_row(model=PriceSource, values=values, actor=actor, reason=reason, now=now)


def update_source(
    *, source: PriceSource, changes: SourceValues, actor: Actor, reason: str, now: datetime
) -> PriceSource:
    """Change which lists serve a provider; the next run of sync_prices follows.

    Raises:
        ValidationError: names every bad field.
        Conflict: the provider has another price source already.
        NotFound: the row is gone.
    """
    return update_row(row=source, changes=changes, actor=actor, reason=reason, now=now)


def delete_source(*, source: PriceSource, actor: Actor, reason: str, now: datetime) -> None:
    """Let a provider be served by the list of its own name again.

    Raises:
        NotFound: the row is gone.
    """
    delete_row(row=source, actor=actor, reason=reason, now=now)
