"""SPEC 4: the catalogue over the API."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from billing_catalog.models import BillingEntry, FreeProvider, ModelPrice, PriceSource, ProviderAlias, TierOverride
from omniroute_admin.common.selectors.revision import current_revision
from tests.billing_catalog.calling import ROOT, Send, client, pointers
from tests.factories import (
    BillingEntryFactory,
    FreeProviderFactory,
    ModelPriceFactory,
    PriceSourceFactory,
    ProviderAliasFactory,
    TierOverrideFactory,
)

pytestmark = pytest.mark.django_db

ENTRY = {"provider": " Claude", "auth_type": "OAuth", "billing": "subscription", "overage": "hard-stop"}

RESOURCES = [
    (
        "/billing",
        BillingEntry,
        BillingEntryFactory,
        ENTRY,
        {
            "provider": "claude",
            "auth_type": "oauth",
            "billing": "subscription",
            "overage": "hard-stop",
            "reason": "",
            "source_url": "",
            "reviewed_on": None,
            "reviewed_by": "",
        },
        {"overage": "unknown"},
    ),
    (
        "/tier-overrides",
        TierOverride,
        TierOverrideFactory,
        {"provider": "OpenAI", "model_pattern": "gpt-*", "tier": "cheap"},
        {"provider": "openai", "model_pattern": "gpt-*", "tier": "cheap"},
        {"tier": "free"},
    ),
    (
        "/free-providers",
        FreeProvider,
        FreeProviderFactory,
        {"provider": "Kiro", "reason": "no price per token"},
        {"provider": "kiro", "reason": "no price per token"},
        {"reason": "still none"},
    ),
    (
        "/aliases",
        ProviderAlias,
        ProviderAliasFactory,
        {"alias": "CC", "provider": "Claude"},
        {"alias": "cc", "provider": "claude"},
        {"provider": "anthropic"},
    ),
    (
        "/price-sources",
        PriceSource,
        PriceSourceFactory,
        {"provider": "Codex", "price_list": "OpenAI"},
        {"provider": "codex", "price_list": "openai", "capability_list": "", "sells_seats": False},
        {"sells_seats": True},
    ),
]

every_resource = pytest.mark.parametrize(
    ("path", "model", "factory", "body", "shown", "change"), RESOURCES, ids=[row[0] for row in RESOURCES]
)


@every_resource
def test_a_row_is_made_read_changed_and_deleted(
    path: str, model: Any, factory: Any, body: dict[str, Any], shown: dict[str, Any], change: dict[str, Any], send: Send
) -> None:
    why = "change_reason" if path in {"/billing", "/free-providers"} else "reason"
    before = current_revision()
    made = send("post", path, body | {why: "needed"})
    assert made.status_code == 201, made.content
    row = model.objects.get()
    assert made.json() == ({"id": row.pk} | shown if "id" in made.json() else shown)
    address = made["Location"].removeprefix("http://testserver" + ROOT)
    read = send("get", address)
    assert (read.json(), read["ETag"]) == (made.json(), made["ETag"])
    changed = send("patch", address, change | {why: "better"})
    assert changed.json() == made.json() | change
    assert send("put", address, changed.json()).json() == changed.json()
    assert send("delete", f"{address}?reason=gone").status_code == 204
    assert send("get", address).status_code == 404
    past = list(model.history.order_by("history_id").values_list("history_type", "history_change_reason"))
    assert (past[0], past[1], past[-1]) == (("+", "needed"), ("~", "better"), ("-", "gone"))
    assert all(name.startswith("key tool") for name in model.history.values_list("history_actor", flat=True))
    assert current_revision() > before


@every_resource
def test_a_lost_update_is_refused(
    path: str, model: Any, factory: Any, body: dict[str, Any], shown: dict[str, Any], change: dict[str, Any], send: Send
) -> None:
    address = send("post", path, body)["Location"].removeprefix("http://testserver" + ROOT)
    tag = send("get", address)["ETag"]
    assert send("patch", address, change, **{"If-Match": tag}).status_code == 200
    assert send("patch", address, change, **{"If-Match": tag}).status_code == 412
    assert send("delete", address, **{"If-Match": tag}).status_code == 412
    assert model.objects.count() == 1


@every_resource
def test_a_list_is_paged_and_ordered_and_an_unknown_field_is_refused(
    path: str, model: Any, factory: Any, body: dict[str, Any], shown: dict[str, Any], change: dict[str, Any], send: Send
) -> None:
    factory.create_batch(3)
    first = send("get", f"{path}?page_size=2&ordering=-provider").json()
    assert (first["count"], len(first["results"]), first["previous"]) == (3, 2, None)
    assert "page=2" in first["next"]
    assert pointers(send("post", path, body | {"colour": "red"})) == {"/colour"}
    assert pointers(send("get", f"{path}?colour=red")) == {"/colour"}


@pytest.mark.parametrize("path", ["/prices", *[row[0] for row in RESOURCES]])
def test_reading_and_writing_need_their_scopes(path: str) -> None:
    assert Client().get(ROOT + path).status_code == 401
    assert client("catalog:write").get(ROOT + path).status_code == 403
    reader = client("catalog:read")
    assert reader.get(ROOT + path).status_code == 200
    assert reader.post(ROOT + path, "{}", content_type="application/json").status_code == 403


def test_every_bad_field_of_an_entry_is_named_at_once(send: Send) -> None:
    body = {"auth_type": 5, "billing": "prepaid", "source_url": "nowhere", "reviewed_on": "yesterday", "id": 3}
    assert pointers(send("post", "/billing", body)) == {
        "/provider",
        "/auth_type",
        "/billing",
        "/overage",
        "/source_url",
        "/reviewed_on",
        "/id",
    }


def test_an_entry_without_an_auth_type_is_provider_wide(send: Send) -> None:
    body = {"provider": "claude", "billing": "metered", "overage": "unknown"}
    assert send("post", "/billing", body).json()["auth_type"] is None
    assert send("post", "/billing", body | {"auth_type": None}).status_code == 409


def test_the_reason_of_an_entry_is_its_own_and_the_reason_of_an_edit_is_another(send: Send) -> None:
    made = send("post", "/billing", ENTRY | {"reason": "read the terms", "change_reason": "first look"}).json()
    past = BillingEntry.history.get()
    assert (made["reason"], past.history_change_reason) == ("read the terms", "first look")


def test_rows_are_filtered_by_their_fields(send: Send) -> None:
    BillingEntryFactory(provider="claude", auth_type=None)
    BillingEntryFactory(provider="codex", overage="unknown")
    ModelPriceFactory(provider="openai", model="a", rank=3)

    def providers(address: str) -> list[str]:
        return [row["provider"] for row in send("get", address).json()["results"]]

    assert providers("/billing?provider=CLAUDE") == ["claude"]
    assert providers("/billing?overage=unknown") == ["codex"]
    assert providers("/billing?auth_type__isnull=true") == ["claude"]
    assert providers("/prices?model=a&rank=3&effective_to__isnull=true") == ["openai"]
    assert providers("/prices?model=b") == []


def test_a_free_provider_and_an_alias_are_addressed_by_name_in_any_case(send: Send) -> None:
    FreeProviderFactory(provider="kiro")
    ProviderAliasFactory(alias="cc")
    assert send("get", "/free-providers/KIRO").json()["provider"] == "kiro"
    assert send("get", "/aliases/Cc").json()["alias"] == "cc"
    assert send("get", "/aliases/none").json()["code"] == "not_found"


def test_an_alias_over_the_api_rewrites_rows_or_names_those_in_the_way(send: Send) -> None:
    row = BillingEntryFactory(provider="cc")
    BillingEntryFactory(provider="claude")
    refused = send("post", "/aliases", {"alias": "cc", "provider": "claude"})
    assert (refused.status_code, refused.json()["code"]) == (409, "alias_clash")
    assert f"billing entry {row.pk} of cc" in refused.json()["detail"]
    assert pointers(refused, 409) == {"/alias", "/provider"}
    assert send("post", "/aliases", {"alias": "cc", "provider": "codex"}).status_code == 201
    row.refresh_from_db()
    assert row.provider == "codex"
    chained = send("post", "/aliases", {"alias": "c", "provider": "cc"})
    assert (chained.json()["code"], pointers(chained, 409)) == ("alias_chain", {"/provider"})


PRICE = {"provider": "OpenAI", "model": "gpt-5", "input_usd_per_million": "1.25"}


def test_a_price_is_made_with_exact_numbers(send: Send) -> None:
    body = PRICE | {"output_usd_per_million": 0.1, "capabilities": ["vision", "reasoning"], "rank": 1}
    made = send("post", "/prices", body).json()
    assert made == {
        "id": ModelPrice.objects.get().pk,
        "provider": "openai",
        "model": "gpt-5",
        "input_usd_per_million": "1.25",
        "output_usd_per_million": "0.1",
        "cached_input_usd_per_million": None,
        "capabilities": ["reasoning", "vision"],
        "rank": 1,
        "source": "operator",
        "effective_from": made["effective_from"],
        "effective_to": None,
    }


def test_a_changed_price_answers_with_the_new_row_and_its_address(send: Send) -> None:
    old = ModelPriceFactory(model="gpt-5")
    changed = send("patch", f"/prices/{old.pk}", {"input_usd_per_million": "0", "reason": "cheaper now"})
    new = changed.json()
    assert (new["id"] != old.pk, new["input_usd_per_million"], new["effective_to"]) == (True, "0", None)
    assert changed["Content-Location"] == f"{ROOT}/prices/{new['id']}"
    past = send("get", f"/prices/{old.pk}").json()
    assert (past["input_usd_per_million"], past["effective_to"]) == ("3", new["effective_from"])
    again = send("patch", f"/prices/{old.pk}", {"rank": 1})
    assert (again.status_code, again.json()["code"]) == (409, "price_has_ended")
    assert str(new["id"]) in again.json()["detail"]


def test_what_was_read_of_a_price_can_be_sent_back_and_names_cannot_change(send: Send) -> None:
    row = ModelPriceFactory(model="gpt-5", source="litellm")
    body = send("get", f"/prices/{row.pk}").json()
    assert send("put", f"/prices/{row.pk}", body).json() == body
    bad = {"provider": "codex", "model": "gpt-4", "effective_from": "2020-01-01T00:00:00Z"}
    assert pointers(send("patch", f"/prices/{row.pk}", bad)) == {"/provider", "/model", "/effective_from"}
    assert ModelPrice.objects.count() == 1


def test_every_bad_field_of_a_price_is_named_at_once(send: Send) -> None:
    body = {"input_usd_per_million": "-1", "output_usd_per_million": "x", "capabilities": ["a", "a"], "rank": 1.5}
    assert pointers(send("post", "/prices", body)) == {
        "/provider",
        "/model",
        "/input_usd_per_million",
        "/output_usd_per_million",
        "/capabilities",
        "/rank",
    }
    assert pointers(send("post", "/prices", PRICE | {"source": "litellm"})) == {"/source"}


def test_a_price_in_a_period_that_is_history_is_refused_with_its_field(send: Send) -> None:
    old = ModelPriceFactory(provider="openai", model="gpt-5")
    assert send("delete", f"/prices/{old.pk}").status_code == 204
    start: datetime = old.effective_from + timedelta(hours=1)
    body = PRICE | {"effective_from": start.isoformat()}
    assert pointers(send("post", "/prices", body)) == {"/effective_from"}


def test_deleting_a_price_ends_it_and_keeps_it(send: Send) -> None:
    row = ModelPriceFactory()
    assert send("delete", f"/prices/{row.pk}?reason=dear").status_code == 204
    assert send("get", f"/prices/{row.pk}").json()["effective_to"] is not None
    assert send("delete", f"/prices/{row.pk}").status_code == 409


def test_an_id_that_no_row_can_have_is_not_found(send: Send) -> None:
    assert send("get", f"/prices/{10**30}").status_code == 404
