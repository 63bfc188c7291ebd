"""SPEC 1: adding an alias rewrites the rows that used it, in the same transaction."""

from typing import Any

import pytest
from django.apps import apps
from django.core.exceptions import ValidationError
from simple_history.models import HistoricalChanges

from billing_catalog.errors import AliasInTheWay
from billing_catalog.models import BillingEntry, ModelPrice
from billing_catalog.selectors.aliases import alias_map, provider_fields, resolve_provider
from billing_catalog.services.aliases import create_alias, delete_alias, update_alias
from billing_catalog.services.entries import create_entry
from ladder.models import Breaker, Connection
from omniroute_admin.common.errors import Conflict
from tests.billing_catalog.acting import ACTOR, NOW
from tests.factories import (
    BillingEntryFactory,
    FreeProviderFactory,
    ModelPriceFactory,
    PriceSourceFactory,
    ProviderAliasFactory,
    TierOverrideFactory,
)

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
    with pytest.raises(ValidationError) as caught:
        create_alias(values={"alias": "x y", "provider": ""}, **act)
    assert set(caught.value.message_dict) == {"alias", "provider"}


def test_both_ends_of_a_chain_are_named_at_once(act: dict[str, Any]) -> None:
    ProviderAliasFactory(alias="anthropic", provider="claude")
    ProviderAliasFactory(alias="chatgpt", provider="openai")
    with pytest.raises(AliasInTheWay) as caught:
        create_alias(values={"alias": "openai", "provider": "anthropic"}, **act)
    assert [error.pointer for error in caught.value.errors] == ["/provider", "/alias"]


def test_an_alias_stands_only_once(act: dict[str, Any]) -> None:
    create_alias(values=PAIR, **act)
    with pytest.raises(Conflict) as caught:
        create_alias(values={"alias": "cc", "provider": "openai"}, **act)
    assert [error.pointer for error in caught.value.errors] == ["/alias"]


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
    with django_assert_max_num_queries(41):
        create_alias(values=PAIR, **act)
    assert not BillingEntry.objects.exists()
    assert ModelPrice.objects.filter(provider="claude").count() == 300
