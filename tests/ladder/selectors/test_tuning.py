"""Settings as texts, how often readings arrive, and who saved last (SPEC 5, 3)."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection as database
from django.test.utils import CaptureQueriesContext

from billing_catalog.core.values import Thresholds
from ladder.core.values import LadderSettings, Period, Rung, Weekday
from ladder.models import RungBudget
from ladder.selectors.saves import read_last_saves, read_saves
from ladder.selectors.settings import BudgetSettings, StoredSettings, read_stored_settings
from ladder.selectors.tuning import amount_of, amount_text, edits_between, read_usual_gap, settings_with, texts_of
from ladder.services.budgets import reset_budget
from ladder.services.settings import (
    BudgetChanges,
    BudgetsChanges,
    SettingsChanges,
    ThresholdChanges,
    update_settings,
)
from omniroute_admin.common.history import Actor
from tests.factories import ConnectionFactory, QuotaReadingFactory, QuotaWindowFactory
from tests.factories_ladder import NOW

pytestmark = pytest.mark.django_db

BUDGET = BudgetSettings(None, Period.DAILY, Weekday.MONDAY, "UTC")
STORED = StoredSettings(LadderSettings(), Thresholds(), {"cheap": BUDGET, "premium": BUDGET})


def save(who, *, minutes=0, **fields):
    update_settings(
        changes=SettingsChanges(**fields), actor=Actor(who), reason="why", now=NOW + timedelta(minutes=minutes)
    )


@pytest.mark.parametrize(
    ("amount", "text"), [(None, "none"), ("0", "off"), ("5.000000", "5"), ("0.000001", "0.000001")]
)
def test_no_limit_off_and_an_amount_are_three_texts(amount, text):
    """M1."""
    value = None if amount is None else Decimal(amount)
    assert (amount_text(value), amount_of(text)) == (text, value)


def test_settings_survive_being_told_as_texts():
    stored = read_stored_settings()
    assert settings_with(stored=stored, changes=texts_of(stored)) == stored


def test_only_what_differs_is_an_edit():
    edits, budgets = edits_between(
        stored=STORED,
        wanted=settings_with(stored=STORED, changes={"exit_cutoff_percent": "3", "cheap_zone": "Asia/Tokyo"}),
    )
    assert edits.settings == LadderSettings(exit_cutoff_percent=Decimal(3))
    assert edits.thresholds is None
    assert {rung: budget.zone for rung, budget in budgets.items()} == {Rung.CHEAP: "Asia/Tokyo"}
    assert edits_between(stored=STORED, wanted=STORED)[1] == {}


def test_the_usual_gap_comes_from_the_newest_readings():
    window = QuotaWindowFactory()
    for minutes in (0, 5, 10, 15, 600, 1200, 1800):
        QuotaReadingFactory(window=window, observed_at=NOW - timedelta(minutes=minutes))
    assert read_usual_gap() == timedelta(minutes=5)


@pytest.mark.parametrize(
    "fields", [{"is_muted": True}, {"is_reported": False}, {"observed_at": None, "received_at": None}]
)
def test_a_window_that_is_not_asked_about_says_nothing_of_the_gap(fields):
    window = QuotaWindowFactory(**fields)
    for minutes in range(6):
        QuotaReadingFactory(window=window, observed_at=NOW - timedelta(minutes=minutes))
    assert read_usual_gap() is None


def test_a_deleted_connection_says_nothing_of_the_gap():
    window = QuotaWindowFactory(connection=ConnectionFactory(deleted_at=NOW))
    for minutes in range(6):
        QuotaReadingFactory(window=window, observed_at=NOW - timedelta(minutes=minutes))
    assert read_usual_gap() is None


def test_the_gap_is_asked_with_one_query_however_many_windows_there_are():
    for number in range(40):
        QuotaReadingFactory(window=QuotaWindowFactory(), observed_at=NOW - timedelta(minutes=number))
    with CaptureQueriesContext(database) as asked:
        read_usual_gap()
    assert len(asked) == 1


def test_the_last_save_of_a_setting_is_the_one_that_changed_it():
    save("ann", minutes=1, exit_cutoff_percent=Decimal(3))
    save("bob", minutes=2, max_reading_age_seconds=60)
    save("cid", minutes=3, rung_budgets=BudgetsChanges(cheap=BudgetChanges(amount_usd=Decimal(1))))
    save("dot", minutes=4, rung_budgets=BudgetsChanges(premium=BudgetChanges(zone="Asia/Tokyo")))
    save("eve", minutes=5, tier_thresholds=ThresholdChanges(cheap=Decimal(2)))

    def who(*names):
        return [entry.who for entry in read_last_saves(names=names)]

    assert who("exit_cutoff_percent") == ["ann"]
    assert who("exit_cutoff_percent", "max_reading_age_seconds") == ["bob", "ann"]
    assert who("cheap_amount") == ["cid"]
    assert who("premium_zone", "tier_cheap") == ["eve", "dot"]
    assert who("premium_amount") == []


def test_the_saves_of_all_settings_are_one_list_without_the_rows_that_were_there_from_the_start():
    save("ann", minutes=1, exit_cutoff_percent=Decimal(3))
    save("bob", minutes=2, tier_thresholds=ThresholdChanges(cheap=Decimal(2)))
    reset_budget(rung="cheap", actor=Actor("cid"), reason="", now=NOW + timedelta(minutes=3))
    assert [entry.who for entry in read_saves(limit=9)] == ["cid", "bob", "ann"]
    assert RungBudget.objects.count() == 2
