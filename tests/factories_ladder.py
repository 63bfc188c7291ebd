"""Factories of the ladder's rows. Instants stand around NOW; a test that needs others says so."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import factory

from ladder import models
from omniroute_admin.common.history import Actor

NOW = datetime(2026, 8, 22, 12, 0, tzinfo=UTC)
OPERATOR = Actor(name="a test operator")
REPORTER = Actor(name="a test reporter")


class ConnectionFactory(factory.django.DjangoModelFactory):
    class Meta:
        model = models.Connection

    connection_id = factory.Sequence(lambda number: f"c{number}")
    provider = "claude"
    auth_type = "oauth"
    created_at = NOW
    updated_at = NOW

    class Params:
        noauth = factory.Trait(connection_id="noauth", auth_type="none")


class QuotaWindowFactory(factory.django.DjangoModelFactory):
    class Meta:
        model = models.QuotaWindow

    connection = factory.SubFactory(ConnectionFactory)
    window = factory.Sequence(lambda number: f"window-{number}")
    remaining_percent = Decimal(50)
    observed_at = NOW
    received_at = NOW

    class Params:
        unread = factory.Trait(remaining_percent=None, observed_at=None, received_at=None)


class QuotaReadingFactory(factory.django.DjangoModelFactory):
    class Meta:
        model = models.QuotaReading

    window = factory.SubFactory(QuotaWindowFactory)
    observed_at = factory.Sequence(lambda number: NOW - timedelta(seconds=number + 1))
    received_at = NOW
    remaining_percent = Decimal(50)


class CooldownFactory(factory.django.DjangoModelFactory):
    class Meta:
        model = models.Cooldown

    connection = factory.SubFactory(ConnectionFactory)
    cause = "quota"
    asked_until = NOW + timedelta(hours=2)
    effective_until = NOW + timedelta(hours=1)
    set_by = "a test router"
    reported_at = NOW


class BreakerFactory(factory.django.DjangoModelFactory):
    class Meta:
        model = models.Breaker

    provider = factory.Sequence(lambda number: f"provider{number}")
    open_until = NOW + timedelta(minutes=5)
    reported_at = NOW


class RungFlipFactory(factory.django.DjangoModelFactory):
    class Meta:
        model = models.RungFlip

    at = NOW
    kind = "connection"
    connection = factory.SubFactory(ConnectionFactory)
    rung = "subscription"
    from_state = "usable"
    to_state = "stale"
    code = "quota_stale"
    cause = "time"
    revision = 1

    class Params:
        of_rung = factory.Trait(kind="rung", connection=None, from_state="idle", to_state="serving", code=None)


class RungSampleFactory(factory.django.DjangoModelFactory):
    class Meta:
        model = models.RungSample

    at = NOW
    rung = "cheap"
    usable = 1
    total = 2
    is_serving = False


class RefusalReportFactory(factory.django.DjangoModelFactory):
    class Meta:
        model = models.RefusalReport

    connection = factory.SubFactory(ConnectionFactory)
    cause = "rate_limit"
    occurred_at = factory.Sequence(lambda number: NOW - timedelta(seconds=number + 1))
    received_at = NOW
    is_counted = True


class UsageEventFactory(factory.django.DjangoModelFactory):
    class Meta:
        model = models.UsageEvent

    event_id = factory.Sequence(lambda number: f"event-{number}")
    connection = factory.SubFactory(ConnectionFactory)
    model = "claude-sonnet-4-5"
    occurred_at = NOW
    received_at = NOW
    rung = "cheap"
    billing = "metered"
    money_kind = "budget"
    booked_cost = Decimal("0.10")
    booked_at = factory.SelfAttribute("occurred_at")
    booked_usd = factory.SelfAttribute("booked_cost")


class SpendHoldFactory(factory.django.DjangoModelFactory):
    class Meta:
        model = models.SpendHold

    hold_id = factory.Sequence(lambda number: f"hold-{number}")
    connection = factory.SubFactory(ConnectionFactory)
    model = "claude-sonnet-4-5"
    rung = "cheap"
    amount_usd = Decimal("0.10")
    created_at = NOW
    expires_at = NOW + timedelta(minutes=5)


class AlertRuleFactory(factory.django.DjangoModelFactory):
    class Meta:
        model = models.AlertRule

    name = factory.Sequence(lambda number: f"rule {number}")
    looks_for = "pool_empty"
    subject = "auto/subscription"
    channels = factory.LazyFunction(lambda: ["hook"])
    created_at = NOW
    updated_at = NOW


class AlertFactory(factory.django.DjangoModelFactory):
    class Meta:
        model = models.Alert

    rule = factory.SubFactory(AlertRuleFactory)
    rule_name = factory.SelfAttribute("rule.name")
    kind = "pool_empty"
    subject = "auto/subscription"
    key = factory.Sequence(lambda number: f"{number}:pool_empty:auto/subscription")
    title = "auto/subscription is empty"
    text = "No plan that stops hard is verified usable."
    raised_at = NOW
    revision = 1


class AlertDeliveryFactory(factory.django.DjangoModelFactory):
    class Meta:
        model = models.AlertDelivery

    alert = factory.SubFactory(AlertFactory)
    rule = factory.SelfAttribute("alert.rule")
    rule_name = factory.SelfAttribute("alert.rule_name")
    channel = "hook"
    kind = "raised"
    state = "queued"
    at = NOW
    next_attempt_at = NOW


class LedgerSumFactory(factory.django.DjangoModelFactory):
    class Meta:
        model = models.LedgerSum

    connection = factory.SubFactory(ConnectionFactory)
    model = "claude-sonnet-4-5"
    rung = "cheap"
    money_kind = "budget"
    booked_at = NOW
    booked_usd = 2
    estimated_usd = 1
    folded_rows = 2
    folded_events = 2
    folded_estimates = 1
    last_at = NOW
