"""SPEC 1, 3, T: writing entries, overrides, free providers, sources and thresholds."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.core.exceptions import ValidationError

from billing_catalog.models import BillingEntry, TierThresholds
from billing_catalog.services.entries import create_entry, delete_entry, update_entry
from billing_catalog.services.sources import create_source
from billing_catalog.services.tiers import (
    create_free_provider,
    create_override,
    update_free_provider,
    update_override,
    update_thresholds,
)
from omniroute_admin.common.errors import Conflict, NotFound
from omniroute_admin.common.selectors.revision import current_revision
from tests.billing_catalog.acting import ACTOR, NOW
from tests.factories import BillingEntryFactory, ProviderAliasFactory, TierOverrideFactory

pytestmark = pytest.mark.django_db


def entry_values(**changes: Any) -> Any:
    return {"provider": "claude", "auth_type": "oauth", "billing": "subscription", "overage": "hard-stop"} | changes


def test_a_new_entry_has_canonical_names_and_a_history_of_who_when_and_why(act: dict[str, Any]) -> None:
    entry = create_entry(values=entry_values(provider=" Claude", auth_type="OAuth "), **act)
    assert (entry.provider, entry.auth_type, entry.origin) == ("claude", "oauth", "operator")
    past = entry.history.get()
    assert (past.history_type, past.history_actor, past.history_change_reason) == ("+", ACTOR.name, "because")
    assert (past.history_date, entry.created_at) == (NOW, NOW)


def test_an_alias_is_resolved_on_the_way_in(act: dict[str, Any]) -> None:
    ProviderAliasFactory(alias="anthropic-plan", provider="claude")
    assert create_entry(values=entry_values(provider="Anthropic-Plan"), **act).provider == "claude"
    assert create_free_provider(values={"provider": "ANTHROPIC-PLAN"}, **act).provider == "claude"
    assert create_override(values={"provider": "anthropic-plan", "tier": "free"}, **act).provider == "claude"
    assert create_source(values={"provider": "anthropic-plan"}, **act).provider == "claude"


def test_a_blank_auth_type_is_provider_wide(act: dict[str, Any]) -> None:
    assert create_entry(values=entry_values(auth_type=" "), **act).auth_type is None


def test_every_bad_field_is_named_at_once(act: dict[str, Any]) -> None:
    values = entry_values(provider="no blanks", auth_type="x!", billing="prepaid", overage="", source_url="nowhere")
    with pytest.raises(ValidationError) as caught:
        create_entry(values=values, **act)
    assert set(caught.value.message_dict) == {"provider", "auth_type", "billing", "overage", "source_url"}
    assert not BillingEntry.objects.exists()


def test_a_second_entry_for_the_same_pair_is_refused_in_words(act: dict[str, Any]) -> None:
    create_entry(values=entry_values(), **act)
    with pytest.raises(Conflict, match="has an entry already") as caught:
        create_entry(values=entry_values(provider="CLAUDE"), **act)
    assert [(error.pointer, error.code) for error in caught.value.errors] == [
        ("/provider", "conflict"),
        ("/auth_type", "conflict"),
    ]


def test_the_first_edit_of_a_shipped_row_makes_it_the_operators(act: dict[str, Any]) -> None:
    entry = BillingEntryFactory(provider="claude", origin="facts")
    changed = update_entry(entry=entry, changes={"overage": "unknown"}, **act)
    assert (changed.origin, changed.overage, changed.updated_at) == ("operator", "unknown", NOW)


def test_an_update_that_changes_nothing_writes_nothing(act: dict[str, Any]) -> None:
    entry = BillingEntryFactory(provider="claude", origin="facts")
    before = current_revision()
    update_entry(entry=entry, changes=entry_values(provider=" CLAUDE "), **act)
    entry.refresh_from_db()
    assert (entry.origin, current_revision(), entry.history.count()) == ("facts", before, 1)


def test_an_update_keeps_what_someone_else_changed_in_another_field(act: dict[str, Any]) -> None:
    stale = BillingEntryFactory(provider="claude")
    update_entry(entry=stale, changes={"reason": "seen"}, **act)
    update_entry(entry=stale, changes={"overage": "unknown"}, **act)
    stale.refresh_from_db()
    assert (stale.reason, stale.overage) == ("seen", "unknown")


def test_every_write_moves_the_revision(act: dict[str, Any]) -> None:
    seen = [current_revision()]
    entry = create_entry(values=entry_values(), **act)
    seen.append(current_revision())
    entry = update_entry(entry=entry, changes={"overage": "unknown"}, **act)
    seen.append(current_revision())
    delete_entry(entry=entry, **act)
    seen.append(current_revision())
    assert seen == sorted(set(seen))


def test_a_deleted_row_leaves_its_history_and_cannot_be_changed_any_more(act: dict[str, Any]) -> None:
    entry = create_entry(values=entry_values(), **act)
    delete_entry(entry=entry, **act)
    assert [past.history_type for past in BillingEntry.history.filter(provider="claude")] == ["-", "+"]
    with pytest.raises(NotFound):
        update_entry(entry=entry, changes={"overage": "unknown"}, **act)
    with pytest.raises(NotFound):
        delete_entry(entry=entry, **act)


def test_an_override_keeps_its_place_in_the_order_when_it_is_changed(act: dict[str, Any]) -> None:
    first = TierOverrideFactory(provider="openai", model_pattern="gpt-*")
    TierOverrideFactory(provider="openai", model_pattern="*")
    changed = update_override(override=first, changes={"model_pattern": " gpt-5* ", "tier": "free"}, **act)
    assert (changed.pk, changed.model_pattern, changed.tier) == (first.pk, "gpt-5*", "free")


def test_a_blank_pattern_is_refused(act: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        create_override(values={"provider": "openai", "model_pattern": "  ", "tier": "free"}, **act)


def test_a_free_provider_can_be_reworded(act: dict[str, Any]) -> None:
    free = create_free_provider(values={"provider": "kiro", "reason": "seen"}, **act)
    assert update_free_provider(free_provider=free, changes={"reason": "read"}, **act).reason == "read"


def test_thresholds_are_changed_with_history_and_never_out_of_order(act: dict[str, Any]) -> None:
    changed = update_thresholds(changes={"cheap": Decimal("2.5")}, **act | {"now": NOW + timedelta(days=1)})
    assert (changed.free, changed.cheap) == (Decimal(0), Decimal("2.5"))
    assert changed.history.order_by("-history_id")[0].history_actor == ACTOR.name
    with pytest.raises(ValidationError):
        update_thresholds(changes={"free": Decimal(3)}, **act)
    assert TierThresholds.objects.get().free == 0
