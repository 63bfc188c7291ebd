"""SPEC 3: what must not be in the live state cannot get in past the services either."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import IntegrityError, transaction

from ladder import models
from ladder.models import LadderSettings, RungBudget
from tests.factories import (
    BreakerFactory,
    ConnectionFactory,
    CooldownFactory,
    QuotaReadingFactory,
    QuotaWindowFactory,
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
        )
        for constraint in model._meta.constraints
        if constraint.__class__.__name__ == "CheckConstraint"
    }
    assert checked == {name for name, _, _ in IMPOSSIBLE}
