"""What the tier rule looks at, as it stands (T)."""

from billing_catalog.core.tiers import TierIndex, index_tiers
from billing_catalog.mapping import read_thresholds, read_tier_rules
from billing_catalog.models import BillingEntry, FreeProvider, PriceSource


def read_tier_index() -> TierIndex:
    """Return the facts of the tier rule; a provider of a plan sells seats as well (T)."""
    seats = PriceSource.objects.filter(sells_seats=True).values_list("provider", flat=True)
    plans = BillingEntry.objects.filter(billing="subscription").values_list("provider", flat=True)
    return index_tiers(
        rules=read_tier_rules(),
        free_providers=frozenset(FreeProvider.objects.values_list("provider", flat=True)),
        seat_sellers=frozenset({*seats, *plans}),
        thresholds=read_thresholds(),
    )
