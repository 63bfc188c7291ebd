"""Rows of the catalogue to values of the core; the only place that knows both."""

from collections.abc import Iterable
from datetime import datetime

from django.db.models import Q, QuerySet

from billing_catalog.core.values import Billing, CatalogRow, Overage, Price, Thresholds, Tier, TierRule
from billing_catalog.models import BillingEntry, ModelPrice, TierOverride, TierThresholds


def to_catalog_rows(entries: Iterable[tuple[str, str | None, str, str]]) -> tuple[CatalogRow, ...]:
    """Return the billing rows from (provider, auth type, billing, overage)."""
    return tuple(
        CatalogRow(provider, Billing(billing), Overage(overage), auth_type)
        for provider, auth_type, billing, overage in entries
    )


def read_catalog_rows() -> tuple[CatalogRow, ...]:
    """Return every billing entry; one query."""
    return to_catalog_rows(
        BillingEntry.objects.order_by("id").values_list("provider", "auth_type", "billing", "overage")
    )


def read_prices(*, now: datetime) -> tuple[Price, ...]:
    """Return the prices that are current at `now` or start later; one query."""
    return to_prices(ModelPrice.objects.filter(Q(effective_to__isnull=True) | Q(effective_to__gt=now)))


PRICE_COLUMNS = (
    "provider",
    "model",
    "effective_from",
    "effective_to",
    "input_usd_per_million",
    "output_usd_per_million",
    "cached_input_usd_per_million",
)
"""What a price is of, when it holds and what it is: the first fields of a `Price`, in their order."""


def to_prices(rows: QuerySet[ModelPrice]) -> tuple[Price, ...]:
    """Return the prices of a query in order of their id."""
    return tuple(
        Price(provider, model, start, end, price_in, price_out, price_cached, frozenset(capabilities), rank)
        for provider, model, start, end, price_in, price_out, price_cached, capabilities, rank in rows.order_by(
            "id"
        ).values_list(*PRICE_COLUMNS, "capabilities", "rank")
    )


def read_tier_rules() -> tuple[TierRule, ...]:
    """Return the tier overrides in order of their id: of several that match, the first made wins (T)."""
    rows = TierOverride.objects.order_by("id").values_list("provider", "tier", "model_pattern")
    return tuple(TierRule(provider, Tier(tier), pattern) for provider, tier, pattern in rows)


def read_thresholds() -> Thresholds:
    """Return the tier thresholds."""
    row = TierThresholds.objects.get(pk=1)
    return Thresholds(row.free, row.cheap)
