"""The live state of SPEC 3: connections, their quota windows and readings, cooldowns, settings, budgets."""

from decimal import Decimal

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q

from billing_catalog.choices import OVERAGE_CHOICES
from ladder.choices import (
    BUDGET_RUNG_CHOICES,
    CAUSE_CHOICES,
    COMBINE_CHOICES,
    PERIOD_CHOICES,
    STATUS_CHOICES,
    WEEKDAY_CHOICES,
)
from omniroute_admin.common.constraints import check, unique
from omniroute_admin.common.core.names import NOAUTH
from omniroute_admin.common.fields import AuthTypeField, ConnectionIdField, PercentField, ProviderField, TextListField
from omniroute_admin.common.history import history

LIVE = Q(deleted_at__isnull=True)


class ConnectionQuerySet(models.QuerySet["Connection"]):
    """Ways to look at connections."""

    def live(self) -> "ConnectionQuerySet":
        """Return those that were not deleted: deleting takes out of routing, not out of the books (SPEC 3)."""
        return self.filter(LIVE)


class Connection(models.Model):
    """One account at one provider. No credential is ever stored here (SPEC 1)."""

    connection_id = ConnectionIdField()
    provider = ProviderField()
    auth_type = AuthTypeField()
    label = models.CharField(max_length=200, blank=True, default="")
    is_enabled = models.BooleanField(default=True)
    overage_override = models.CharField(max_length=14, choices=OVERAGE_CHOICES, null=True, blank=True)
    overage_override_reason = models.TextField(blank=True, default="")
    excluded_models = TextListField(help_text="Globs of models this connection must not serve.")
    is_implied = models.BooleanField(
        default=False,
        editable=False,
        help_text="A keyless path that nobody stored, of which only telemetry speaks: known, but in no stored pool.",
    )
    created_at = models.DateTimeField(editable=False)
    updated_at = models.DateTimeField(editable=False)
    deleted_at = models.DateTimeField(null=True, blank=True, editable=False)
    history = history()

    objects = ConnectionQuerySet.as_manager()

    class Meta:
        ordering = ["provider", "connection_id", "id"]
        constraints = [
            unique(
                fields=["provider", "connection_id"],
                condition=LIVE,
                name="connection_one_per_provider",
                words="This provider has a connection of that id already.",
            ),
            unique(
                fields=["connection_id"],
                condition=LIVE & ~Q(connection_id=NOAUTH),
                name="connection_one_per_id",
                words="Another provider has a connection of that id already.",
            ),
            check(
                condition=~Q(provider="") & ~Q(connection_id=""),
                name="connection_has_names",
                fields=["connection_id", "provider"],
                words="Name both the connection and its provider.",
            ),
            check(
                condition=~Q(connection_id=NOAUTH) | (Q(auth_type="none") & Q(auth_type__isnull=False)),
                name="connection_noauth_is_none",
                fields=["auth_type"],
                words="The connection noauth has the auth type none.",
            ),
            check(
                condition=Q(is_implied=False) | Q(connection_id=NOAUTH),
                name="connection_implied_is_noauth",
                fields=["connection_id"],
                words="Only noauth is known without being stored.",
            ),
            check(
                condition=Q(overage_override__isnull=True)
                | Q(overage_override__in=[word for word, _ in OVERAGE_CHOICES]),
                name="connection_override_is_a_word",
                fields=["overage_override"],
                words="Expected one of: hard-stop, meters-to-paid, unknown; or null.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.provider}/{self.connection_id}"


class QuotaWindow(models.Model):
    """The current state of one limit of one connection (SPEC 1, Q).

    Telemetry keeps the observed part; `is_muted` and `exit_cutoff_percent` belong to the operator.
    """

    connection = models.ForeignKey(Connection, on_delete=models.CASCADE, related_name="windows")
    window = models.CharField(max_length=100)
    remaining_percent = PercentField(null=True, blank=True)
    unlimited = models.BooleanField(default=False)
    status = models.CharField(max_length=9, choices=STATUS_CHOICES, default="safe")
    reset_at = models.DateTimeField(null=True, blank=True)
    observed_at = models.DateTimeField(null=True, blank=True, help_text="Empty: no reading yet.")
    received_at = models.DateTimeField(null=True, blank=True)
    combine = models.CharField(max_length=5, choices=COMBINE_CHOICES, default="limit")
    model = models.CharField(max_length=200, null=True, blank=True, help_text="Glob; empty: counts for every model.")
    is_muted = models.BooleanField(default=False)
    exit_cutoff_percent = PercentField(null=True, blank=True)
    is_reported = models.BooleanField(default=True)
    # Q6: two instants that only ever grow make "no longer reported" the same whatever order the bodies arrive in.
    named_at = models.DateTimeField(null=True, editable=False, help_text="Newest complete list that named it.")
    missing_at = models.DateTimeField(null=True, editable=False, help_text="Newest complete list that did not.")
    history = history(excluded_fields=["received_at", "named_at", "missing_at"])

    class Meta:
        ordering = ["connection", "window"]
        constraints = [
            unique(
                fields=["connection", "window"],
                name="window_one_per_connection",
                words="This connection has a window of that name already.",
            ),
            check(
                condition=~Q(window=""),
                name="window_has_name",
                fields=["window"],
                words="Name the window.",
            ),
            check(
                condition=~Q(model=""),
                name="window_model_is_not_blank",
                fields=["model"],
                words="Give a model, or null for every one.",
            ),
            check(
                condition=Q(remaining_percent__isnull=True) | Q(remaining_percent__range=(0, 100)),
                name="window_remaining_is_percent",
                fields=["remaining_percent"],
                words="Expected a percentage from 0 to 100.",
            ),
            check(
                condition=Q(exit_cutoff_percent__isnull=True) | Q(exit_cutoff_percent__range=(0, 100)),
                name="window_cutoff_is_percent",
                fields=["exit_cutoff_percent"],
                words="Expected a percentage from 0 to 100.",
            ),
            check(
                condition=~Q(unlimited=True) | Q(remaining_percent__isnull=True),
                name="window_unlimited_has_no_percent",
                fields=["unlimited", "remaining_percent"],
                words="What is unlimited has no percentage that remains.",
            ),
            check(
                condition=Q(status__in=[word for word, _ in STATUS_CHOICES]),
                name="window_status_is_a_word",
                fields=["status"],
                words="Expected one of: safe, exhausted, unknown.",
            ),
            check(
                condition=Q(combine__in=[word for word, _ in COMBINE_CHOICES]),
                name="window_combine_is_a_word",
                fields=["combine"],
                words="Expected one of: limit, pool.",
            ),
            check(
                condition=Q(observed_at__isnull=True, received_at__isnull=True)
                | Q(observed_at__isnull=False, received_at__isnull=False),
                name="window_observed_and_received",
                fields=["observed_at", "received_at"],
                words="What was observed was received too, and the other way round.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.connection} {self.window}"


class QuotaReading(models.Model):
    """One observation of a quota window, kept as history; the newest `observed_at` is current (SPEC 4).

    Several at one instant are one row: the lower counts.
    """

    window = models.ForeignKey(QuotaWindow, on_delete=models.CASCADE, related_name="readings")
    observed_at = models.DateTimeField()
    received_at = models.DateTimeField()
    remaining_percent = PercentField(null=True)
    unlimited = models.BooleanField(default=False)
    status = models.CharField(max_length=9, choices=STATUS_CHOICES, default="safe")
    reset_at = models.DateTimeField(null=True)
    raw = models.CharField(max_length=200, blank=True, default="", help_text="The number as it was sent.")

    class Meta:
        ordering = ["window", "-observed_at"]
        constraints = [
            unique(
                fields=["window", "observed_at"],
                name="reading_one_per_instant",
                words="This window has a reading of that instant already.",
            ),
            check(
                condition=Q(remaining_percent__isnull=True) | Q(remaining_percent__range=(0, 100)),
                name="reading_remaining_is_percent",
                fields=["remaining_percent"],
                words="Expected a percentage from 0 to 100.",
            ),
            check(
                condition=Q(status__in=[word for word, _ in STATUS_CHOICES]),
                name="reading_status_is_a_word",
                fields=["status"],
                words="Expected one of: safe, exhausted, unknown.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.window} at {self.observed_at:%Y-%m-%d %H:%M:%S}"


class Cooldown(models.Model):
    """Until when a connection, or one model of it, is out, and why (C1 to C5).

    Both instants are kept: what was asked, and what acts after the clamp. Null is "until cleared".
    """

    connection = models.ForeignKey(Connection, on_delete=models.CASCADE, related_name="cooldowns")
    model = models.CharField(max_length=200, null=True, blank=True, help_text="Empty: every model.")
    cause = models.CharField(max_length=10, choices=CAUSE_CHOICES)
    asked_until = models.DateTimeField(null=True, blank=True)
    effective_until = models.DateTimeField(null=True, blank=True)
    set_by = models.CharField(max_length=200, default="", blank=True)
    origin = models.CharField(max_length=300, default="", blank=True, help_text="The report it came from, in words.")
    reported_at = models.DateTimeField()
    failure_count = models.PositiveIntegerField(default=1)
    history = history()

    class Meta:
        ordering = ["connection", "-reported_at"]
        constraints = [
            unique(
                fields=["connection", "model", "cause"],
                condition=Q(model__isnull=False),
                name="cooldown_one_per_model",
                words="This connection has a cooldown of that model and cause already.",
            ),
            unique(
                fields=["connection", "cause"],
                condition=Q(model__isnull=True),
                name="cooldown_one_for_all_models",
                words="This connection has a cooldown of that cause for every model already.",
                about=["connection", "model", "cause"],
            ),
            check(
                condition=~Q(model=""),
                name="cooldown_model_is_not_blank",
                fields=["model"],
                words="Give a model, or null for every one.",
            ),
            check(
                condition=Q(cause__in=[word for word, _ in CAUSE_CHOICES]),
                name="cooldown_cause_is_a_word",
                fields=["cause"],
                words="Expected one of: quota, rate_limit, auth, ban, operator.",
            ),
            check(
                condition=Q(asked_until__isnull=True) | Q(effective_until__lte=F("asked_until")),
                name="cooldown_is_never_lengthened",
                fields=["effective_until"],
                words="A cooldown acts no longer than was asked for (asked_until).",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.connection} {self.cause}"


class Breaker(models.Model):
    """A provider's circuit breaker: open until an instant; past it, or null, it is closed (C)."""

    provider = ProviderField(unique=True)
    open_until = models.DateTimeField(null=True, blank=True)
    reported_at = models.DateTimeField()
    history = history()

    class Meta:
        ordering = ["provider"]
        constraints = [
            check(
                condition=~Q(provider=""),
                name="breaker_has_provider",
                fields=["provider"],
                words="Name the provider.",
            )
        ]

    def __str__(self) -> str:
        return self.provider


class LadderSettings(models.Model):
    """The settings of the decision (SPEC 2, Settings). One row, id 1."""

    exit_cutoff_percent = PercentField(default=Decimal(2))
    reentry_min_remaining_percent = PercentField(default=Decimal(5))
    max_reading_age_seconds = models.PositiveIntegerField(
        default=180, validators=[MinValueValidator(10), MaxValueValidator(3600)]
    )
    history = history()

    class Meta:
        verbose_name_plural = "ladder settings"
        constraints = [
            check(
                condition=Q(id=1),
                name="settings_are_one_row",
                fields=["id"],
                words="There is one row of settings.",
            ),
            check(
                condition=Q(exit_cutoff_percent__range=(0, 100)) & Q(reentry_min_remaining_percent__range=(0, 100)),
                name="settings_are_percent",
                fields=["exit_cutoff_percent", "reentry_min_remaining_percent"],
                words="Expected percentages from 0 to 100.",
            ),
            check(
                condition=Q(max_reading_age_seconds__range=(10, 3600)),
                name="settings_age_is_in_range",
                fields=["max_reading_age_seconds"],
                words="Expected 10 to 3600 seconds.",
            ),
        ]

    def __str__(self) -> str:
        return "ladder settings"


class RungBudget(models.Model):
    """What a paid rung may spend in one window (M1 to M4). Null: no limit. Zero: off."""

    rung = models.CharField(max_length=8, choices=BUDGET_RUNG_CHOICES, unique=True)
    amount_usd = models.DecimalField(max_digits=15, decimal_places=6, null=True, blank=True)
    period = models.CharField(max_length=7, choices=PERIOD_CHOICES, default="daily")
    week_starts_on = models.CharField(max_length=9, choices=WEEKDAY_CHOICES, default="monday")
    zone = models.CharField(max_length=64, default="UTC", help_text="IANA name, as in Europe/Berlin.")
    counted_from = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="Instant of the last reset: the count starts there (M9)."
    )
    history = history()

    class Meta:
        ordering = ["rung"]
        constraints = [
            check(
                condition=Q(rung__in=["cheap", "premium"]),
                name="budget_is_of_a_paid_rung",
                fields=["rung"],
                words="Expected one of: cheap, premium.",
            ),
            check(
                condition=Q(amount_usd__isnull=True) | Q(amount_usd__gte=0),
                name="budget_is_not_negative",
                fields=["amount_usd"],
                words="A budget is not negative; null is no limit.",
            ),
            check(
                condition=Q(period__in=[word for word, _ in PERIOD_CHOICES]),
                name="budget_period_is_a_word",
                fields=["period"],
                words="Expected one of: daily, weekly, monthly.",
            ),
            check(
                condition=Q(week_starts_on__in=[word for word, _ in WEEKDAY_CHOICES]),
                name="budget_weekday_is_a_word",
                fields=["week_starts_on"],
                words="Expected a day of the week, as in monday.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.rung} budget"


from ladder.models_timeline import RungFlip, RungSample, TimelineCursor  # noqa: E402, F401 - one place for all models
