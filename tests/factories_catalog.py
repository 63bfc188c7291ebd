"""Rows of the billing catalogue for tests; each is valid as it comes."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import factory
from factory.django import DjangoModelFactory

from billing_catalog.models import BillingEntry, FreeProvider, ModelPrice, PriceSource, ProviderAlias, TierOverride

MADE_AT = datetime(2026, 8, 1, 12, tzinfo=UTC)


class CuratedFactory(DjangoModelFactory[Any]):
    class Meta:
        abstract = True

    created_at = MADE_AT
    updated_at = MADE_AT


class BillingEntryFactory(CuratedFactory):
    class Meta:
        model = BillingEntry

    provider = factory.Sequence(lambda number: f"provider-{number}")
    auth_type = "oauth"
    billing = "subscription"
    overage = "hard-stop"


class ProviderAliasFactory(CuratedFactory):
    class Meta:
        model = ProviderAlias

    alias = factory.Sequence(lambda number: f"alias-{number}")
    provider = "claude"


class ModelPriceFactory(DjangoModelFactory[Any]):
    class Meta:
        model = ModelPrice

    provider = "openai"
    model = factory.Sequence(lambda number: f"model-{number}")
    input_usd_per_million = Decimal(3)
    output_usd_per_million = Decimal(15)
    effective_from = MADE_AT


class TierOverrideFactory(CuratedFactory):
    class Meta:
        model = TierOverride

    provider = factory.Sequence(lambda number: f"provider-{number}")
    tier = "cheap"


class FreeProviderFactory(CuratedFactory):
    class Meta:
        model = FreeProvider

    provider = factory.Sequence(lambda number: f"free-{number}")


class PriceSourceFactory(CuratedFactory):
    class Meta:
        model = PriceSource

    provider = factory.Sequence(lambda number: f"provider-{number}")
    price_list = "openai"
