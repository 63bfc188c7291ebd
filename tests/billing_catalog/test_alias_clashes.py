"""SPEC 1: what becomes of rows that exclude each other when two names come to mean one provider."""

from datetime import timedelta
from typing import Any

import pytest

from billing_catalog.errors import AliasClash
from billing_catalog.models import BillingEntry, FreeProvider, ModelPrice, ProviderAlias
from billing_catalog.services.aliases import create_alias, update_alias
from ladder.models import Breaker, Connection
from omniroute_admin.common.history import Actor
from omniroute_admin.common.selectors.revision import current_revision
from tests.billing_catalog.acting import ACTOR, NOW, overlapping_prices
from tests.factories import (
    BillingEntryFactory,
    BreakerFactory,
    ConnectionFactory,
    FreeProviderFactory,
    ModelPriceFactory,
    PriceSourceFactory,
    ProviderAliasFactory,
    TierOverrideFactory,
)
from tests.factories_catalog import MADE_AT

pytestmark = pytest.mark.django_db

PAIR = {"alias": " CC ", "provider": "Claude"}
DAY = timedelta(days=1)


def clash(act: dict[str, Any]) -> AliasClash:
    with pytest.raises(AliasClash) as caught:
        create_alias(values=PAIR, **act)
    return caught.value


def test_every_row_in_the_way_of_every_kind_is_named_as_it_is_stored(act: dict[str, Any]) -> None:
    factories: list[tuple[Any, dict[str, Any]]] = [
        (BillingEntryFactory, {}),
        (BillingEntryFactory, {"auth_type": None}),
        (TierOverrideFactory, {}),
        (TierOverrideFactory, {"model_pattern": "a*"}),
        (FreeProviderFactory, {}),
        (PriceSourceFactory, {}),
        (BreakerFactory, {}),
        (ConnectionFactory, {"noauth": True}),
    ]
    rows = {
        provider: [factory(provider=provider, **values) for factory, values in factories]
        for provider in ("cc", "claude")
    }
    for pointer, provider in (("/alias", "cc"), ("/provider", "claude")):
        named = {error.detail for error in clash(act).errors if error.pointer == pointer}
        assert named == {f"{row._meta.verbose_name} {row.pk} of {provider} ({row})" for row in rows[provider]}


def test_rows_that_are_in_nobodys_way_are_not_named_and_nothing_is_changed(act: dict[str, Any]) -> None:
    first, second = BillingEntryFactory(provider="cc"), FreeProviderFactory(provider="cc")
    BillingEntryFactory(provider="cc", auth_type="apikey")
    own = BillingEntryFactory(provider="claude")
    BillingEntryFactory(provider="claude", auth_type="cookie")
    ConnectionFactory(provider="cc", connection_id="c1")
    ConnectionFactory(provider="claude", connection_id="c1", deleted_at=NOW)
    ModelPriceFactory(provider="cc", model="m")
    ModelPriceFactory(provider="claude", model="m")
    before = current_revision()
    refused = clash(act)
    assert [(error.pointer, error.detail.split(" (")[0]) for error in refused.errors] == [
        ("/alias", f"billing entry {first.pk} of cc"),
        ("/provider", f"billing entry {own.pk} of claude"),
    ]
    assert BillingEntry.objects.filter(provider="cc").count() == 2
    assert FreeProvider.objects.get().provider == "cc"
    assert set(ModelPrice.objects.values_list("provider", flat=True)) == {"cc", "claude"}
    assert not ProviderAlias.objects.exists()
    assert (current_revision(), second.history.count()) == (before, 1)


def test_the_sentence_of_a_long_clash_is_cut_and_the_errors_are_not(act: dict[str, Any]) -> None:
    for number in range(12):
        for provider in ("cc", "claude"):
            TierOverrideFactory(provider=provider, model_pattern=f"m{number}")
    refused = clash(act)
    assert "and 4 more" in refused.detail
    assert len(refused.errors) == 24


def test_the_providers_own_prices_win_and_the_rest_moves(act: dict[str, Any]) -> None:
    own = ModelPriceFactory(provider="claude", model="m", effective_from=MADE_AT + DAY)
    gone = ModelPriceFactory(provider="cc", model="m")
    other = ModelPriceFactory(provider="cc", model="n")
    create_alias(values=PAIR, **act)
    rows = ModelPrice.objects.order_by("model").values_list("pk", "provider")
    assert list(rows) == [(own.pk, "claude"), (other.pk, "claude")]
    last = ModelPrice.history.filter(id=gone.pk).order_by("-history_id")[0]
    assert (last.history_type, last.provider, last.model) == ("-", "cc", "m")
    assert (last.history_actor, last.history_date) == (ACTOR.name, NOW)
    assert last.history_change_reason == ("cc is an alias of claude, whose own prices of this model stand: because")
    assert own.history.count() == 1


def test_every_period_of_the_alias_gives_way_to_any_of_the_provider(act: dict[str, Any]) -> None:
    ModelPriceFactory(provider="cc", model="m", effective_to=MADE_AT + DAY)
    ModelPriceFactory(provider="cc", model="m", effective_from=MADE_AT + 2 * DAY)
    own = ModelPriceFactory(provider="claude", model="m", effective_from=MADE_AT + DAY, effective_to=MADE_AT + 2 * DAY)
    create_alias(values=PAIR, **act)
    assert ModelPrice.objects.get() == own
    assert overlapping_prices(provider="claude") == []


def test_a_removed_price_names_the_user_who_did_it(act: dict[str, Any], admin_user: Any) -> None:
    for provider in ("cc", "claude"):
        ModelPriceFactory(provider=provider, model="m")
    act |= {"actor": Actor(name="admin", user_id=admin_user.pk), "reason": ""}
    create_alias(values=PAIR, **act)
    last = ModelPrice.history.get(history_type="-")
    assert (last.history_user, last.history_actor) == (admin_user, "admin")
    assert last.history_change_reason == "cc is an alias of claude, whose own prices of this model stand"


def test_a_changed_alias_follows_the_same_rules(act: dict[str, Any]) -> None:
    alias = ProviderAliasFactory(alias="anthropic", provider="claude")
    for provider in ("cc", "claude"):
        ModelPriceFactory(provider=provider, model="m")
    row = BillingEntryFactory(provider="cc")
    update_alias(alias=alias, changes={"alias": "cc"}, **act)
    row.refresh_from_db()
    assert (row.provider, ModelPrice.objects.get().provider) == ("claude", "claude")


def test_many_prices_give_way_in_a_handful_of_statements(
    act: dict[str, Any], django_assert_max_num_queries: Any
) -> None:
    for number in range(300):
        for provider in ("cc", "claude"):
            ModelPriceFactory(provider=provider, model=f"m{number}")
    with django_assert_max_num_queries(60):
        create_alias(values=PAIR, **act)
    assert ModelPrice.history.filter(history_type="-", provider="cc").count() == 300
    assert (ModelPrice.objects.count(), Connection.objects.count(), Breaker.objects.count()) == (300, 0, 0)
