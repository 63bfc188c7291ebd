"""SPEC 5: Django's admin for everything, by the same rules and with the same history."""

import re
from datetime import timedelta
from decimal import Decimal

import pytest
import time_machine
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.urls import reverse

from ladder import models
from ladder.services.budgets import reset_budget
from omniroute_admin.common.history import Actor, stamp
from omniroute_admin.common.selectors.revision import current_revision
from omniroute_admin.common.services.revision import deciding_write
from tests.factories import (
    AlertDeliveryFactory,
    AlertFactory,
    AlertRuleFactory,
    BillingEntryFactory,
    BreakerFactory,
    ConnectionFactory,
    CooldownFactory,
    LedgerSumFactory,
    QuotaReadingFactory,
    QuotaWindowFactory,
    RefusalReportFactory,
    RungFlipFactory,
    RungSampleFactory,
    SpendHoldFactory,
    UsageEventFactory,
)
from tests.factories_ladder import NOW

pytestmark = pytest.mark.django_db


ROWS = [
    (models.Connection, ConnectionFactory),
    (models.QuotaWindow, QuotaWindowFactory),
    (models.QuotaReading, QuotaReadingFactory),
    (models.Cooldown, CooldownFactory),
    (models.Breaker, BreakerFactory),
    (models.RefusalReport, RefusalReportFactory),
    (models.LadderSettings, models.LadderSettings.objects.get),
    (models.UsageEvent, UsageEventFactory),
    (models.SpendHold, SpendHoldFactory),
    (models.RungBudget, lambda: models.RungBudget.objects.get(rung="cheap")),
    (models.LedgerSum, LedgerSumFactory),
    (models.RungFlip, RungFlipFactory),
    (models.RungSample, RungSampleFactory),
    (models.AlertRule, AlertRuleFactory),
    (models.Alert, AlertFactory),
    (models.AlertDelivery, AlertDeliveryFactory),
]
NEW = {"connection_id": "c1", "provider": "Claude", "auth_type": "oauth", "is_enabled": "on", "excluded_models": "[]"}


@pytest.fixture
def boss(client):
    client.force_login(get_user_model().objects.create_superuser("boss"))
    with time_machine.travel(NOW, tick=False):
        yield client


def address(model, page, *args):
    return reverse(f"admin:ladder_{model._meta.model_name}_{page}", args=args)


def save(boss, row, **values):
    return boss.post(address(type(row), "change", row.pk), {"change_reason": "why not"} | values, follow=True)


def test_every_model_of_the_ladder_has_its_admin():
    registered = {model for model in admin.site._registry if model._meta.app_label == "ladder"}
    assert registered == {model for model, _ in ROWS}


@pytest.mark.parametrize(("model", "make"), ROWS)
def test_every_model_can_be_listed_searched_looked_at_and_its_history_read(boss, model, make):
    row, before = make(), current_revision()
    pages = [address(model, "changelist"), address(model, "change", row.pk), address(model, "history", row.pk)]
    if admin.site._registry[model].search_fields:
        pages.append(f"{pages[0]}?q=c")
    for page in pages:
        assert boss.get(page).status_code == 200, page
    assert current_revision() == before


def test_a_connection_is_stored_by_the_same_rules(boss):
    boss.post(address(models.Connection, "add"), NEW | {"change_reason": "a new plan"})
    row = models.Connection.objects.get()
    act = row.history.get()
    assert (row.provider, row.created_at, row.excluded_models) == ("claude", NOW, [])
    assert (act.history_actor, act.history_change_reason, act.history_date) == ("boss", "a new plan", NOW)


def test_a_second_connection_of_an_id_is_refused_with_a_message(boss):
    ConnectionFactory(connection_id="c1", provider="codex")
    response = boss.post(address(models.Connection, "add"), NEW | {"change_reason": "x"}, follow=True)
    assert "exists already" in response.content.decode()
    assert models.Connection.objects.count() == 1


def test_hard_stop_against_the_catalogue_takes_the_reason_of_the_change_b4(boss):
    BillingEntryFactory(provider="claude", overage="unknown")
    row = ConnectionFactory(connection_id="c1", label="mine")
    save(boss, row, auth_type="oauth", label="mine", overage_override="hard-stop", excluded_models="")
    row.refresh_from_db()
    assert (row.overage_override, row.overage_override_reason) == ("hard-stop", "why not")
    assert (row.is_enabled, row.excluded_models) == (False, [])


def test_deleting_a_connection_keeps_it_in_the_books_spec_3(boss):
    window = QuotaWindowFactory(connection__connection_id="c1")
    page = address(models.Connection, "delete", window.connection_id)
    assert boss.get(page).status_code == 200
    boss.post(page, {"post": "yes", "change_reason": "left"})
    row = models.Connection.objects.get()
    assert (row.deleted_at, row.windows.count()) == (NOW, 1)
    assert row.history.latest("history_id").history_change_reason == "left"
    assert boss.post(page, {"post": "yes", "change_reason": "again"}).status_code == 403
    assert boss.get(address(models.Connection, "changelist") + "?place=routing").context["cl"].result_count == 0
    assert boss.get(address(models.Connection, "changelist") + "?place=books").context["cl"].result_count == 1


def test_many_connections_are_deleted_at_once_and_stay_in_the_books_spec_3(boss):
    rows = [ConnectionFactory(), ConnectionFactory(), ConnectionFactory(deleted_at=NOW - timedelta(days=1))]
    chosen = {"action": "delete_selected", "_selected_action": [row.pk for row in rows]}
    boss.post(address(models.Connection, "changelist"), chosen | {"post": "yes", "change_reason": "moved"})
    assert models.Connection.objects.filter(deleted_at=NOW).count() == 2
    assert models.Connection.objects.count() == 3


def test_only_the_operators_part_of_a_window_is_changed_q6_q7(boss):
    row = QuotaWindowFactory(remaining_percent=Decimal(50))
    save(boss, row, is_muted="on", exit_cutoff_percent="20", remaining_percent="99")
    row.refresh_from_db()
    assert (row.is_muted, row.exit_cutoff_percent, row.remaining_percent) == (True, 20, 50)
    assert row.history.latest("history_id").history_change_reason == "why not"
    bad = save(boss, row, exit_cutoff_percent="101")
    assert "exit_cutoff_percent" in bad.context["adminform"].form.errors


def test_telemetrys_rows_are_neither_added_nor_deleted_by_hand(boss):
    for model, row in ((models.QuotaWindow, QuotaWindowFactory()), (models.QuotaReading, QuotaReadingFactory())):
        assert boss.get(address(model, "add")).status_code == 403
        assert boss.post(address(model, "delete", row.pk), {"post": "yes", "change_reason": "x"}).status_code == 403


def test_an_operator_sets_and_clears_a_cooldown_c3(boss):
    connection = ConnectionFactory()
    until = {"effective_until_0": "2026-08-22", "effective_until_1": "15:00:00"}
    values = {"connection": connection.pk, "model": "", "cause": "operator", "change_reason": "pause"} | until
    boss.post(address(models.Cooldown, "add"), values)
    row = models.Cooldown.objects.get()
    assert (row.model, row.effective_until, row.set_by) == (None, NOW + timedelta(hours=3), "boss")
    other = CooldownFactory(connection=connection, cause="operator", model="opus")
    boss.post(address(models.Cooldown, "delete", row.pk), {"post": "yes", "change_reason": "go on"})
    assert models.Cooldown.objects.get() == other
    assert models.Cooldown.history.latest("history_id").history_change_reason == "go on"


def set_in_admin(boss, connection, time, **values):
    until = {"effective_until_0": "2026-08-22", "effective_until_1": time} if time else {}
    given = {"connection": connection.pk, "model": "", "cause": "quota", "change_reason": "pause"} | until | values
    return boss.post(address(models.Cooldown, "add"), given, follow=True)


@pytest.mark.parametrize("model", [None, "opus"])
def test_a_cooldown_beside_one_that_stands_extends_or_replaces_it_c5(boss, model):
    over = NOW - timedelta(hours=1)
    row = CooldownFactory(cause="quota", model=model, asked_until=over, effective_until=over)
    set_in_admin(boss, row.connection, "13:00:00", model=model or "")
    row.refresh_from_db()
    assert row.effective_until == row.asked_until == NOW + timedelta(hours=1)
    set_in_admin(boss, row.connection, "14:00:00", model=model or "")
    row.refresh_from_db()
    assert row.effective_until == NOW + timedelta(hours=2)
    shown = set_in_admin(boss, row.connection, "12:30:00", model=model or "")
    row.refresh_from_db()
    assert row.effective_until == NOW + timedelta(hours=2)
    assert "One that lasts longer stands, until 2026-08-22 14:00:00 UTC" in shown.content.decode()
    set_in_admin(boss, row.connection, "", model=model or "")
    assert models.Cooldown.objects.get().effective_until is None


def test_a_cooldown_that_would_end_in_the_past_is_refused_with_words(boss):
    shown = set_in_admin(boss, ConnectionFactory(), "12:00:00")
    assert "This time has passed" in shown.content.decode()
    bad = set_in_admin(boss, ConnectionFactory(), "13:00:00", cause="weather")
    assert "cause" in bad.context["adminform"].form.errors
    assert not models.Cooldown.objects.exists()


def test_an_operator_closes_a_breaker(boss):
    row, before = BreakerFactory(), current_revision()
    save(boss, row, open_until_0="", open_until_1="")
    row.refresh_from_db()
    assert (row.open_until, row.reported_at) == (None, NOW)
    assert current_revision() == before + 1


def test_the_settings_are_changed_and_a_bad_one_is_shown(boss):
    row = models.LadderSettings.objects.get()
    good = {"exit_cutoff_percent": "3", "reentry_min_remaining_percent": "1", "max_reading_age_seconds": "60"}
    save(boss, row, **good)
    row.refresh_from_db()
    assert (row.exit_cutoff_percent, row.max_reading_age_seconds) == (3, 60)
    bad = save(boss, row, exit_cutoff_percent="101", reentry_min_remaining_percent="-1", max_reading_age_seconds="9")
    assert set(bad.context["adminform"].form.errors) == set(good)
    assert boss.get(address(models.LadderSettings, "add")).status_code == 403


def test_a_budget_is_off_or_without_a_limit_in_words_m1(boss):
    page = address(models.RungBudget, "changelist")
    assert "no limit" in boss.get(page).content.decode()
    row = models.RungBudget.objects.get(rung="cheap")
    values = {"amount_usd": "0", "period": "weekly", "week_starts_on": "sunday", "zone": "Europe/Berlin"}
    save(boss, row, **values)
    row.refresh_from_db()
    assert (row.amount_usd, row.zone) == (0, "Europe/Berlin")
    assert ">off<" in boss.get(page).content.decode()
    bad = save(boss, row, **values | {"amount_usd": "-1", "zone": "Mars/Olympus"})
    assert "zone" in bad.context["adminform"].form.errors
    save(boss, row, **values | {"amount_usd": ""})
    row.refresh_from_db()
    assert row.amount_usd is None


@pytest.mark.parametrize(
    ("model", "make"), [(models.RungFlip, RungFlipFactory), (models.RungSample, RungSampleFactory)]
)
def test_the_timeline_is_only_looked_at(boss, model, make):
    row = make()
    assert boss.get(address(model, "add")).status_code == 403
    for page, values in (("change", {"rung": "free"}), ("delete", {"post": "yes"})):
        assert boss.post(address(model, page, row.pk), values).status_code == 403
    assert model.objects.values().get() == type(row).objects.filter(pk=row.pk, rung=row.rung).values().get()


def test_the_timeline_is_listed_in_words_and_filtered_by_what_flipped_and_why(boss):
    RungFlipFactory(connection__connection_id="c1", to_state="", code=None, cause="operator")
    RungFlipFactory(of_rung=True)
    page = address(models.RungFlip, "changelist")
    text = boss.get(page).content.decode()
    assert "not there" in text
    assert "the rung" in text
    for query, count in (
        ("kind=rung", 1),
        ("cause=operator", 1),
        ("cause=budget", 0),
        ("at__gte=2026-01-01+00:00:00%2B00:00", 2),
    ):
        assert boss.get(f"{page}?{query}").context["cl"].result_count == count, query
    RungSampleFactory(rung="cheap", left_usd=None)
    RungSampleFactory(rung="premium", left_usd=Decimal("1.2"))
    RungSampleFactory(rung="free")
    text = boss.get(address(models.RungSample, "changelist")).content.decode()
    assert [words in text for words in ("no limit", "$1.2<", "no budget is asked")] == [True] * 3


@pytest.mark.parametrize("make", [UsageEventFactory, SpendHoldFactory])
def test_the_ledger_is_only_looked_at_spec_3(boss, make):
    row = make()
    assert boss.get(address(type(row), "add")).status_code == 403
    assert boss.post(address(type(row), "delete", row.pk), {"post": "yes"}).status_code == 403
    assert boss.post(address(type(row), "change", row.pk), {"rung": "premium"}).status_code == 403


def reset_in_admin(boss, *rungs, **values):
    chosen = [models.RungBudget.objects.get(rung=rung).pk for rung in rungs]
    return boss.post(
        address(models.RungBudget, "changelist"), {"action": "reset", "_selected_action": chosen} | values, follow=True
    )


def counted_from():
    return dict(models.RungBudget.objects.values_list("rung", "counted_from"))


def test_a_budget_is_reset_only_when_confirmed_with_a_reason_m9(boss):
    UsageEventFactory(rung="cheap", booked_cost=Decimal("1.2"))
    SpendHoldFactory(rung="cheap", amount_usd=Decimal("0.4"))
    before = current_revision(), counted_from()
    asked = reset_in_admin(boss, "cheap", change_reason="paid <by> hand").content.decode()
    assert "cheap: $1.20 spent since 2026-08-22T00:00:00Z, $0.40 on hold" in asked
    assert 'value="paid &lt;by&gt; hand"' in asked
    assert "Say why the count starts again." in reset_in_admin(boss, "cheap", post="yes").content.decode()
    assert (current_revision(), counted_from()) == before
    shown = reset_in_admin(boss, "cheap", post="yes", change_reason="paid by hand").content.decode()
    assert "Reset: cheap. The count starts at 2026-08-22T12:00:00Z." in shown
    assert counted_from() == {"cheap": NOW, "premium": None}
    assert (current_revision(), models.UsageEvent.objects.count()) == (before[0] + 1, 1)
    act = models.RungBudget.objects.get(rung="cheap").history.latest("history_id")
    assert (act.history_actor, act.history_change_reason, act.history_date) == ("boss", "paid by hand", NOW)
    assert not models.RungBudget.objects.get(rung="premium").history.filter(history_actor="boss").exists()


def test_several_budgets_are_reset_at_once_at_one_instant_m9(boss):
    reset_in_admin(boss, "premium", "cheap", post="yes", change_reason="a new month")
    assert counted_from() == {"cheap": NOW, "premium": NOW}


def test_who_may_only_look_at_budgets_resets_none_m9(client):
    viewer = get_user_model().objects.create_user("viewer")
    viewer.groups.add(Group.objects.get(name="viewer"))
    client.force_login(viewer)
    page = client.get(address(models.RungBudget, "changelist"))
    assert (page.status_code, 'value="reset"' in page.content.decode()) == (200, False)
    reset_in_admin(client, "cheap", post="yes", change_reason="mine")
    assert counted_from() == {"cheap": None, "premium": None}


def test_the_history_of_a_budget_shows_its_reset_with_both_values_m9(boss):
    budget = models.RungBudget.objects.get(rung="cheap")
    with deciding_write():
        stamp(instance=budget, actor=Actor("boss"), reason="as it was", now=NOW)
        budget.save()
    for reset_at, reason in ((NOW, "a new month"), (NOW + timedelta(hours=1), "once more")):
        reset_budget(rung="cheap", actor=Actor("boss"), reason=reason, now=reset_at)
    text = boss.get(address(models.RungBudget, "history", budget.pk)).content.decode()
    assert "Counted from" in text
    assert "once more" in text
    told = " ".join(re.sub(r"<[^>]*>", " ", text).split())
    assert "2026-08-22 12:00:00+00:00 → 2026-08-22 13:00:00+00:00" in told


def test_a_rule_of_alerts_is_made_changed_and_deleted_by_its_service(boss):
    values = {"looks_for": "budget", "name": "Money", "threshold": "80", "channels": '["ops"]', "for_seconds": "0"}
    values |= {"quiet_zone": "UTC", "quiet_days": "[]", "is_enabled": "on"}
    add = address(models.AlertRule, "add")
    refused = boss.post(add, values | {"threshold": "101", "change_reason": "x"}, follow=True)
    assert "threshold: Expected 1 to 100 %." in refused.content.decode()
    boss.post(add, values | {"change_reason": "money"})
    row = models.AlertRule.objects.get()
    assert (row.created_at, row.channels, row.history.get().history_change_reason) == (NOW, ["ops"], "money")
    save(boss, row, **values | {"threshold": "90"})
    row.refresh_from_db()
    assert (row.threshold, row.history.latest("history_id").history_change_reason) == (90, "why not")
    alert = AlertFactory(rule=row)
    page = address(models.AlertRule, "delete", row.pk)
    assert boss.get(page).status_code == 200
    boss.post(page, {"post": "yes", "change_reason": "gone"})
    alert.refresh_from_db()
    assert (models.AlertRule.objects.count(), alert.rule) == (0, None)
