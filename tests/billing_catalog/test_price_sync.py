"""SPEC 3, T: sync_prices brings list prices into our own rows, append-only, and never over an operator's word."""

from datetime import datetime, timedelta
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from billing_catalog.adapters.facts_file import read_facts
from billing_catalog.adapters.price_list import ListedModel
from billing_catalog.models import ModelPrice
from billing_catalog.services.aliases import create_alias
from billing_catalog.services.facts import load_facts
from billing_catalog.services.price_lists import ListPrice
from billing_catalog.services.price_sync import SyncReport, sync_prices
from billing_catalog.services.prices import create_price, end_price, update_price
from ladder.models import Connection
from omniroute_admin.common.history import Actor
from omniroute_admin.common.selectors.revision import current_revision
from tests.billing_catalog.acting import NOW, overlapping_prices
from tests.factories import ModelPriceFactory, PriceSourceFactory, ProviderAliasFactory

pytestmark = pytest.mark.django_db

LATER = NOW + timedelta(days=1)


def lists(**models: Any) -> dict[str, dict[str, ListPrice]]:
    """One provider, openai; a model is a price, or None for one without."""
    found = {
        name: ListPrice("openai", ListedModel(name, None if cost is None else Decimal(cost)), "litellm")
        for name, cost in models.items()
    }
    return {"openai": found}


def sync(wanted: dict[str, dict[str, ListPrice]], now: datetime = NOW, **options: Any) -> SyncReport:
    return sync_prices(wanted=wanted, actor=Actor(name="sync_prices"), now=now, **options)


def books(model: str = "a") -> list[tuple[Decimal | None, datetime, datetime | None]]:
    rows = ModelPrice.objects.filter(model=model).order_by("effective_from")
    return list(rows.values_list("input_usd_per_million", "effective_from", "effective_to"))


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("sync_prices", *arguments, stdout=out)
    return out.getvalue()


def test_the_first_run_adds_rows_with_history() -> None:
    assert sync(lists(a=1, b=None)).count("added") == 2
    assert books() == [(Decimal(1), NOW, None)]
    row = ModelPrice.objects.get(model="a")
    past = row.history.get()
    assert (row.source, row.rank, past.history_actor, past.history_type) == ("litellm", None, "sync_prices", "+")
    assert past.history_date == NOW


def test_a_second_run_saves_nothing_again() -> None:
    sync(lists(a=1, b=None))
    before = current_revision()
    report = sync(lists(a=1, b=None), now=LATER)
    assert (report.changes, report.unchanged, current_revision()) == ((), 2, before)
    assert ModelPrice.history.count() == 2


def test_a_changed_price_ends_and_a_new_row_with_its_rank_begins() -> None:
    sync(lists(a=1))
    ModelPrice.objects.update(rank=7)
    before = current_revision()
    assert sync(lists(a=2), now=LATER).count("changed") == 1
    assert books() == [(Decimal(1), NOW, LATER), (Decimal(2), LATER, None)]
    assert set(ModelPrice.objects.values_list("rank", flat=True)) == {7}
    assert current_revision() == before + 1
    assert [past.history_type for past in ModelPrice.history.order_by("history_id")] == ["+", "~", "+"]


def test_a_changed_capability_is_a_new_row_too() -> None:
    sync(lists(a=1))
    seeing = {
        "openai": {"a": ListPrice("openai", ListedModel("a", Decimal(1), capabilities=frozenset({"vision"})), "x")}
    }
    assert sync(seeing, now=LATER).count("changed") == 1
    assert ModelPrice.objects.get(effective_to=None).capabilities == ["vision"]


def test_a_change_in_the_same_instant_leaves_one_row() -> None:
    sync(lists(a=1))
    sync(lists(a=2))
    assert books() == [(Decimal(2), NOW, None)]


def test_a_model_that_left_the_list_ends_and_stays_in_the_books() -> None:
    sync(lists(a=1, b=1))
    assert sync(lists(b=1), now=LATER).count("ended") == 1
    assert books() == [(Decimal(1), NOW, LATER)]
    assert sync(lists(a=3, b=1), now=LATER + timedelta(days=1)).count("added") == 1


def test_an_empty_list_ends_nothing() -> None:
    sync(lists(a=1))
    assert sync(lists(), now=LATER).changes == ()


def test_a_list_that_was_not_read_ends_nothing() -> None:
    sync(lists(a=1))
    other = {"xai": {"g": ListPrice("xai", ListedModel("g", Decimal(1)), "litellm")}}
    assert sync(other, now=LATER).count("ended") == 0


def test_an_operators_price_is_never_replaced_nor_ended(act: dict[str, Any]) -> None:
    create_price(values={"provider": "openai", "model": "A", "input_usd_per_million": Decimal(5)}, **act)
    report = sync(lists(a=1, b=1), now=LATER)
    assert (report.kept_operator, report.count("added")) == (1, 1)
    assert sync(lists(b=1), now=LATER).kept_operator == 1
    assert books("A") == [(Decimal(5), NOW, None)]


def test_a_list_price_that_an_operator_corrected_is_the_operators(act: dict[str, Any]) -> None:
    sync(lists(a=1), now=NOW - timedelta(days=1))
    update_price(price=ModelPrice.objects.get(), changes={"input_usd_per_million": Decimal(0)}, **act)
    assert sync(lists(a=1), now=LATER).kept_operator == 1
    assert ModelPrice.objects.get(effective_to=None).input_usd_per_million == 0


def test_a_list_price_that_was_only_ranked_still_follows_its_list(act: dict[str, Any]) -> None:
    sync(lists(a=1), now=NOW - timedelta(days=1))
    update_price(price=ModelPrice.objects.get(), changes={"rank": 2}, **act)
    assert sync(lists(a=4), now=LATER).count("changed") == 1
    last = ModelPrice.objects.get(effective_to=None)
    assert (last.input_usd_per_million, last.rank) == (4, 2)


def test_a_list_price_that_an_operator_ended_stays_ended(act: dict[str, Any]) -> None:
    sync(lists(a=1), now=NOW - timedelta(days=1))
    end_price(price=ModelPrice.objects.get(), **act)
    report = sync(lists(a=1), now=LATER)
    assert (report.left_ended, report.changes) == (1, ())


def test_a_list_price_that_an_operator_corrected_and_ended_stays_ended(act: dict[str, Any]) -> None:
    sync(lists(a=1), now=NOW - timedelta(days=1))
    changed = update_price(
        price=ModelPrice.objects.get(), changes={"input_usd_per_million": Decimal(0)}, **act | {"now": NOW}
    )
    end_price(price=changed, **act | {"now": LATER})
    report = sync(lists(a=1), now=LATER + timedelta(days=1))
    assert (report.left_ended, report.changes) == (1, ())


def test_a_list_price_that_an_operators_own_replaced_and_that_was_ended_stays_ended(act: dict[str, Any]) -> None:
    sync(lists(a=1), now=NOW - timedelta(days=1))
    own = create_price(values={"provider": "openai", "model": "A", "input_usd_per_million": Decimal(5)}, **act)
    end_price(price=ModelPrice.objects.get(model="a"), **act)
    end_price(price=own, **act | {"now": LATER})
    assert sync(lists(a=1), now=LATER + timedelta(days=1)).left_ended == 1


def test_a_list_price_whose_planned_end_has_passed_stays_ended(act: dict[str, Any]) -> None:
    sync(lists(a=1), now=NOW - timedelta(days=1))
    update_price(price=ModelPrice.objects.get(), changes={"effective_to": LATER}, **act)
    assert sync(lists(a=1), now=LATER).left_ended == 1


def test_a_planned_end_that_was_taken_back_leaves_the_price_to_its_list(act: dict[str, Any]) -> None:
    sync(lists(a=1), now=NOW - timedelta(days=1))
    ended = update_price(price=ModelPrice.objects.get(), changes={"effective_to": LATER}, **act)
    update_price(price=ended, changes={"effective_to": None}, **act)
    sync(lists(b=1), now=LATER)
    assert sync(lists(a=1, b=1), now=LATER + timedelta(days=1)).count("added") == 1


def test_a_planned_price_that_was_taken_back_leaves_the_list_price_to_its_list(act: dict[str, Any]) -> None:
    sync(lists(a=1), now=NOW - timedelta(days=1))
    end_price(price=create_price(values={"provider": "openai", "model": "a", "effective_from": LATER}, **act), **act)
    sync(lists(b=1), now=LATER)
    assert sync(lists(a=1, b=1), now=LATER + timedelta(days=1)).count("added") == 1


def test_a_price_of_an_operators_own_that_was_ended_makes_room_for_a_list(act: dict[str, Any]) -> None:
    own = create_price(values={"provider": "openai", "model": "a", "input_usd_per_million": Decimal(5)}, **act)
    end_price(price=own, **act | {"now": LATER})
    assert sync(lists(a=1), now=LATER + timedelta(days=1)).count("added") == 1


def test_a_price_that_was_ended_under_an_alias_stays_ended(act: dict[str, Any]) -> None:
    names = {"provider": "oa", "model": "a"}
    end_price(price=ModelPriceFactory(**names, source="litellm"), **act)
    create_alias(values={"alias": "oa", "provider": "openai"}, **act)
    assert sync(lists(a=1), now=LATER).left_ended == 1


def test_an_end_or_a_later_row_that_an_operator_planned_stays(act: dict[str, Any]) -> None:
    sync(lists(a=1, b=1), now=NOW - timedelta(days=1))
    update_price(price=ModelPrice.objects.get(model="a"), changes={"effective_to": LATER}, **act)
    create_price(values={"provider": "openai", "model": "b", "effective_from": LATER}, **act)
    assert sync(lists(a=2, b=2)).kept_operator == 2
    assert overlapping_prices(provider="openai") == []


def test_a_dry_run_tells_the_difference_and_writes_nothing() -> None:
    sync(lists(a=1, gone=1))
    report = sync(lists(a=2, new=1), now=LATER, dry_run=True)
    assert sorted((change.what, change.model, change.before, change.after) for change in report.changes) == [
        ("added", "new", None, 1),
        ("changed", "a", 1, 2),
        ("ended", "gone", 1, None),
    ]
    assert ModelPrice.objects.filter(effective_to=None).count() == 2


def test_thousands_of_rows_are_written_in_a_few_statements_a_batch(django_assert_max_num_queries: Any) -> None:
    many = lists(**{f"m{number}": 1 for number in range(2000)})
    with django_assert_max_num_queries(80):
        sync(many)
    with django_assert_max_num_queries(8):
        sync(many, now=LATER)
    assert ModelPrice.history.count() == 2000


def test_what_has_no_price_is_said(act: dict[str, Any]) -> None:
    for provider in ("openai", "homegrown", "priced-by-hand", "gone"):
        Connection.objects.create(connection_id=f"c-{provider}", provider=provider, created_at=NOW, updated_at=NOW)
    Connection.objects.filter(provider="gone").update(deleted_at=NOW)
    ModelPriceFactory(provider="priced-by-hand")
    report = sync(lists(a=1, b=None))
    assert (report.unpriced, report.uncovered) == (("openai/b",), ("homegrown",))


def test_the_command_prices_every_mapped_provider_and_every_list_under_its_own_name() -> None:
    load_facts(facts=read_facts(), now=NOW)
    said = run()
    assert "0 changed, 0 ended, 0 unchanged" in said
    assert "without an input price" in said
    assert "github/gpt-4o" in run("--verbosity", "2")
    providers = set(ModelPrice.objects.values_list("provider", flat=True))
    mapped = {"claude", "codex", "gemini", "gemini-cli", "antigravity", "github", "copilot-web", "xai", "grok-cli"}
    assert mapped | {"kimi", "kimi-coding", "glm", "glmt", "zai", "qwen"} <= providers
    assert {"anthropic", "openai", "deepseek", "groq", "mistral", "openrouter", "minimax", "perplexity"} <= providers
    assert not {"fireworks_ai", "github_copilot", "moonshot_"} & providers
    sonnet = ModelPrice.objects.get(provider="claude", model="claude-sonnet-4-5")
    assert (sonnet.input_usd_per_million, sonnet.output_usd_per_million) == (Decimal(3), Decimal(15))
    assert {"vision", "reasoning"} <= set(sonnet.capabilities)
    seat = ModelPrice.objects.get(provider="github", model="gpt-4o")
    assert (seat.input_usd_per_million, "vision" in seat.capabilities) == (None, True)
    assert "0 added, 0 changed, 0 ended" in run()


def test_the_command_prices_named_providers_only_under_any_of_their_names() -> None:
    load_facts(facts=read_facts(), now=NOW)
    ProviderAliasFactory(alias="cc", provider="claude")
    run("--provider", " CC", "codex")
    assert set(ModelPrice.objects.values_list("provider", flat=True)) == {"claude", "codex"}


def test_a_list_under_an_alias_prices_the_provider_it_means() -> None:
    ProviderAliasFactory(alias="groq", provider="my-groq")
    run("--provider", "groq")
    assert set(ModelPrice.objects.values_list("provider", flat=True)) == {"my-groq"}


def test_an_edited_table_is_followed() -> None:
    PriceSourceFactory(provider="homegrown", price_list="deepseek", capability_list="deepseek")
    run("--provider", "homegrown")
    assert ModelPrice.objects.filter(provider="homegrown", model="deepseek-chat").exists()


def test_the_command_prints_the_difference_in_a_dry_run() -> None:
    said = run("--dry-run", "--provider", "anthropic")
    assert "+ anthropic/claude-sonnet-4-5: 3 USD per million input tokens" in said
    assert "Dry run: nothing is written." in said
    assert not ModelPrice.objects.exists()


def test_the_command_ends_with_a_sentence_where_nothing_serves_the_provider() -> None:
    with pytest.raises(CommandError, match="No price list serves nope"):
        run("--provider", "nope")


def test_the_command_ends_with_a_sentence_where_the_map_is_none(tmp_path: Path) -> None:
    (tmp_path / "map.json").write_text("[]")
    with pytest.raises(CommandError, match="is no LiteLLM price map"):
        run("--litellm", str(tmp_path / "map.json"))
    assert not ModelPrice.objects.exists()
