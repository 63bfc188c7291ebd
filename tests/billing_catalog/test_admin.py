"""SPEC 5, 7: the admin of the catalogue keeps the same rules as the API."""

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.contrib.auth import get_user_model
from django.test import Client

from billing_catalog.models import BillingEntry, FreeProvider, LoadedFact, ModelPrice, ProviderAlias, TierThresholds
from omniroute_admin.common.selectors.revision import current_revision
from tests.billing_catalog.acting import NOW
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

ROOT = "/admin/billing_catalog"


@pytest.fixture
def boss(client: Client) -> Client:
    client.force_login(get_user_model().objects.create_superuser("boss"))
    return client


def entry_form(**changes: Any) -> dict[str, Any]:
    form = {"provider": "claude", "auth_type": "oauth", "billing": "subscription", "overage": "hard-stop"}
    return form | {"reason": "", "source_url": "", "reviewed_by": "", "change_reason": "why not"} | changes


def price_form(**changes: Any) -> dict[str, Any]:
    start = {"effective_from_0": "2026-08-22", "effective_from_1": "12:00:00"}
    form = {"provider": "openai", "model": "gpt-5", "input_usd_per_million": "1.25", "source": "operator"}
    return form | {"capabilities": '["vision"]', "change_reason": "why not"} | start | changes


def messages_of(response: Any) -> str:
    return " ".join(str(message) for message in response.context["messages"])


def test_an_entry_is_written_through_the_service(boss: Client) -> None:
    ProviderAliasFactory(alias="anthropic-plan", provider="claude")
    before = current_revision()
    boss.post(f"{ROOT}/billingentry/add/", entry_form(provider="Anthropic-Plan"))
    row = BillingEntry.objects.get()
    past = row.history.get()
    assert (row.provider, row.origin, current_revision()) == ("claude", "operator", before + 1)
    assert (past.history_actor, past.history_change_reason) == ("boss", "why not")
    assert past.history_user.get_username() == "boss"


def test_an_edit_of_a_shipped_entry_makes_it_the_operators(boss: Client) -> None:
    row = BillingEntryFactory(provider="claude", origin="facts")
    boss.post(f"{ROOT}/billingentry/{row.pk}/change/", entry_form(overage="unknown"))
    row.refresh_from_db()
    assert (row.origin, row.overage) == ("operator", "unknown")
    boss.post(f"{ROOT}/billingentry/{row.pk}/delete/", {"post": "yes", "change_reason": "wrong"})
    assert BillingEntry.history.order_by("-history_id")[0].history_change_reason == "wrong"
    assert not BillingEntry.objects.exists()


def test_an_alias_rewrites_rows_or_says_what_is_in_the_way(boss: Client) -> None:
    row = FreeProviderFactory(provider="cc")
    blocker = FreeProviderFactory(provider="claude")
    form = {"alias": "CC", "provider": "claude", "change_reason": "same"}
    refused = boss.post(f"{ROOT}/provideralias/add/", form, follow=True)
    assert f"free provider {row.pk}" in messages_of(refused)
    assert not ProviderAlias.objects.exists()
    blocker.delete()
    boss.post(f"{ROOT}/provideralias/add/", form)
    row.refresh_from_db()
    assert (row.provider, ProviderAlias.objects.get().alias) == ("claude", "cc")


def test_a_changed_alias_may_keep_its_own_provider(boss: Client) -> None:
    alias, row = ProviderAliasFactory(alias="cc", provider="claude"), FreeProviderFactory(provider="anthropic")
    form = {"alias": "anthropic", "provider": "claude", "change_reason": "better"}
    boss.post(f"{ROOT}/provideralias/{alias.pk}/change/", form)
    row.refresh_from_db()
    assert row.provider == "claude"


def test_a_new_price_ends_the_one_that_acts(boss: Client) -> None:
    old = ModelPriceFactory(model="gpt-5")
    boss.post(f"{ROOT}/modelprice/add/", price_form())
    old.refresh_from_db()
    new = ModelPrice.objects.get(effective_to=None)
    assert (old.effective_to, new.effective_from, new.capabilities) == (NOW, NOW, ["vision"])


def test_the_numbers_of_a_price_are_read_only_and_its_rank_is_not(boss: Client) -> None:
    old = ModelPriceFactory(model="gpt-5")
    boss.post(f"{ROOT}/modelprice/{old.pk}/change/", price_form(rank="2", input_usd_per_million="0"))
    new = ModelPrice.objects.get(effective_to=None)
    assert (new.pk != old.pk, new.rank, new.input_usd_per_million) == (True, 2, 3)
    assert boss.post(f"{ROOT}/modelprice/{old.pk}/change/", price_form(rank="3")).status_code == 403
    assert boss.post(f"{ROOT}/modelprice/{new.pk}/delete/", {"post": "yes", "change_reason": "x"}).status_code == 403


def test_selected_prices_end_now_and_stay_in_the_books(boss: Client) -> None:
    price = ModelPriceFactory()
    form = {"action": "end_now", "_selected_action": [price.pk], "change_reason": "dear"}
    boss.post(f"{ROOT}/modelprice/", form)
    price.refresh_from_db()
    assert price.effective_to is not None
    assert price.history.order_by("-history_id")[0].history_change_reason == "dear"


def test_the_thresholds_are_one_row_that_is_changed_in_order(boss: Client) -> None:
    boss.post(f"{ROOT}/tierthresholds/1/change/", {"free": "0", "cheap": "2", "change_reason": "dearer"})
    assert TierThresholds.objects.get().cheap == 2
    boss.post(f"{ROOT}/tierthresholds/1/change/", {"free": "3", "cheap": "2", "change_reason": "wrong"})
    assert TierThresholds.objects.get().free == 0
    assert boss.get(f"{ROOT}/tierthresholds/add/").status_code == 403


def test_a_loaded_fact_can_be_forgotten_and_not_written(boss: Client) -> None:
    fact = LoadedFact.objects.create(kind="billing entry", key="claude oauth", loaded_at=NOW)
    assert boss.get(f"{ROOT}/loadedfact/add/").status_code == 403
    boss.post(f"{ROOT}/loadedfact/{fact.pk}/delete/", {"post": "yes"})
    assert not LoadedFact.objects.exists()


def test_an_earlier_state_can_be_gone_back_to(boss: Client) -> None:
    boss.post(f"{ROOT}/freeprovider/add/", {"provider": "kiro", "reason": "first", "change_reason": "a"})
    row = FreeProvider.objects.get()
    first = row.history.get()
    boss.post(f"{ROOT}/freeprovider/{row.pk}/change/", {"provider": "kiro", "reason": "second", "change_reason": "b"})
    form = {"provider": "kiro", "reason": "first", "change_reason": "back"}
    boss.post(f"{ROOT}/freeprovider/{row.pk}/history/{first.pk}/", form)
    row.refresh_from_db()
    assert (row.reason, row.history.count()) == ("first", 3)


@pytest.mark.parametrize(
    ("name", "factory"),
    [
        ("billingentry", BillingEntryFactory),
        ("provideralias", ProviderAliasFactory),
        ("modelprice", ModelPriceFactory),
        ("tieroverride", TierOverrideFactory),
        ("freeprovider", FreeProviderFactory),
        ("pricesource", PriceSourceFactory),
    ],
)
def test_every_model_is_listed_searched_shown_with_its_history_and_deleted_only_where_it_may(
    name: str, factory: Any, boss: Client
) -> None:
    row = factory()
    for address in ("/", "/?q=a", f"/{row.pk}/change/", f"/{row.pk}/history/", "/add/"):
        assert boss.get(f"{ROOT}/{name}{address}").status_code == 200, address
    found = boss.get(f"{ROOT}/{name}/?q={row.provider}")
    assert found.context["cl"].result_count == 1


def test_prices_are_filtered_by_whether_they_act_now(boss: Client) -> None:
    ended = ModelPriceFactory(effective_to=MADE_AT + timedelta(days=1))
    planned = ModelPriceFactory(effective_from=MADE_AT + timedelta(days=36500))
    acting = ModelPriceFactory()
    for word, row in (("now", acting), ("ended", ended), ("planned", planned)):
        found = boss.get(f"{ROOT}/modelprice/?period={word}").context["cl"].result_list
        assert [price.pk for price in found] == [row.pk]


def test_a_new_price_begins_now_where_nothing_else_is_said(boss: Client) -> None:
    with time_machine.travel(NOW, tick=False):
        form = boss.get(f"{ROOT}/modelprice/add/").context["adminform"].form
        assert form.get_initial_for_field(form.fields["effective_from"], "effective_from") == NOW
