"""SPEC 4, Usage: each event once, judged alone, booked on the rung it had when it happened (M4 to M7)."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.db import connection as database
from django.test.utils import CaptureQueriesContext

from billing_catalog.models import BillingEntry, ModelPrice, TierThresholds
from billing_catalog.services.aliases import create_alias
from billing_catalog.services.entries import create_entry, delete_entry, update_entry
from billing_catalog.services.prices import create_price, update_price
from billing_catalog.services.tiers import create_override
from ladder.core.values import Accounting, Rung
from ladder.models import Connection, UsageEvent
from ladder.selectors.ledger import read_budgets
from ladder.services.connections import create_connection, delete_connection, update_connection
from ladder.services.settings import SettingsChanges, ThresholdChanges, update_settings
from ladder.services.usage_items import UnreadableItem
from omniroute_admin.common.selectors.revision import current_token
from tests.factories import BillingEntryFactory, ConnectionFactory, ModelPriceFactory, PriceSourceFactory
from tests.factories_ladder import NOW, OPERATOR
from tests.ladder.services.booking import (
    HOUR,
    SECOND,
    codes,
    counts,
    event,
    make_ladder,
    record,
    row,
    set_budget,
    spent,
    usd,
)

pytestmark = pytest.mark.django_db

TOKENS = {"input_tokens": 1_000_000, "output_tokens": 100_000}
DAY = timedelta(days=1)
BY = {"actor": OPERATOR, "reason": "a test"}


@pytest.fixture(autouse=True)
def ladder(db):
    make_ladder()


def test_an_event_with_a_cost_is_booked_at_that_cost():
    assert counts(record(event(cost="0.123456"))) == (1, 0, 0, 0)
    booked = row()
    assert (booked.booked_usd, booked.booked_cost, booked.cost_usd) == (usd("0.123456"),) * 3
    assert (booked.rung, booked.billing, booked.money_kind, booked.is_estimated) == (
        "cheap",
        "metered",
        "budget",
        False,
    )
    assert (booked.booked_at, booked.received_at) == (NOW, NOW + 30 * SECOND)
    assert spent() == usd("0.123456")


def test_the_same_event_again_has_one_effect_and_is_counted_as_a_duplicate():
    first = event(cost="0.10", hold_id="h1", **TOKENS)
    assert counts(record(first, first)) == (1, 1, 0, 0)
    assert counts(record(first)) == (0, 1, 0, 0)
    assert spent() == usd("0.10")


@pytest.mark.parametrize(
    "other",
    [
        {"cost": "0.11"},
        {"cost": None},
        {"at": NOW + SECOND},
        {"model": "big"},
        {"connection_id": "plan"},
        {"is_overage": True},
        {"hold_id": "h1"},
        {"corrects_event_id": "e1"},
        {"input_tokens": 1},
    ],
)
def test_the_same_id_with_other_content_is_a_conflict_and_changes_nothing(other):
    record(event(cost="0.10"))
    answer = record(event(**{"cost": "0.10"} | other))
    assert codes(answer) == [(0, "conflict")]
    assert codes(record(event("e2", "0.1"), event("e2", "0.2"))) == [(1, "conflict")]
    assert UsageEvent.objects.count() == 2
    assert spent() == usd("0.20")


def test_costs_that_say_the_same_number_are_the_same_content():
    record(event(cost="0.10"))
    assert counts(record(event(cost="0.100"))) == (0, 1, 0, 0)


def test_one_bad_item_never_costs_the_good_ones():
    answer = record(
        UnreadableItem("event_id: missing"),
        event("e1", "0.10"),
        event("e2", "0.10", connection_id="nobody"),
        event("e3", "-0.10"),
        event("e4", "0.10"),
    )
    assert counts(answer) == (2, 0, 0, 3)
    assert codes(answer) == [(0, "invalid_item"), (2, "unknown_connection"), (3, "invalid_item")]
    assert spent() == usd("0.20")


@pytest.mark.parametrize(
    ("fields", "code", "word"),
    [
        ({"cost": "-0.000001"}, "invalid_item", "cost_usd"),
        ({"cost": "0.0000001"}, "invalid_item", "cost_usd"),
        ({"cost": "1000000.01"}, "invalid_item", "cost_usd"),
        ({"cost": "NaN"}, "invalid_item", "cost_usd"),
        ({"cost": "Infinity"}, "invalid_item", "cost_usd"),
        ({"cost": "1e-999999"}, "invalid_item", "cost_usd"),
        ({"cost": "1e999999"}, "invalid_item", "cost_usd"),
        ({"input_tokens": -1}, "invalid_item", "input_tokens"),
        ({"output_tokens": 1_000_000_001}, "invalid_item", "output_tokens"),
        ({"input_tokens": 10, "cached_input_tokens": 11}, "invalid_item", "cached_input_tokens"),
        ({"cached_input_tokens": 1}, "invalid_item", "cached_input_tokens"),
        ({"event_id": ""}, "invalid_item", "event_id"),
        ({"event_id": "x" * 201}, "invalid_item", "event_id"),
        ({"event_id": "a\0b"}, "invalid_item", "event_id"),
        ({"model": " "}, "invalid_item", "model"),
        ({"hold_id": ""}, "invalid_item", "hold_id"),
        ({"corrects_event_id": ""}, "invalid_item", "corrects_event_id"),
        ({"at": datetime(1999, 12, 31, tzinfo=UTC)}, "invalid_item", "occurred_at"),
        ({"at": NOW + 91 * SECOND}, "occurred_in_future", "occurred_at"),
        ({"connection_id": "noauth"}, "provider_required", "provider"),
        ({"connection_id": "noauth", "provider": "no one!"}, "unknown_connection", "provider"),
        ({"provider": "claude"}, "provider_mismatch", "provider"),
    ],
)
def test_what_cannot_be_is_rejected_by_name(fields, code, word):
    answer = record(event(**{"cost": "0.10"} | fields))
    assert codes(answer) == [(0, code)]
    assert word in answer.rejected[0].detail
    assert not UsageEvent.objects.exists()


def test_every_fault_of_an_item_is_named():
    answer = record(event("", "-1", model="", input_tokens=-1))
    assert {part.split(":")[0] for part in answer.rejected[0].detail.split("; ")} == {
        "event_id",
        "model",
        "input_tokens",
        "cost_usd",
    }


@pytest.mark.parametrize("cost", ["0", "0.000001", "1000000", "1.500000000"])
def test_what_can_be_is_booked(cost):
    assert counts(record(event(cost=cost, at=NOW + 90 * SECOND))) == (1, 0, 0, 0)


def test_without_a_cost_the_catalogue_prices_input_cached_and_output_m7():
    record(event(input_tokens=1_000_000, cached_input_tokens=400_000, output_tokens=100_000))
    # 600,000 at 0.50, 400,000 cached at 0.05, 100,000 out at 2 a million
    assert (row().booked_cost, row().is_estimated) == (usd("0.52"), False)


def test_without_a_known_price_the_dearest_of_the_rung_is_taken_and_marked_m7():
    """No price is premium (T); its dearest known input is 3 and its dearest output 15 a million."""
    ModelPriceFactory(provider="acme", model="odd", input_usd_per_million=usd("2"), output_usd_per_million=usd("60"))
    record(event(model="unheard-of", **TOKENS))
    booked = row()
    assert (booked.rung, booked.is_estimated) == ("premium", True)
    assert booked.booked_cost == usd("5") + usd("6")  # opus is premium too: 5 a million in, odd's 60 out
    assert read_budgets(now=NOW)[Rung.PREMIUM].accounting is Accounting.PARTIAL


def test_a_model_of_an_overridden_tier_is_estimated_among_that_tier_m7():
    create_override(values={"provider": "openrouter", "model_pattern": "new*", "tier": "cheap"}, **BY, now=NOW - DAY)
    record(event(model="new-one", **TOKENS))
    assert (row().rung, row().booked_cost) == ("cheap", usd("0.70"))


def test_without_cost_and_tokens_nothing_is_known_so_zero_is_marked_m7():
    record(event())
    assert (row().booked_cost, row().is_estimated) == (Decimal(0), True)


def test_a_price_of_zero_from_a_seller_of_seats_is_no_price_m7():
    PriceSourceFactory(provider="seats", sells_seats=True)
    BillingEntryFactory(provider="seats", auth_type=None, billing="metered", overage="meters-to-paid")
    ConnectionFactory(connection_id="s1", provider="seats", auth_type="apikey")
    ModelPriceFactory(provider="seats", model="m", input_usd_per_million=Decimal(0), output_usd_per_million=Decimal(0))
    record(event(connection_id="s1", model="m", **TOKENS))
    assert (row().rung, row().is_estimated, row().booked_cost) == ("premium", True, usd("7.5"))


def test_traffic_of_a_plan_is_plan_value_at_list_price_and_in_no_budget_m5():
    record(event("e1", connection_id="plan", model="opus", **TOKENS))
    record(event("e2", "0", connection_id="plan", model="opus", **TOKENS))
    record(event("e3", "0.25", connection_id="plan", model="opus"))
    assert [(row(name).money_kind, row(name).booked_usd) for name in ("e1", "e2", "e3")] == [
        ("plan", usd("7.5")),
        ("plan", usd("7.5")),
        ("plan", usd("0.25")),
    ]
    assert (spent(), spent(Rung.PREMIUM)) == (0, 0)


def test_what_a_plan_bills_past_its_allowance_is_totalled_apart_and_in_no_budget_m5():
    record(event(cost="2.50", connection_id="plan", model="opus", is_overage=True))
    assert (row().money_kind, row().rung) == ("overage", "subscription")
    assert (spent(), spent(Rung.PREMIUM)) == (0, 0)


def test_a_paid_rung_has_no_allowance_so_its_budget_is_drawn_on_whatever_is_said_m5():
    record(event(cost="0.50", is_overage=True))
    assert (row().money_kind, spent()) == ("budget", usd("0.50"))


def test_the_keyless_path_is_always_known_and_books_nothing_spec_1():
    answer = record(event(cost=None, connection_id="noauth", provider=" Pollinations ", model="m", input_tokens=5))
    assert counts(answer) == (1, 0, 0, 0)
    assert (row().rung, row().money_kind) == ("keyless", "plan")
    assert counts(record(event(connection_id="noauth", provider="pollinations", model="m", input_tokens=5)))[1] == 1
    assert codes(record(event(connection_id="noauth", provider="groq", model="m", input_tokens=5))) == [(0, "conflict")]


def test_recurating_later_moves_no_closed_total_m6():
    record(event(cost="0.10"))
    entry = BillingEntry.objects.get(provider="openrouter")
    update_entry(entry=entry, changes={"billing": "subscription"}, **BY, now=NOW + HOUR)
    assert (row().rung, spent()) == ("cheap", usd("0.10"))


def test_a_late_event_is_judged_by_the_catalogue_of_its_instant_m6():
    entry = BillingEntry.objects.get(provider="openrouter")
    # The factory's row was written at the wall clock: give its history an instant before this story.
    entry.history.update(history_date=NOW - 30 * DAY)
    update_entry(entry=entry, changes={"billing": "subscription"}, **BY, now=NOW - 10 * DAY)
    delete_entry(entry=BillingEntry.objects.get(provider="openrouter"), **BY, now=NOW - 5 * DAY)
    days = {"before": 40, "first": 20, "second": 7, "deleted": 1}
    record(*(event(name, "0.01", at=NOW - ago * DAY) for name, ago in days.items()))
    assert {name: (row(name).rung, row(name).billing) for name in days} == {
        "before": ("cheap", "metered"),
        "first": ("cheap", "metered"),
        "second": ("subscription", "subscription"),
        "deleted": ("cheap", "unknown"),
    }


def test_a_change_holds_from_its_very_microsecond_m6():
    entry = BillingEntry.objects.get(provider="openrouter")
    entry.history.update(history_date=NOW - 30 * DAY)
    update_entry(entry=entry, changes={"billing": "subscription"}, **BY, now=NOW)
    tick = timedelta(microseconds=1)
    record(event("e1", "0.01", at=NOW - tick), event("e2", "0.01", at=NOW))
    assert (row("e1").rung, row("e2").rung) == ("cheap", "subscription")


def test_history_imported_on_day_one_is_judged_by_todays_facts_m6():
    create_entry(
        values={"provider": "acme", "auth_type": None, "billing": "subscription", "overage": "hard-stop"}, **BY, now=NOW
    )
    ConnectionFactory(connection_id="a1", provider="acme")
    ModelPriceFactory(
        provider="acme", model="m", input_usd_per_million=usd("1"), output_usd_per_million=usd("1"), effective_from=NOW
    )
    record(event(connection_id="a1", model="m", at=NOW - 400 * DAY, **TOKENS))
    assert (row().rung, row().booked_cost, row().is_estimated) == ("subscription", usd("1.1"), False)


def test_an_entry_made_again_after_its_deletion_says_nothing_of_the_time_between_m6():
    entry = BillingEntry.objects.get(provider="openrouter")
    entry.history.update(history_date=NOW - 30 * DAY)
    delete_entry(entry=entry, **BY, now=NOW - 10 * DAY)
    values = {"provider": "openrouter", "auth_type": "apikey", "billing": "subscription", "overage": "hard-stop"}
    create_entry(values=values, **BY, now=NOW - 5 * DAY)
    days = {"first": 40, "between": 7, "again": 1}
    record(*(event(name, "0.01", at=NOW - ago * DAY) for name, ago in days.items()))
    assert [row(name).billing for name in days] == ["metered", "unknown", "subscription"]


def test_a_price_that_changed_prices_what_happened_before_as_before_m6():
    old = ModelPrice.objects.get(model="small")
    update_price(price=old, changes={"input_usd_per_million": usd("2")}, **BY, now=NOW)
    record(event("e1", at=NOW - HOUR, input_tokens=1_000_000), event("e2", at=NOW, input_tokens=1_000_000))
    assert [(row(name).rung, row(name).booked_cost) for name in ("e1", "e2")] == [
        ("cheap", usd("0.5")),
        ("premium", usd("2")),
    ]


def test_a_price_that_is_only_planned_says_nothing_yet_m6():
    values = {"provider": "openrouter", "model": "soon", "input_usd_per_million": usd("0.1")}
    create_price(values=values | {"output_usd_per_million": usd("0.1"), "effective_from": NOW + DAY}, **BY, now=NOW)
    record(event(cost="0.01", model="soon"))
    assert row().rung == "premium"


def test_thresholds_are_those_of_the_instant_m6():
    TierThresholds.history.update(history_date=NOW - 30 * DAY)
    update_settings(changes=SettingsChanges(tier_thresholds=ThresholdChanges(cheap=usd("10"))), **BY, now=NOW)
    assert TierThresholds.objects.get().cheap == 10
    record(event("e1", "1", model="big", at=NOW - SECOND), event("e2", "1", model="big", at=NOW))
    assert (row("e1").rung, row("e2").rung) == ("premium", "cheap")


def test_the_auth_type_is_that_of_the_instant_m6():
    connection = Connection.objects.get(connection_id="paid")
    connection.history.update(history_date=NOW - 30 * DAY)
    BillingEntryFactory(provider="openrouter", auth_type="oauth", billing="subscription")
    update_connection(connection=connection, changes={"auth_type": "oauth"}, **BY, now=NOW)
    record(event("e1", "0.01", at=NOW - SECOND), event("e2", "0.01", at=NOW))
    assert (row("e1").rung, row("e2").rung) == ("cheap", "subscription")


def test_a_name_that_became_an_alias_keeps_its_past_m6():
    BillingEntryFactory(provider="old-name", auth_type="apikey", billing="subscription")
    BillingEntry.objects.get(provider="old-name").history.update(history_date=NOW - 30 * DAY)
    ConnectionFactory(connection_id="o1", provider="old-name", auth_type="apikey")
    record(event("e0", "0.01", connection_id="o1", provider="old-name", at=NOW - DAY))
    create_alias(values={"alias": "old-name", "provider": "new-name"}, **BY, now=NOW)
    answer = record(
        event("e0", "0.01", connection_id="o1", provider="new-name", at=NOW - DAY),
        event("e1", "0.01", connection_id="o1", provider="Old-Name", at=NOW - DAY),
        event("e2", "0.01", connection_id="o1", at=NOW),
    )
    assert counts(answer) == (2, 1, 0, 0)
    assert (row("e1").rung, row("e2").rung) == ("subscription", "subscription")


def test_usage_is_booked_on_the_deleted_connection_that_lived_then_spec_4():
    first = Connection.objects.get(connection_id="paid")
    Connection.objects.filter(pk=first.pk).update(created_at=NOW - 20 * DAY)
    delete_connection(connection=first, **BY, now=NOW - 10 * DAY)
    assert counts(record(event("gone", "0.01", at=NOW - DAY))) == (1, 0, 0, 0)
    second = create_connection(connection_id="paid", provider="openrouter", auth_type="apikey", **BY, now=NOW - 5 * DAY)
    days = {"older": 30, "lived": 15, "between": 7, "present": 1}
    record(*(event(name, "0.01", at=NOW - ago * DAY) for name, ago in days.items()))
    assert row("gone").connection_id == first.pk
    assert {name: row(name).connection_id for name in days} == {
        "older": second.pk,
        "lived": first.pk,
        "between": second.pk,
        "present": second.pk,
    }
    assert counts(record(event("older", "0.01", at=NOW - 30 * DAY)))[1] == 1


def test_spend_belongs_to_the_window_in_which_it_happened_m4():
    record(event("e1", "0.10", at=NOW - DAY), event("e2", "0.20"))
    assert (spent(), spent(now=NOW - DAY), spent(now=NOW + DAY)) == (usd("0.20"), usd("0.10"), 0)


def test_accounting_tells_how_well_the_spend_is_known():
    def told():
        return read_budgets(now=NOW)[Rung.CHEAP].accounting

    assert told() is Accounting.NONE
    record(event("e1", "0.10"))
    assert told() is Accounting.COMPLETE
    record(event("e2"))
    assert told() is Accounting.PARTIAL
    record(event("e3", "0.30", corrects_event_id="e2"))
    assert told() is Accounting.COMPLETE


def test_the_revision_moves_only_where_a_rung_closes_or_opens_spec_3():
    set_budget(amount="1.00")
    moves = []
    for number, cost in enumerate(["0.50", "0.49", "0.01", "5.00"]):
        before = current_token()
        record(event(f"e{number}", cost))
        after = current_token()
        moves.append((after[0] - before[0], after[1] - before[1]))
    assert moves == [(0, 1), (0, 1), (1, 0), (0, 1)]
    before = current_token()
    record(event("e0", "0.50"), event("plan", "9", connection_id="nobody"))
    assert current_token() == before
    record(event("late", "9", at=NOW - DAY))
    assert current_token()[0] == before[0]
    record(event("refund", "0", at=NOW + SECOND, corrects_event_id="e3"), event("less", "0", corrects_event_id="e0"))
    assert current_token()[0] == before[0] + 1


def test_a_full_body_costs_as_many_queries_as_a_small_one():
    def bodies(size, name):
        events = [event(f"{name}{number}", at=NOW - number * SECOND, **TOKENS) for number in range(size)]
        fixed = [event(f"{name}c{number}", "1", corrects_event_id=f"{name}{number}") for number in range(size // 2)]
        return [*events, *fixed, event(f"{name}x", model="unheard-of", **TOKENS)]

    queries = []
    for size, name in ((4, "few"), (800, "many")):
        with CaptureQueriesContext(database) as captured:
            record(*bodies(size, name))
        queries.append(len(captured))
    assert queries[0] == queries[1]
    assert queries[0] < 60
