"""Alerts in pairs, once per condition: what raises, what resolves, and what each says."""

from datetime import timedelta
from decimal import Decimal

import pytest

from ladder.models import Alert, AlertDelivery, RungBudget
from ladder.services.alert_rules import add_usual_rules, delete_rule, update_rule
from ladder.services.alerts import thin_alerts
from omniroute_admin.common.selectors.revision import current_revision
from omniroute_admin.common.services.revision import deciding_write
from tests.factories import (
    AlertDeliveryFactory,
    AlertFactory,
    AlertRuleFactory,
    BillingEntryFactory,
    ConnectionFactory,
    ModelPriceFactory,
    UsageEventFactory,
)
from tests.factories_ladder import NOW, OPERATOR
from tests.ladder.services.alerting import HOUR, MINUTE, SECOND, a_plan, look, read

pytestmark = pytest.mark.django_db
BY = {"actor": OPERATOR, "reason": "a test"}


def told() -> list[tuple[str, str, bool]]:
    return [(one.subject, one.title, one.resolved_at is None) for one in Alert.objects.order_by("id")]


def test_an_empty_pool_is_raised_once_and_resolved_once_however_often_one_looks():
    window, before = a_plan(NOW), current_revision()
    AlertRuleFactory(channels=["hook", "mail"])
    assert look(NOW) == (0, 0)
    read(window, 1, NOW + SECOND)
    assert [look(NOW + number * SECOND) for number in (1, 16, 31)] == [(1, 0), (0, 0), (0, 0)]
    alert = Alert.objects.get()
    assert (alert.title, alert.page) == ("auto/subscription is empty", "/pools/auto/subscription")
    assert "5h is at 1 %, at or below the cutoff of 2 %" in alert.text
    read(window, 80, NOW + MINUTE)
    assert [look(NOW + MINUTE), look(NOW + MINUTE + SECOND)] == [(0, 1), (0, 0)]
    alert.refresh_from_db()
    assert alert.resolved_text == "auto/subscription has 1 candidate again, the first from subscription."
    assert alert.revision == before + 1
    notices = AlertDelivery.objects.order_by("at", "channel").values_list("kind", "channel", "state")
    assert list(notices) == [
        (kind, channel, "queued") for kind in ("raised", "resolved") for channel in ("hook", "mail")
    ]
    read(window, 1, NOW + HOUR)
    assert look(NOW + HOUR) == (1, 0)
    assert current_revision() == before + 3, "alerts move no revision"


def test_a_change_that_goes_back_within_its_seconds_is_never_told_and_survives_a_restart():
    window = a_plan(NOW)
    AlertRuleFactory(for_seconds=60)
    read(window, 1, NOW)
    assert [look(NOW), look(NOW + 30 * SECOND)] == [(0, 0), (0, 0)]
    read(window, 80, NOW + 40 * SECOND)
    assert look(NOW + 45 * SECOND) == (0, 0)
    read(window, 1, NOW + 50 * SECOND)
    assert [look(NOW + seconds * SECOND) for seconds in (60, 119, 120)] == [(0, 0), (0, 0), (1, 0)]


def test_a_look_that_comes_hours_late_raises_once_what_is_so():
    window = a_plan(NOW)
    AlertRuleFactory(for_seconds=60)
    read(window, 1, NOW)
    look(NOW)
    assert [look(NOW + 5 * HOUR), look(NOW + 5 * HOUR + SECOND)] == [(1, 0), (0, 0)]


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda rule: delete_rule(rule=rule, now=NOW, **BY), "The rule was deleted"),
        (lambda rule: update_rule(rule=rule, changes={"is_enabled": False}, now=NOW, **BY), "The rule was paused"),
        (
            lambda rule: update_rule(rule=rule, changes={"subject": "auto/coding:subscription"}, now=NOW, **BY),
            "The rule was changed",
        ),
    ],
)
def test_what_nobody_looks_at_any_more_is_resolved_with_the_reason(act, words):
    read(a_plan(NOW), 1, NOW)
    rule = AlertRuleFactory()
    look(NOW)
    alert = Alert.objects.get()
    act(rule)
    look(NOW + SECOND)
    alert.refresh_from_db()
    assert alert.resolved_at == NOW + SECOND
    assert alert.resolved_text.startswith(words)
    assert AlertDelivery.objects.filter(alert=alert, kind="resolved").count() == 1


def test_a_clock_set_back_resolves_at_no_time_before_the_raise():
    window = a_plan(NOW)
    AlertRuleFactory()
    read(window, 1, NOW)
    look(NOW)
    read(window, 90, NOW)
    assert look(NOW - HOUR) == (0, 1)
    assert Alert.objects.get().resolved_at == NOW


def a_paid_provider():
    BillingEntryFactory(provider="deepseek", auth_type=None, billing="metered", overage="meters-to-paid")
    ModelPriceFactory(provider="deepseek", model="chat", input_usd_per_million=Decimal("0.5"))
    return ConnectionFactory(connection_id="d1", provider="deepseek", auth_type="apikey")


def test_a_rung_is_exhausted_where_none_of_it_would_be_tried_and_not_where_it_is_off():
    window = a_plan(NOW)
    AlertRuleFactory(looks_for="rung_exhausted", subject="")
    a_paid_provider()
    assert look(NOW) == (0, 0)
    # Worth a try is not exhausted (P4).
    assert look(NOW + HOUR) == (0, 0)
    read(window, 1, NOW)
    look(NOW)
    assert told() == [("subscription", "The rung subscription is exhausted", True)]
    assert "None of 1 connection on the rung subscription can serve: 1 quota_exhausted." in Alert.objects.get().text
    with deciding_write():
        RungBudget.objects.filter(rung="cheap").update(amount_usd=0)
    assert look(NOW + SECOND) == (0, 0)


def test_a_paid_rung_that_serves_is_told_with_what_is_left_of_its_budget():
    window, _ = a_plan(NOW), a_paid_provider()
    RungBudget.objects.filter(rung="cheap").update(amount_usd=5)
    AlertRuleFactory(looks_for="paid_serving", subject="")
    assert look(NOW) == (0, 0)
    read(window, 1, NOW)
    assert look(NOW) == (1, 0)
    assert told() == [("cheap", "The paid rung cheap serves now", True)]
    assert "$5.00 of $5.00 left until Sun 00:00 UTC (in 12 h 00 min)." in Alert.objects.get().text
    read(window, 90, NOW)
    assert look(NOW + SECOND) == (0, 1)
    assert Alert.objects.get().resolved_text == "auto/thrifty serves from subscription now."


@pytest.mark.parametrize(
    ("amount", "spent", "raised"), [(5, "3.99", 0), (5, "4.00", 1), (5, "9", 1), (0, "9", 0), (None, "9", 0)]
)
def test_a_budget_is_told_at_its_percent_exactly_and_never_where_it_is_off_or_without_limit_m1(amount, spent, raised):
    RungBudget.objects.filter(rung="cheap").update(amount_usd=amount)
    AlertRuleFactory(looks_for="budget", subject="cheap", threshold=80)
    UsageEventFactory(booked_cost=Decimal(spent), occurred_at=NOW)
    assert look(NOW) == (raised, 0)
    if raised:
        assert look(NOW + timedelta(days=1)) == (0, 1), "the next window begins with nothing spent"


@pytest.mark.parametrize(
    ("subject", "titles"),
    [
        ("", []),
        ("*", ["No readings from claude/c2 for 10 min"]),
        ("claude/c2", ["No readings from claude/c2 for 10 min"]),
        ("claude/c1", []),
    ],
)
def test_no_readings_is_told_of_everybody_of_each_or_of_one(subject, titles):
    a_plan(NOW)
    ConnectionFactory(connection_id="c2", provider="claude")
    ConnectionFactory(connection_id="off", provider="claude", is_enabled=False)
    a_paid_provider()
    AlertRuleFactory(looks_for="no_readings", subject=subject, threshold=10)
    look(NOW + 10 * MINUTE)
    assert [title for _, title, _ in told()] == titles
    look(NOW + 10 * MINUTE + SECOND)
    silent = {"": ["No readings from all connections for 10 min"], "claude/c2": titles}
    names = silent.get(subject, [f"No readings from claude/{one} for 10 min" for one in ("c1", "c2")])
    names = names[:1] if subject == "claude/c1" else names
    assert sorted(title for _, title, _ in told()) == names


@pytest.mark.parametrize(("subject", "count"), [("", 2), ("in use", 1), ("openai", 1), ("claude", 1)])
def test_a_billing_entry_is_told_after_its_days(subject, count):
    BillingEntryFactory(provider="claude", auth_type=None, reviewed_on=NOW.date() - timedelta(days=90))
    BillingEntryFactory(provider="openai", auth_type=None, reviewed_on=None, created_at=NOW - timedelta(days=90))
    ConnectionFactory(provider="claude")
    AlertRuleFactory(looks_for="unreviewed", subject=subject, threshold=90)
    assert look(NOW) == (0, 0)
    assert look(NOW + timedelta(days=1)) == (count, 0)
    assert Alert.objects.latest("id").page.startswith("/catalogue/billing/")


def test_a_plan_that_bills_past_its_allowance_is_told_m5():
    row = ConnectionFactory(connection_id="c1")
    UsageEventFactory(
        connection=row, money_kind="overage", is_overage=True, rung="subscription", billing="subscription"
    )
    AlertRuleFactory(looks_for="overage", subject="", threshold=24)
    assert look(NOW) == (1, 0)
    assert Alert.objects.get().text == "$0.10 within 24 hours. It is real money and in no budget."
    assert look(NOW + timedelta(hours=24, seconds=1)) == (0, 1)


def test_the_usual_rules_are_made_once():
    assert len(add_usual_rules(channel="ops", now=NOW, **BY)) == 7
    assert add_usual_rules(channel="ops", now=NOW, **BY) == []


def test_old_alerts_go_with_their_deliveries_and_open_ones_stay():
    old = NOW - timedelta(days=181)
    gone = AlertFactory(raised_at=old, resolved_at=old)
    AlertDeliveryFactory(alert=gone, state="sent", next_attempt_at=None)
    stays = AlertFactory(raised_at=old)
    thin_alerts(now=NOW)
    assert list(Alert.objects.all()) == [stays]
    assert AlertDelivery.objects.count() == 0
