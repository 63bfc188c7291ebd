"""SPEC 3, 5: one history over everything that is changed; who, when, why, old value, new value."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from billing_catalog.services import entries, prices
from ladder.core.values import CooldownCause
from ladder.models import Connection
from ladder.services.budgets import reset_budget
from ladder.services.connections import create_connection, delete_connection, update_connection
from ladder.services.cooldowns import clear_cooldown, set_cooldown
from ladder.services.settings import BudgetChanges, BudgetsChanges, SettingsChanges, update_settings
from ladder.services.windows import mark_exhausted, update_window
from omniroute_admin.common.core.changes import FieldChange, HistoryEntry
from omniroute_admin.common.history import Actor
from omniroute_admin.common.kinds import all_kinds
from omniroute_admin.common.selectors.history import (
    Asked,
    count_entries,
    entries_of,
    find_entries,
    find_entry,
)
from omniroute_admin.common.services.keys import create_key, revoke_key
from tests.factories import QuotaWindowFactory

pytestmark = pytest.mark.django_db
NOW = datetime(2099, 8, 22, 12, tzinfo=UTC)
MIRA = Actor(name="mira")


def by(minutes: int = 0, reason: str = "why not") -> dict[str, Any]:
    return {"actor": MIRA, "reason": reason, "now": NOW + timedelta(minutes=minutes)}


def told(entry: HistoryEntry) -> list[tuple[str, str, str]]:
    return [(change.label, change.old, change.new) for change in entry.changes]


def newest(**asked: Any) -> HistoryEntry:
    return find_entries(asked=Asked(**asked), limit=1)[0]


def stored(connection_id: str = "c1") -> Connection:
    return create_connection(connection_id=connection_id, provider="claude", auth_type="oauth", **by())


def test_a_setting_is_told_with_both_values_in_words() -> None:
    update_settings(changes=SettingsChanges(exit_cutoff_percent=Decimal("3.5")), **by())
    entry = newest(kinds=("settings",))
    assert told(entry) == [("exit cutoff", "2 %", "3.5 %")]
    assert (entry.who, entry.reason, entry.at, entry.act) == ("mira", "why not", NOW, "changed")
    assert (entry.what, entry.may_roll_back) == ("ladder settings", True)


def test_no_limit_and_off_are_words_in_the_history_too_m1() -> None:
    for minute, amount in enumerate([Decimal(5), Decimal(0), None]):
        cheap = BudgetChanges(amount_usd=amount)
        update_settings(changes=SettingsChanges(rung_budgets=BudgetsChanges(cheap=cheap)), **by(minute))
    found = find_entries(asked=Asked(kinds=("budget",), who="mira"), limit=9)
    assert [told(one) for one in found] == [
        [("budget", "off", "no limit")],
        [("budget", "$5.00", "off")],
        [("budget", "no limit", "$5.00")],
    ]


def test_a_reset_budget_a_cleared_cooldown_and_a_mark_are_acts_of_the_history() -> None:
    reset_budget(rung="cheap", **by())
    assert newest(kinds=("budget",)).did == "count reset"
    row = stored()
    cooldown = set_cooldown(
        connection=row, model=None, cause=CooldownCause.OPERATOR, asked_until=None, effective_until=None,
        set_by="mira", origin="x", reported_at=NOW, failure_count=1, **by(),
    )  # fmt: skip
    assert newest(kinds=("cooldown",)).did == "set"
    clear_cooldown(cooldown=cooldown, **by(1))
    entry = newest(kinds=("cooldown",))
    assert (entry.did, entry.act, entry.what, entry.may_roll_back) == (
        "cleared", "deleted", "claude/c1 operator", False,
    )  # fmt: skip
    mark_exhausted(connection=row, window=None, reset_at=None, **by(2))
    entry = newest(kinds=("window",))
    assert (entry.did, told(entry)) == ("marked exhausted", [("status", "as it was read", "exhausted")])


def test_a_window_that_telemetry_made_tells_the_first_mute_with_its_old_value() -> None:
    window = QuotaWindowFactory()
    window.history.all().delete()
    update_window(window=window, changes={"is_muted": True}, **by())
    assert told(newest(kinds=("window",))) == [("muted", "no", "yes")]
    update_window(window=window, changes={"exit_cutoff_percent": Decimal(20)}, **by(1))
    assert told(newest(kinds=("window",))) == [("cutoff of its own", "that of the settings", "20 %")]


def test_deleting_a_connection_is_told_as_a_deletion_though_its_row_stays_in_the_books() -> None:
    row = stored()
    update_connection(connection=row, changes={"excluded_models": ["gpt-*", "o1"]}, **by(1))
    delete_connection(connection=row, **by(2))
    found = find_entries(asked=Asked(kinds=("connection",)), limit=9)
    assert [one.act for one in found] == ["deleted", "changed", "made"]
    assert told(found[1]) == [("excluded models", "empty", "gpt-*, o1")]
    for act in ("made", "changed", "deleted"):
        assert [one.act for one in find_entries(asked=Asked(kinds=("connection",), act=act), limit=9)] == [act]


def test_a_key_is_told_without_its_secret() -> None:
    key, secret = create_key(name="router", scopes=["pools:read"], expires_at=None, **by())
    revoke_key(key=key, **by(1, "lost"))
    found = find_entries(asked=Asked(kinds=("key",)), limit=9)
    assert [one.did for one in found] == ["revoked", "made"]
    assert told(found[0]) == [("revoked", "no", "2099-08-22 12:01:00 UTC")]
    assert secret not in repr(found)
    assert key.secret_hash not in repr(found)


def test_a_price_and_a_deleted_entry_are_told_with_all_there_was_of_them() -> None:
    price = prices.create_price(
        values={"provider": "openai", "model": "gpt-5", "input_usd_per_million": Decimal("1.25")}, **by()
    )
    prices.end_price(price=price, **by(1))
    assert newest(kinds=("price",)).did == "ended"
    entry = entries.create_entry(
        values={"provider": "claude", "auth_type": None, "billing": "subscription", "overage": "hard-stop"}, **by()
    )
    key = entry.pk
    entries.delete_entry(entry=entry, **by(2))
    gone = newest(kinds=("billing",))
    assert FieldChange("auth_type", "auth type", "provider-wide", "") in gone.changes
    assert (gone.act, gone.row) == ("deleted", key)


def test_the_list_is_filtered_by_who_what_why_and_when() -> None:
    stored("c1")
    create_connection(
        connection_id="C-2", provider="codex", actor=Actor(name="key router"), reason="By Script", now=NOW
    )
    update_settings(changes=SettingsChanges(exit_cutoff_percent=Decimal(3)), **by(5, "quieter"))

    def found(**asked: Any) -> list[str]:
        return [one.what for one in find_entries(asked=Asked(since=NOW, **asked), limit=9)]

    assert found() == ["ladder settings", "codex/C-2", "claude/c1"]
    assert found(who="ROUTER") == ["codex/C-2"]
    assert found(reason="script") == ["codex/C-2"]
    assert found(what="claude/c1") == ["claude/c1"]
    assert found(what="codex c-2") == ["codex/C-2"]
    assert found(what="settings") == ["ladder settings"]
    assert found(until=NOW + timedelta(minutes=5)) == ["codex/C-2", "claude/c1"]
    assert found(kinds=("settings", "price")) == ["ladder settings"]
    assert found(kinds=("unheard-of",)) == []
    assert found(owner=Connection.objects.get(connection_id="c1").pk) == ["claude/c1"]
    assert count_entries(asked=Asked(since=NOW)) == 3


def test_pages_of_the_list_hold_every_change_once() -> None:
    for number in range(25):
        stored(f"c{number}")
    asked = Asked(kinds=("connection",))
    pages = [find_entries(asked=asked, limit=10, offset=start) for start in (0, 10, 20)]
    assert [len(page) for page in pages] == [10, 10, 5]
    assert len({one.history_id for page in pages for one in page}) == 25


def test_the_queries_of_a_page_do_not_grow_with_its_rows() -> None:
    def queries(limit: int) -> int:
        with CaptureQueriesContext(connection) as caught:
            assert len(find_entries(asked=Asked(since=NOW), limit=limit)) == limit
        return len(caught)

    for number in range(40):
        row = stored(f"c{number}")
        update_connection(connection=row, changes={"label": "x"}, **by(number))
    assert queries(4) == queries(60) == 2


def test_a_change_is_compared_with_the_one_before_even_where_that_is_on_another_page() -> None:
    row = stored()
    for minute, label in enumerate("abc"):
        update_connection(connection=row, changes={"label": label}, **by(minute))
    assert told(newest(kinds=("connection",))) == [("label", "b", "c")]
    middle = find_entries(asked=Asked(kinds=("connection",)), limit=1, offset=1)[0]
    assert told(middle) == [("label", "a", "b")]
    assert find_entry(kind="connection", history_id=middle.history_id) == middle
    assert entries_of(kind="connection", rows=[row.pk], limit=2)[1] == middle
    assert find_entry(kind="connection", history_id=10**9) is None
    assert find_entry(kind="nothing", history_id=1) is None


def test_every_model_with_a_history_is_a_kind_of_it_and_no_secret_is_told() -> None:
    from django.apps import apps

    tracked = {model.history.model for model in apps.get_models() if hasattr(model, "history")}
    assert tracked <= {kind.model for kind in all_kinds()}
    assert {kind.key for kind in all_kinds()} >= {
        "settings", "budget", "thresholds", "connection", "window", "cooldown", "breaker", "billing", "price",
        "tier-override", "free-provider", "alias", "price-source", "key",
    }  # fmt: skip
    for kind in all_kinds():
        names = {column.name for column in kind.model._meta.get_fields()}
        assert set(kind.fields) <= names, kind.key
        assert not [name for name in kind.fields if "hash" in name or "password" in name]
        assert (kind.roll_back is None) is bool(kind.kept), kind.key
