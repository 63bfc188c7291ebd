"""SPEC 3, 5: one can go back to any version, which is itself a change with a reason."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.core.exceptions import ValidationError

from billing_catalog.models import BillingEntry, ModelPrice, ProviderAlias, TierOverride, TierThresholds
from billing_catalog.selectors.prices import prices_in_force
from billing_catalog.services import aliases, entries, prices, tiers
from ladder.core.values import CooldownCause
from ladder.models import Connection, LadderSettings, RungBudget
from ladder.services.connections import create_connection, delete_connection, update_connection
from ladder.services.cooldowns import set_cooldown
from ladder.services.settings import BudgetChanges, BudgetsChanges, SettingsChanges, update_settings
from ladder.services.windows import update_window
from omniroute_admin.common.errors import Conflict, NotFound
from omniroute_admin.common.history import Actor
from omniroute_admin.common.selectors.history import Asked, find_entries
from omniroute_admin.common.selectors.revision import current_revision
from omniroute_admin.common.selectors.versions import VersionSeen, see_version
from omniroute_admin.common.services.keys import create_key, revoke_key
from omniroute_admin.common.services.rollback import roll_back
from tests.factories import QuotaWindowFactory

pytestmark = pytest.mark.django_db
NOW = datetime(2099, 8, 22, 12, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
MIRA = Actor(name="mira")


def by(minutes: int = 0) -> dict[str, Any]:
    return {"actor": MIRA, "reason": "why not", "now": NOW + timedelta(minutes=minutes)}


def versions(kind: str) -> list[int]:
    """Return the ids of what was written of a kind, the oldest first."""
    found = find_entries(asked=Asked(kinds=(kind,), since=NOW), limit=99)
    return [one.history_id for one in reversed(found)]


def seen(kind: str, history_id: int) -> VersionSeen:
    found = see_version(kind=kind, history_id=history_id, now=LATER)
    assert found is not None
    return found


def back(kind: str, history_id: int, **given: Any) -> str:
    outlook = seen(kind, history_id).outlook
    values = {"seen": outlook.seen, "actor": Actor(name="jonas"), "reason": "it was better", "now": LATER} | given
    return roll_back(kind=kind, history_id=history_id, **values)


def settings(**changes: Any) -> None:
    update_settings(changes=SettingsChanges(**changes), **by())


def test_settings_go_back_and_the_history_says_by_whom_and_why() -> None:
    settings(exit_cutoff_percent=Decimal(3))
    settings(exit_cutoff_percent=Decimal(9), max_reading_age_seconds=60)
    first, before = versions("settings")[0], current_revision()
    shown = seen("settings", first).outlook
    assert [(one.label, one.old, one.new) for one in shown.changes] == [
        ("exit cutoff", "9 %", "3 %"),
        ("maximum age of a reading", "60 s", "180 s"),
    ]
    assert back("settings", first) == "done"
    row = LadderSettings.objects.get()
    assert (row.exit_cutoff_percent, row.max_reading_age_seconds) == (3, 180)
    assert current_revision() == before + 1
    entry = find_entries(asked=Asked(kinds=("settings",)), limit=1)[0]
    assert (entry.who, entry.reason, entry.at) == ("jonas", "it was better", LATER)


def test_a_form_sent_twice_writes_once() -> None:
    settings(exit_cutoff_percent=Decimal(3))
    settings(exit_cutoff_percent=Decimal(9))
    first = versions("settings")[0]
    held = seen("settings", first).outlook.seen
    assert back("settings", first, seen=held) == "done"
    before = current_revision()
    assert back("settings", first, seen=held) == "stands already"
    assert (current_revision(), len(versions("settings"))) == (before, 3)


def test_a_stale_form_is_refused_and_writes_nothing() -> None:
    settings(exit_cutoff_percent=Decimal(3))
    settings(exit_cutoff_percent=Decimal(9))
    first = versions("settings")[0]
    held = seen("settings", first).outlook.seen
    settings(exit_cutoff_percent=Decimal(7))
    before = current_revision()
    assert back("settings", first, seen=held) == "stale"
    assert (LadderSettings.objects.get().exit_cutoff_percent, current_revision()) == (7, before)


def test_a_budget_goes_back_to_no_limit_and_stays_the_only_one_touched_m1() -> None:
    def cheap(amount: Decimal | None) -> None:
        settings(rung_budgets=BudgetsChanges(cheap=BudgetChanges(amount_usd=amount)))

    cheap(Decimal(5))
    cheap(None)
    cheap(Decimal(0))
    assert [(one.old, one.new) for one in seen("budget", versions("budget")[1]).outlook.changes] == [
        ("off", "no limit")
    ]
    assert back("budget", versions("budget")[1]) == "done"
    assert RungBudget.objects.get(rung="cheap").amount_usd is None


def test_a_connection_goes_back_under_its_own_rules_b4() -> None:
    row = create_connection(
        connection_id="c1", provider="claude", auth_type="oauth", label="team", overage_override="hard-stop",
        excluded_models=["gpt-*"], **by(),
    )  # fmt: skip
    plain = {"label": "", "overage_override": None, "overage_override_reason": "", "excluded_models": []}
    update_connection(connection=row, changes={**plain, "is_enabled": False}, **by())
    assert back("connection", versions("connection")[0]) == "done"
    row.refresh_from_db()
    assert (row.label, row.is_enabled, row.overage_override) == ("team", True, "hard-stop")
    assert (row.overage_override_reason, row.excluded_models) == ("why not", ["gpt-*"])


def test_a_deleted_connection_is_made_anew_and_inherits_nothing() -> None:
    row = create_connection(connection_id="c1", provider="claude", auth_type="oauth", **by())
    delete_connection(connection=row, **by())
    first = versions("connection")[0]
    assert seen("connection", first).outlook.is_gone
    assert back("connection", first) == "done"
    anew = Connection.objects.live().get(connection_id="c1")
    assert anew.pk != row.pk
    assert back("connection", first) == "stands already"


def test_a_window_goes_back_in_the_operators_part_alone() -> None:
    window = QuotaWindowFactory(remaining_percent=Decimal(50))
    update_window(window=window, changes={"is_muted": True}, **by())
    update_window(window=window, changes={"is_muted": False, "exit_cutoff_percent": Decimal(20)}, **by())
    type(window).objects.update(remaining_percent=Decimal(10))
    assert back("window", versions("window")[0]) == "done"
    window.refresh_from_db()
    assert (window.is_muted, window.exit_cutoff_percent, window.remaining_percent) == (True, None, 10)


def entry(**values: Any) -> BillingEntry:
    given: Any = {"provider": "claude", "auth_type": None, "billing": "subscription", "overage": "hard-stop"}
    return entries.create_entry(values=given | values, **by())


def test_a_deleted_entry_comes_back_under_its_number_with_its_history() -> None:
    row = entry()
    key = row.pk
    entries.update_entry(entry=row, changes={"billing": "metered"}, **by())
    entries.delete_entry(entry=row, **by())
    made, changed, deleted = versions("billing")
    assert next((one.old, one.new) for one in seen("billing", made).outlook.changes) == ("", "claude")
    assert back("billing", deleted) == "done"
    again = BillingEntry.objects.get()
    assert (again.pk, again.billing, again.origin) == (key, "metered", "operator")
    assert [one.act for one in seen("billing", changed).others] == ["made", "deleted", "changed", "made"]


def test_what_stands_in_the_way_of_a_return_is_told_in_words() -> None:
    row = entry()
    entries.delete_entry(entry=row, **by())
    entry(billing="metered")
    with pytest.raises(Conflict, match="already"):
        back("billing", versions("billing")[0])


def test_an_override_that_comes_back_keeps_its_place_in_the_order_t() -> None:
    first = tiers.create_override(values={"provider": "p", "model_pattern": "gpt-*", "tier": "cheap"}, **by())
    key = first.pk
    second = tiers.create_override(values={"provider": "p", "model_pattern": "*-5", "tier": "premium"}, **by())
    tiers.delete_override(override=first, **by())
    assert back("tier-override", versions("tier-override")[0]) == "done"
    assert [row.pk for row in TierOverride.objects.all()] == [key, second.pk]


def test_a_price_comes_back_as_a_new_price_and_the_old_rows_stay() -> None:
    values: Any = {"provider": "openai", "model": "gpt-5", "input_usd_per_million": Decimal("1.25"), "rank": 3}
    row = prices.create_price(values=values, **by())
    prices.update_price(price=row, changes={"input_usd_per_million": Decimal(9)}, **by(5))
    first = versions("price")[0]
    assert [(one.old, one.new) for one in seen("price", first).outlook.changes] == [("$9.00", "$1.25")]
    assert back("price", first) == "done"
    acting = prices_in_force(now=LATER).get()
    assert (acting.input_usd_per_million, acting.rank, acting.effective_from) == (Decimal("1.25"), 3, LATER)
    assert ModelPrice.objects.count() == 3
    assert back("price", first) == "stands already"


def test_the_price_of_a_list_that_comes_back_is_the_operators() -> None:
    row = prices.create_price(values={"provider": "openai", "model": "gpt-5"}, **by())
    ModelPrice.objects.update(source="genai-prices")
    ModelPrice.history.update(source="genai-prices", input_usd_per_million=Decimal(2))
    prices.end_price(price=row, **by(5))
    assert back("price", versions("price")[0]) == "done"
    assert prices_in_force(now=LATER).get().source == "operator"


def test_an_alias_and_the_thresholds_go_back() -> None:
    row = aliases.create_alias(values={"alias": "anthropic", "provider": "claude"}, **by())
    aliases.delete_alias(alias=row, **by())
    entry(provider="anthropic")
    assert back("alias", versions("alias")[0]) == "done"
    assert ProviderAlias.objects.get().provider == BillingEntry.objects.get().provider == "claude"
    tiers.update_thresholds(changes={"cheap": Decimal(2)}, **by())
    tiers.update_thresholds(changes={"cheap": Decimal(4)}, **by())
    assert back("thresholds", versions("thresholds")[0]) == "done"
    assert TierThresholds.objects.get().cheap == 2


def test_what_makes_no_sense_to_turn_back_is_refused_in_words() -> None:
    key, _ = create_key(name="router", scopes=["pools:read"], expires_at=None, **by())
    revoke_key(key=key, **by())
    row = create_connection(connection_id="c1", provider="claude", auth_type="oauth", **by())
    set_cooldown(
        connection=row, model=None, cause=CooldownCause.OPERATOR, asked_until=None, effective_until=None,
        set_by="mira", origin="x", reported_at=NOW, failure_count=1, **by(),
    )  # fmt: skip
    for kind, words in (("key", "revoked stays revoked"), ("cooldown", "cleared, or set anew")):
        assert words in seen(kind, versions(kind)[0]).outlook.refusal
        with pytest.raises(Conflict, match=words):
            back(kind, versions(kind)[0])
    key.refresh_from_db()
    assert key.revoked_at is not None


def test_a_rule_that_refuses_stops_the_return_and_nothing_is_half_written() -> None:
    row = create_connection(connection_id="c1", provider="claude", auth_type="oauth", **by())
    Connection.history.update(auth_type="none")
    update_connection(connection=row, changes={"label": "x"}, **by())
    before = current_revision()
    with pytest.raises(ValidationError):
        back("connection", versions("connection")[0])
    assert current_revision() == before


def test_a_version_that_is_not_there_is_not_found() -> None:
    assert see_version(kind="settings", history_id=10**30, now=NOW) is None
    assert see_version(kind="nothing", history_id=1, now=NOW) is None
    with pytest.raises(NotFound):
        roll_back(kind="settings", history_id=10**8, seen={}, actor=MIRA, reason="", now=NOW)
