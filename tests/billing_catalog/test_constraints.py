"""SPEC 3: what must not be in the catalogue cannot get in past the services either."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from billing_catalog.models import LoadedFact, ModelPrice, TierThresholds
from tests.factories import (
    BillingEntryFactory,
    FreeProviderFactory,
    ModelPriceFactory,
    PriceSourceFactory,
    ProviderAliasFactory,
    TierOverrideFactory,
)
from tests.factories_catalog import MADE_AT

pytestmark = pytest.mark.django_db

TWICE: list[tuple[str, Any, dict[str, Any]]] = [
    ("billing_one_per_auth_type", BillingEntryFactory, {"provider": "claude", "auth_type": "oauth"}),
    ("billing_one_provider_wide", BillingEntryFactory, {"provider": "claude", "auth_type": None}),
    ("alias", ProviderAliasFactory, {"alias": "anthropic"}),
    ("tier_one_provider_wide", TierOverrideFactory, {"provider": "openai", "model_pattern": None}),
    ("tier_one_per_pattern", TierOverrideFactory, {"provider": "openai", "model_pattern": "gpt-*"}),
    ("free provider", FreeProviderFactory, {"provider": "kiro"}),
    ("price source", PriceSourceFactory, {"provider": "claude"}),
    ("price_one_per_start", ModelPriceFactory, {"model": "m", "effective_to": MADE_AT + timedelta(days=1)}),
]

IMPOSSIBLE: list[tuple[str, Any, dict[str, Any]]] = [
    ("billing_has_provider", BillingEntryFactory, {"provider": ""}),
    ("billing_is_a_class", BillingEntryFactory, {"billing": "prepaid"}),
    ("billing_overage_is_a_word", BillingEntryFactory, {"overage": "maybe"}),
    ("alias_differs_from_provider", ProviderAliasFactory, {"alias": "claude", "provider": "claude"}),
    ("alias_has_both_names", ProviderAliasFactory, {"alias": ""}),
    ("alias_has_both_names (provider)", ProviderAliasFactory, {"provider": ""}),
    ("price_has_names", ModelPriceFactory, {"provider": ""}),
    ("price_has_names (model)", ModelPriceFactory, {"model": ""}),
    ("price_ends_after_start", ModelPriceFactory, {"effective_to": MADE_AT}),
    ("price_is_not_negative", ModelPriceFactory, {"input_usd_per_million": Decimal("-0.000001")}),
    ("price_is_not_negative (output)", ModelPriceFactory, {"output_usd_per_million": Decimal(-1)}),
    ("price_is_not_negative (cached)", ModelPriceFactory, {"cached_input_usd_per_million": Decimal(-1)}),
    ("tier_has_provider", TierOverrideFactory, {"provider": ""}),
    ("tier_pattern_is_not_blank", TierOverrideFactory, {"model_pattern": ""}),
    ("tier_is_a_tier", TierOverrideFactory, {"tier": "gold"}),
    ("free_has_provider", FreeProviderFactory, {"provider": ""}),
    ("source_has_provider", PriceSourceFactory, {"provider": ""}),
]


@pytest.mark.parametrize(("name", "factory", "fields"), TWICE, ids=[name for name, _, _ in TWICE])
def test_the_database_refuses_the_same_row_twice(name: str, factory: Any, fields: dict[str, Any]) -> None:
    factory(**fields)
    with pytest.raises(IntegrityError), transaction.atomic():
        factory(**fields)
    factory._meta.model.objects.get()


@pytest.mark.parametrize(("name", "factory", "fields"), IMPOSSIBLE, ids=[name for name, _, _ in IMPOSSIBLE])
def test_the_database_refuses_a_row_that_cannot_be(name: str, factory: Any, fields: dict[str, Any]) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        factory(**fields)
    with pytest.raises(IntegrityError), transaction.atomic():
        factory._meta.model.objects.bulk_create([factory.build(**fields)])
    assert not factory._meta.model.objects.exists()


def test_the_database_refuses_a_second_price_without_an_end() -> None:
    ModelPriceFactory(model="m")
    with pytest.raises(IntegrityError), transaction.atomic():
        ModelPriceFactory(model="m", effective_from=MADE_AT + timedelta(days=1))
    ModelPriceFactory(model="M", effective_from=MADE_AT + timedelta(days=1))
    ModelPriceFactory(model="m", provider="codex")


def test_the_database_lets_a_provider_have_one_entry_per_auth_type_and_one_for_all() -> None:
    for auth_type in ("oauth", "apikey", None):
        BillingEntryFactory(provider="claude", auth_type=auth_type)


@pytest.mark.parametrize("fields", [{"free": -1}, {"free": 2, "cheap": 1}], ids=["below 0", "free above cheap"])
def test_the_database_refuses_thresholds_out_of_order(fields: dict[str, Any]) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        TierThresholds.objects.filter(pk=1).update(**fields)


def test_the_database_refuses_a_second_row_of_thresholds() -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        TierThresholds.objects.create(pk=2)
    TierThresholds.objects.get()


def test_the_database_refuses_to_mark_a_fact_as_loaded_twice() -> None:
    LoadedFact.objects.create(kind="billing entry", key="claude oauth", loaded_at=MADE_AT)
    with pytest.raises(IntegrityError), transaction.atomic():
        LoadedFact.objects.create(kind="billing entry", key="claude oauth", loaded_at=MADE_AT)


def test_names_are_canonical_however_a_row_is_written() -> None:
    BillingEntryFactory(provider="  Claude ", auth_type=" OAuth")
    ModelPrice.objects.bulk_create([ModelPriceFactory.build(provider=" OpenAI ")])
    assert BillingEntryFactory._meta.model.objects.get(provider="CLAUDE", auth_type="oauth").provider == "claude"
    assert ModelPrice.objects.values_list("provider", flat=True).get() == "openai"
