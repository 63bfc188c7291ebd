"""SPEC 1: adding an alias rewrites the rows that used it, in the same transaction."""

from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.core.exceptions import ValidationError
from simple_history.models import HistoricalChanges

from billing_catalog.errors import AliasClash, AliasInTheWay
from billing_catalog.models import BillingEntry, ModelPrice, ProviderAlias
from billing_catalog.selectors.aliases import alias_map, provider_fields, resolve_provider
from billing_catalog.services.aliases import create_alias, delete_alias, update_alias
from billing_catalog.services.entries import create_entry
from ladder.models import Breaker, Connection
from omniroute_admin.common.selectors.revision import current_revision
from tests.billing_catalog.acting import ACTOR, NOW
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

PAIR = {"alias": " CC ", "provider": "Claude"}


def rows_of_every_kind(provider: str) -> list[Any]:
    return [
        BillingEntryFactory(provider=provider),
        TierOverrideFactory(provider=provider),
        FreeProviderFactory(provider=provider),
        PriceSourceFactory(provider=provider),
        ModelPriceFactory(provider=provider, model="a"),
        ModelPriceFactory(provider=provider, model="b"),
        Connection.objects.create(connection_id="c1", provider=provider, created_at=NOW, updated_at=NOW),
        Breaker.objects.create(provider=provider, reported_at=NOW),
    ]


def test_every_row_under_the_alias_moves_to_the_provider_with_history(act: dict[str, Any]) -> None:
    rows = rows_of_every_kind("cc")
    kinds = {type(row) for row in rows}
    assert kinds == {
        model
        for model in apps.get_models()
        if provider_fields(model=model) and not issubclass(model, HistoricalChanges)
    }
    create_alias(values=PAIR, **act)
    for row in rows:
        row.refresh_from_db()
        assert row.provider == "claude"
        last = row.history.order_by("-history_id")[0]
        assert (last.history_type, last.provider, last.history_actor) == ("~", "claude", ACTOR.name)
        assert (last.history_change_reason, last.history_date) == ("because", NOW)


def test_an_alias_resolves_whatever_comes_in_later(act: dict[str, Any]) -> None:
    create_alias(values=PAIR, **act)
    assert alias_map() == {"cc": "claude"}
    assert resolve_provider(raw=" Cc") == "claude"
    entry = create_entry(
        values={"provider": "cc", "auth_type": None, "billing": "metered", "overage": "unknown"}, **act
    )
    assert entry.provider == "claude"


def test_rows_of_the_provider_itself_and_of_others_stay(act: dict[str, Any]) -> None:
    own, other = BillingEntryFactory(provider="claude"), BillingEntryFactory(provider="ccc")
    create_alias(values=PAIR, **act)
    for row, provider in ((own, "claude"), (other, "ccc")):
        row.refresh_from_db()
        assert (row.provider, row.history.count()) == (provider, 1)


def test_rows_in_each_others_way_are_named_and_nothing_is_changed(act: dict[str, Any]) -> None:
    first, second = BillingEntryFactory(provider="cc"), FreeProviderFactory(provider="cc")
    BillingEntryFactory(provider="claude")
    before = current_revision()
    with pytest.raises(AliasClash) as caught:
        create_alias(values=PAIR, **act)
    assert f"billing entry {first.pk}" in caught.value.detail
    assert [error.pointer for error in caught.value.errors] == ["/alias"]
    for row in (first, second):
        row.refresh_from_db()
        assert row.provider == "cc"
    assert not ProviderAlias.objects.exists()
    assert (current_revision(), second.history.count()) == (before, 1)


def test_open_prices_of_one_model_under_both_names_are_in_each_others_way(act: dict[str, Any]) -> None:
    in_the_way = ModelPriceFactory(provider="cc", model="m")
    ModelPriceFactory(provider="claude", model="m", effective_from=MADE_AT + timedelta(days=1))
    with pytest.raises(AliasClash, match=f"price {in_the_way.pk} "):
        create_alias(values=PAIR, **act)


def test_prices_whose_periods_would_overlap_are_in_each_others_way(act: dict[str, Any]) -> None:
    ModelPriceFactory(provider="cc", model="m", effective_to=MADE_AT + timedelta(days=2))
    ModelPriceFactory(provider="claude", model="m", effective_from=MADE_AT + timedelta(days=1))
    with pytest.raises(AliasClash, match="price"):
        create_alias(values=PAIR, **act)
    assert set(ModelPrice.objects.values_list("provider", flat=True)) == {"cc", "claude"}


def test_prices_one_after_the_other_join(act: dict[str, Any]) -> None:
    ModelPriceFactory(provider="cc", model="m", effective_to=MADE_AT + timedelta(days=1))
    ModelPriceFactory(provider="claude", model="m", effective_from=MADE_AT + timedelta(days=1))
    create_alias(values=PAIR, **act)
    assert ModelPrice.objects.filter(provider="claude").count() == 2


def test_a_long_list_of_rows_in_the_way_is_cut_and_counted(act: dict[str, Any]) -> None:
    for number in range(23):
        for provider in ("cc", "claude"):
            ModelPriceFactory(provider=provider, model=f"m{number}")
    with pytest.raises(AliasClash, match="and 3 more"):
        create_alias(values=PAIR, **act)


@pytest.mark.parametrize(
    ("alias", "provider", "pointer"),
    [("cc", "anthropic", "/provider"), ("claude", "openai", "/alias")],
    ids=["to another alias", "of what another alias means"],
)
def test_a_chain_of_aliases_is_refused(alias: str, provider: str, pointer: str, act: dict[str, Any]) -> None:
    ProviderAliasFactory(alias="anthropic", provider="claude")
    with pytest.raises(AliasInTheWay) as caught:
        create_alias(values={"alias": alias, "provider": provider}, **act)
    assert [error.pointer for error in caught.value.errors] == [pointer]


def test_a_loop_is_refused(act: dict[str, Any]) -> None:
    ProviderAliasFactory(alias="anthropic", provider="claude")
    with pytest.raises(AliasInTheWay):
        create_alias(values={"alias": "claude", "provider": "anthropic"}, **act)
    with pytest.raises(ValidationError):
        create_alias(values={"alias": "openai", "provider": "OpenAI"}, **act)


def test_bad_names_are_all_named(act: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as caught:
        create_alias(values={"alias": "a/b", "provider": "two words"}, **act)
    assert set(caught.value.message_dict) == {"alias", "provider"}
    with pytest.raises(ValidationError) as caught:
        create_alias(values={"alias": "", "provider": " "}, **act)
    assert set(caught.value.message_dict) == {"alias", "provider"}


def test_an_alias_stands_only_once(act: dict[str, Any]) -> None:
    create_alias(values=PAIR, **act)
    with pytest.raises(ValidationError):
        create_alias(values={"alias": "cc", "provider": "openai"}, **act)


def test_a_changed_alias_rewrites_the_rows_under_its_new_name(act: dict[str, Any]) -> None:
    alias = create_alias(values=PAIR, **act)
    row = BillingEntryFactory(provider="anthropic")
    update_alias(alias=alias, changes={"alias": "Anthropic"}, **act)
    row.refresh_from_db()
    assert (row.provider, alias_map()) == ("claude", {"anthropic": "claude"})


def test_a_deleted_alias_only_stops_resolving(act: dict[str, Any]) -> None:
    row = BillingEntryFactory(provider="cc")
    alias = create_alias(values=PAIR, **act)
    delete_alias(alias=alias, **act)
    row.refresh_from_db()
    assert (row.provider, resolve_provider(raw="cc")) == ("claude", "cc")


def test_many_rows_move_in_a_handful_of_statements(act: dict[str, Any], django_assert_max_num_queries: Any) -> None:
    for number in range(300):
        ModelPriceFactory(provider="cc", model=f"m{number}")
    with django_assert_max_num_queries(40):
        create_alias(values=PAIR, **act)
    assert not BillingEntry.objects.exists()
    assert ModelPrice.objects.filter(provider="claude").count() == 300
