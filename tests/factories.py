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
    AlertDeliveryFactory,
    AlertFactory,
    AlertRuleFactory,
    BreakerFactory,
    ConnectionFactory,
    CooldownFactory,
    LedgerSumFactory,
    QuotaReadingFactory,
    QuotaWindowFactory,
    RefusalReportFactory,
    RungFlipFactory,
    RungSampleFactory,
    SpendHoldFactory,
    UsageEventFactory,
)

__all__ = [
    "AlertDeliveryFactory",
    "AlertFactory",
    "AlertRuleFactory",
    "BillingEntryFactory",
    "BreakerFactory",
    "ConnectionFactory",
    "CooldownFactory",
    "FreeProviderFactory",
    "LedgerSumFactory",
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
