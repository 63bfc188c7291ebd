"""What the catalogue's pages show of connections: how many an entry decides, and which (SPEC 5, 4)."""

from collections.abc import Mapping

from django import template

from billing_catalog.models import BillingEntry
from ladder.models import Connection
from ladder.selectors.catalogue_use import Pair, connections_of_entry, count_by_entry

register = template.Library()


@register.simple_tag
def entry_uses() -> Mapping[Pair, int]:
    """Return how many connections every entry decides; asked once a page."""
    return count_by_entry()


@register.filter
def uses_of(entry: BillingEntry, uses: Mapping[Pair, int]) -> int:
    """Return how many connections an entry decides."""
    return uses.get((entry.provider, entry.auth_type), 0)


@register.simple_tag
def connections_using(entry: BillingEntry) -> list[Connection]:
    """Return the connections that an entry decides."""
    return connections_of_entry(provider=entry.provider, auth_type=entry.auth_type)
