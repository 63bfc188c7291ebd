"""Write billing entries: how a provider bills one auth type, or every one (B2, B3)."""

from datetime import date, datetime
from typing import TypedDict

from billing_catalog.models import BillingEntry
from billing_catalog.services.rows import create_row, delete_row, update_row
from omniroute_admin.common.history import Actor


class EntryValues(TypedDict, total=False):
    """The fields of a billing entry; `auth_type` None is provider-wide, `reason` is the entry's own justification."""

    provider: str
    auth_type: str | None
    billing: str
    overage: str
    reason: str
    source_url: str
    reviewed_on: date | None
    reviewed_by: str


def create_entry(*, values: EntryValues, actor: Actor, reason: str, now: datetime) -> BillingEntry:
    """Curate a provider's billing (B2).

    Raises:
        ValidationError: names every bad field.
        Conflict: the provider and auth type has an entry already.
    """
    return create_row(model=BillingEntry, values=values, actor=actor, reason=reason, now=now)


def update_entry(
    *, entry: BillingEntry, changes: EntryValues, actor: Actor, reason: str, now: datetime
) -> BillingEntry:
    """Change a billing entry; a shipped one becomes the operator's.

    Raises:
        ValidationError: names every bad field.
        Conflict: the provider and auth type has another entry already.
        NotFound: the entry is gone.
    """
    return update_row(row=entry, changes=changes, actor=actor, reason=reason, now=now)


def delete_entry(*, entry: BillingEntry, actor: Actor, reason: str, now: datetime) -> None:
    """Delete a billing entry: what it covered is uncurated again (B5).

    Raises:
        NotFound: the entry is gone.
    """
    delete_row(row=entry, actor=actor, reason=reason, now=now)
