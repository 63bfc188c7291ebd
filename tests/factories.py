"""Every factory, under one name."""

from tests.factories_catalog import (
    BillingEntryFactory,
    FreeProviderFactory,
    ModelPriceFactory,
    PriceSourceFactory,
    ProviderAliasFactory,
    TierOverrideFactory,
)
from tests.factories_ladder import (
    BreakerFactory,
    ConnectionFactory,
    CooldownFactory,
    QuotaReadingFactory,
    QuotaWindowFactory,
    RefusalReportFactory,
    RungFlipFactory,
    RungSampleFactory,
    SpendHoldFactory,
    UsageEventFactory,
)

__all__ = [
    "BillingEntryFactory",
    "BreakerFactory",
    "ConnectionFactory",
    "CooldownFactory",
    "FreeProviderFactory",
    "ModelPriceFactory",
    "PriceSourceFactory",
    "ProviderAliasFactory",
    "QuotaReadingFactory",
    "QuotaWindowFactory",
    "RefusalReportFactory",
    "RungFlipFactory",
    "RungSampleFactory",
    "SpendHoldFactory",
    "TierOverrideFactory",
    "UsageEventFactory",
]
