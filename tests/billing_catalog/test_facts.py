"""SPEC 3: shipped facts are loaded once and never overwrite an operator's edit."""

import json
from collections import Counter
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from billing_catalog.adapters.facts_file import SHIPPED, read_facts
from billing_catalog.errors import CatalogFileError
from billing_catalog.models import BillingEntry, FreeProvider, PriceSource, TierThresholds
from billing_catalog.services.entries import delete_entry, update_entry
from billing_catalog.services.facts import load_facts
from billing_catalog.services.tiers import update_thresholds
from omniroute_admin.common.selectors.revision import current_revision
from tests.billing_catalog.acting import NOW
from tests.factories import BillingEntryFactory, ProviderAliasFactory
from tests.shared import needs_shared, shared_path

pytestmark = pytest.mark.django_db


def load(path: Path = SHIPPED, **options: Any) -> Counter[str]:
    return Counter(outcome.what for outcome in load_facts(facts=read_facts(path=path), now=NOW, **options))


def changed_file(tmp_path: Path, **changes: Any) -> Path:
    path = tmp_path / "facts.json"
    path.write_text(json.dumps(json.loads(SHIPPED.read_text()) | changes))
    return path


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("load_facts", *arguments, stdout=out)
    return out.getvalue()


@needs_shared
def test_the_shipped_facts_say_what_the_curated_facts_say() -> None:
    curated = json.loads(shared_path("facts/billing.json").read_text())
    load()
    assert set(BillingEntry.objects.values_list("provider", "auth_type", "billing", "overage")) == {
        (entry["provider"], entry["auth_type"], entry["billing"], entry["overage"]) for entry in curated["entries"]
    }
    free = set(FreeProvider.objects.values_list("provider", flat=True))
    assert free == {*curated["tiers"]["free_providers"], "petals"}
    assert not BillingEntry.objects.filter(provider__in=curated["deliberately_uncurated"]).exists()
    sentences = {entry["covers"] for entry in curated["entries"]}
    assert not any(sentence in SHIPPED.read_text() for sentence in sentences)


def test_the_price_lists_of_the_mapped_providers_are_shipped_as_facts() -> None:
    load()
    lists = {row.provider: (row.price_list, row.capability_list) for row in PriceSource.objects.all()}
    assert lists["claude"] == ("anthropic", "anthropic")
    assert lists["codex"] == ("openai", "openai")
    assert {lists[name] for name in ("gemini", "gemini-cli", "antigravity")} == {("google", "gemini")}
    assert {lists[name] for name in ("github", "copilot-web")} == {("github-copilot", "github_copilot")}
    assert {lists[name] for name in ("xai", "grok-cli")} == {("x-ai", "xai")}
    assert {lists[name] for name in ("kimi", "kimi-coding")} == {("moonshotai", "moonshot")}
    assert {lists[name] for name in ("glm", "glmt", "zai")} == {("zai", "zai")}
    assert lists["qwen"] == ("", "dashscope")
    assert PriceSource.objects.get(provider="github").sells_seats
    assert not PriceSource.objects.get(provider="gemini").sells_seats


def test_every_shipped_reason_is_written_and_every_entry_has_a_review_date() -> None:
    facts = read_facts()
    assert all(len(fact.reason) > 15 for fact in [*facts.billing_entries, *facts.free_providers, *facts.price_sources])
    load()
    assert not BillingEntry.objects.filter(reviewed_on__isnull=True).exists()
    entry = BillingEntry.objects.get(provider="claude")
    assert (entry.origin, entry.history.get().history_actor) == ("facts", "load_facts")


def test_loading_twice_changes_nothing() -> None:
    assert load()["added"] == 38
    before = current_revision()
    assert set(load()) == {"unchanged"}
    assert current_revision() == before


def test_an_operators_edit_is_never_overwritten(act: dict[str, Any]) -> None:
    load()
    update_entry(entry=BillingEntry.objects.get(provider="claude"), changes={"overage": "unknown"}, **act)
    assert load()["kept"] == 1
    assert BillingEntry.objects.get(provider="claude").overage == "unknown"


def test_an_operators_own_row_from_before_is_never_overwritten() -> None:
    BillingEntryFactory(provider="claude", overage="meters-to-paid", origin="operator")
    assert load()["kept"] == 1
    assert BillingEntry.objects.get(provider="claude").overage == "meters-to-paid"


def test_a_fact_that_an_operator_deleted_does_not_come_back(act: dict[str, Any]) -> None:
    load()
    delete_entry(entry=BillingEntry.objects.get(provider="claude"), **act)
    assert load()["left out"] == 1
    assert not BillingEntry.objects.filter(provider="claude").exists()


def test_an_unedited_row_follows_the_shipped_fact(tmp_path: Path) -> None:
    load()
    free = [{"provider": "kiro", "reason": "Another sentence about the same provider."}]
    path = changed_file(tmp_path, free_providers=free, tier_thresholds={"free": "0", "cheap": "2"})
    assert load(path)["updated"] == 2
    assert FreeProvider.objects.get(provider="kiro").reason == free[0]["reason"]
    assert TierThresholds.objects.get().cheap == 2


def test_edited_thresholds_are_kept(act: dict[str, Any]) -> None:
    load()
    update_thresholds(changes={"cheap": 3}, **act)
    assert load()["kept"] == 1
    assert TierThresholds.objects.get().cheap == 3


def test_a_fact_about_an_alias_is_a_fact_about_its_provider() -> None:
    ProviderAliasFactory(alias="claude", provider="anthropic-plan")
    load()
    assert BillingEntry.objects.filter(provider="anthropic-plan").exists()
    assert not BillingEntry.objects.filter(provider="claude").exists()
    assert set(load()) == {"unchanged"}


def test_a_dry_run_says_the_same_and_writes_nothing() -> None:
    said = run("--dry-run")
    assert "nothing is written" in said
    assert "billing entry: 6 added" in said
    assert not BillingEntry.objects.exists()
    assert "billing entry: 6 added" in run()
    assert "billing entry: 6 unchanged" in run()


def test_the_command_names_what_it_kept_and_left_out(act: dict[str, Any]) -> None:
    load()
    update_entry(entry=BillingEntry.objects.get(provider="claude"), changes={"overage": "unknown"}, **act)
    delete_entry(entry=BillingEntry.objects.get(provider="codex"), **act)
    said = run()
    assert "billing entry claude oauth: kept" in said
    assert "billing entry codex oauth: left out" in said


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", '{"about": 1}', json.dumps({"free_providers": [{"provider": "Not A Name"}]})],
    ids=["empty", "broken", "a list", "a wrong type", "a bad name"],
)
def test_a_file_that_holds_no_facts_ends_with_a_sentence(content: str, tmp_path: Path) -> None:
    path = tmp_path / "facts.json"
    path.write_text(content)
    with pytest.raises(CatalogFileError, match="is no file of facts"):
        read_facts(path=path)
    with pytest.raises(CommandError, match="is no file of facts"):
        run("--file", str(path))


def test_a_fact_that_no_row_can_hold_loads_nothing(tmp_path: Path) -> None:
    path = changed_file(tmp_path, tier_thresholds={"free": "2", "cheap": "1"})
    with pytest.raises(CommandError, match="cannot be"):
        run("--file", str(path))
    assert not BillingEntry.objects.exists()


def test_a_missing_file_ends_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be read"):
        run("--file", str(tmp_path / "none.json"))
