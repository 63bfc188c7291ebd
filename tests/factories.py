"""Every factory, under one name."""

from tests.factories_catalog import (
    BillingEntryFactory,
    FreeProviderFactory,
    ModelPriceFactory,
    PriceSourceFactory,
    ProviderAliasFactory,
    TierOverrideFactory,
)

__all__ = [
    "BillingEntryFactory",
    "FreeProviderFactory",
    "ModelPriceFactory",
    "PriceSourceFactory",
    "ProviderAliasFactory",
    "TierOverrideFactory",
]
