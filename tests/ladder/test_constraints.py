"""SPEC 3: what must not be in the live state cannot get in past the services either."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import ProtectedError, Sum

from ladder import models
from ladder.errors import LedgerIsAppendOnly
from ladder.models import LadderSettings, RungBudget
from tests.factories import (
    BreakerFactory,
    ConnectionFactory,
    CooldownFactory,
    QuotaReadingFactory,
    QuotaWindowFactory,
    SpendHoldFactory,
    UsageEventFactory,
)
from tests.factories_ladder import NOW

pytestmark = pytest.mark.django_db

IMPOSSIBLE = [
    ("connection_has_names", ConnectionFactory, {"connection_id": ""}),
    ("connection_has_names", ConnectionFactory, {"provider": " "}),
    ("connection_noauth_is_none", ConnectionFactory, {"connection_id": "noauth", "auth_type": "oauth"}),
    ("connection_noauth_is_none", ConnectionFactory, {"connection_id": "noauth", "auth_type": None}),
    ("connection_implied_is_noauth", ConnectionFactory, {"is_implied": True}),
    ("connection_override_is_a_word", ConnectionFactory, {"overage_override": "never"}),
    ("window_has_name", QuotaWindowFactory, {"window": ""}),
    ("window_model_is_not_blank", QuotaWindowFactory, {"model": ""}),
    ("window_remaining_is_percent", QuotaWindowFactory, {"remaining_percent": Decimal("100.00000001")}),
    ("window_remaining_is_percent", QuotaWindowFactory, {"remaining_percent": Decimal("-0.00000001")}),
    ("window_cutoff_is_percent", QuotaWindowFactory, {"exit_cutoff_percent": Decimal(101)}),
    ("window_cutoff_is_percent", QuotaWindowFactory, {"exit_cutoff_percent": Decimal(-1)}),
    ("window_unlimited_has_no_percent", QuotaWindowFactory, {"unlimited": True}),
    ("window_status_is_a_word", QuotaWindowFactory, {"status": "fine"}),
    ("window_combine_is_a_word", QuotaWindowFactory, {"combine": "sum"}),
    ("window_observed_and_received", QuotaWindowFactory, {"received_at": None}),
    ("window_observed_and_received", QuotaWindowFactory, {"observed_at": None}),
    ("reading_remaining_is_percent", QuotaReadingFactory, {"remaining_percent": Decimal(-1)}),
    ("reading_remaining_is_percent", QuotaReadingFactory, {"remaining_percent": Decimal(101)}),
    ("reading_status_is_a_word", QuotaReadingFactory, {"status": "fine"}),
    ("cooldown_model_is_not_blank", CooldownFactory, {"model": ""}),
    ("cooldown_cause_is_a_word", CooldownFactory, {"cause": "boredom"}),
    ("cooldown_is_never_lengthened", CooldownFactory, {"effective_until": NOW + timedelta(hours=3)}),
    ("breaker_has_provider", BreakerFactory, {"provider": ""}),
    ("usage_has_names", UsageEventFactory, {"event_id": ""}),
    ("usage_has_names", UsageEventFactory, {"model": ""}),
    ("usage_money_is_of_its_rung", UsageEventFactory, {"rung": "seventh", "money_kind": "other"}),
    ("usage_billing_is_a_class", UsageEventFactory, {"billing": "barter"}),
    ("usage_money_is_of_its_rung", UsageEventFactory, {"rung": "subscription"}),
    ("usage_money_is_of_its_rung", UsageEventFactory, {"money_kind": "plan"}),
    ("usage_cost_is_not_negative", UsageEventFactory, {"booked_cost": Decimal(-1)}),
    ("usage_cost_is_not_negative", UsageEventFactory, {"cost_usd": Decimal(-1)}),
    ("usage_original_is_booked_whole", UsageEventFactory, {"booked_usd": Decimal(0)}),
    ("usage_original_is_booked_whole", UsageEventFactory, {"booked_at": NOW + timedelta(days=1)}),
    ("usage_correction_names_its_original", UsageEventFactory, {"corrects_event_id": "e1"}),
    ("usage_tokens_are_not_negative", UsageEventFactory, {"output_tokens": -1}),
    ("hold_has_names", SpendHoldFactory, {"hold_id": ""}),
    ("hold_rung_is_a_word", SpendHoldFactory, {"rung": "seventh"}),
    ("hold_is_not_negative", SpendHoldFactory, {"amount_usd": Decimal(-1)}),
    ("hold_ends_after_its_start", SpendHoldFactory, {"expires_at": NOW}),
]


@pytest.mark.parametrize(("name", "factory", "fields"), IMPOSSIBLE)
def test_the_database_refuses_a_row_that_cannot_be(name, factory, fields):
    with pytest.raises(IntegrityError, match=name), transaction.atomic():
        factory(**fields)


def test_an_id_is_unique_among_live_connections_of_all_providers_spec_1():
    ConnectionFactory(connection_id="c1", provider="claude", deleted_at=NOW)
    ConnectionFactory(connection_id="c1", provider="claude")
    for provider in ("claude", "codex"):
        with pytest.raises(IntegrityError), transaction.atomic():
            ConnectionFactory(connection_id="c1", provider=provider)
    ConnectionFactory(connection_id="C1", provider="claude")


def test_noauth_is_one_per_provider_spec_1():
    for provider in ("groq", "pollinations"):
        ConnectionFactory(noauth=True, provider=provider)
    with pytest.raises(IntegrityError), transaction.atomic():
        ConnectionFactory(noauth=True, provider=" GROQ ")


def test_a_connection_has_one_window_of_a_name_and_a_window_one_reading_of_an_instant():
    window = QuotaWindowFactory(window="5h")
    QuotaWindowFactory(window="5h")
    QuotaReadingFactory(window=window, observed_at=NOW)
    with pytest.raises(IntegrityError), transaction.atomic():
        QuotaWindowFactory(connection=window.connection, window="5h")
    with pytest.raises(IntegrityError), transaction.atomic():
        QuotaReadingFactory(window=window, observed_at=NOW)


@pytest.mark.parametrize("model", [None, "opus"])
def test_one_cooldown_is_kept_per_connection_model_and_cause_c3(model):
    kept = CooldownFactory(model=model)
    CooldownFactory(connection=kept.connection, model=model, cause="auth")
    CooldownFactory(connection=kept.connection, model="haiku")
    with pytest.raises(IntegrityError), transaction.atomic():
        CooldownFactory(connection=kept.connection, model=model)


def test_a_cooldown_until_cleared_has_no_end_to_be_compared_c4():
    CooldownFactory(cause="auth", asked_until=None, effective_until=None)


def test_a_provider_has_one_breaker():
    BreakerFactory(provider="claude")
    with pytest.raises(IntegrityError), transaction.atomic():
        BreakerFactory(provider="Claude")


SETTINGS = [
    {"exit_cutoff_percent": -1},
    {"exit_cutoff_percent": 101},
    {"reentry_min_remaining_percent": -1},
    {"reentry_min_remaining_percent": 101},
    {"max_reading_age_seconds": 9},
    {"max_reading_age_seconds": 3601},
    {"id": 2},
]


@pytest.mark.parametrize("fields", SETTINGS)
def test_the_settings_are_one_row_within_bounds_spec_2(fields):
    with pytest.raises(IntegrityError), transaction.atomic():
        LadderSettings.objects.filter(pk=1).update(**fields)


BUDGETS = [
    {"rung": "free"},
    {"rung": "premium"},
    {"amount_usd": -1},
    {"period": "hourly"},
    {"week_starts_on": "someday"},
]


@pytest.mark.parametrize("fields", BUDGETS)
def test_a_budget_is_of_one_paid_rung_in_words_and_not_negative_m1_m3(fields):
    with pytest.raises(IntegrityError), transaction.atomic():
        RungBudget.objects.filter(rung="cheap").update(**fields)


def test_every_check_of_the_live_state_has_its_case_above():
    checked = {
        constraint.name
        for model in (
            models.Connection,
            models.QuotaWindow,
            models.QuotaReading,
            models.Cooldown,
            models.Breaker,
            models.UsageEvent,
            models.SpendHold,
        )
        for constraint in model._meta.constraints
        if constraint.__class__.__name__ == "CheckConstraint"
    }
    assert checked == {name for name, _, _ in IMPOSSIBLE}


def test_an_event_is_booked_once_spec_4():
    UsageEventFactory(event_id="e1")
    with pytest.raises(IntegrityError), transaction.atomic():
        UsageEventFactory(event_id="e1")


@pytest.mark.parametrize(
    "change",
    [
        lambda row: row.save(),
        lambda row: row.delete(),
        lambda row: models.UsageEvent.objects.filter(pk=row.pk).update(rung="premium"),
        lambda row: models.UsageEvent.objects.bulk_update([row], ["rung"]),
        lambda row: models.UsageEvent.objects.all().delete(),
    ],
)
def test_the_ledger_is_append_only_spec_3(change):
    row = UsageEventFactory()
    row.rung = "premium"
    with pytest.raises(LedgerIsAppendOnly):
        change(row)
    assert models.UsageEvent.objects.get().rung == "cheap"


def test_a_connection_with_usage_stays_in_the_books_spec_3():
    row = UsageEventFactory()
    with pytest.raises(ProtectedError):
        row.connection.delete()


def test_micro_dollars_are_summed_exactly_on_every_database():
    amounts = [Decimal("0.000001"), Decimal("999999.999999"), Decimal("0.1"), Decimal("0.2")]
    for amount in amounts:
        UsageEventFactory(booked_cost=amount)
    assert models.UsageEvent.objects.aggregate(total=Sum("booked_usd"))["total"] == Decimal("1000000.300000")
    assert models.UsageEvent.objects.filter(booked_usd=Decimal("0.1")).count() == 1
    with pytest.raises(ValidationError):
        UsageEventFactory(booked_cost=Decimal("0.0000001"))
