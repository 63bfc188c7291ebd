"""Quota windows and the readings of them (SPEC 1, Q)."""

from django.db import models
from django.db.models import Q

from ladder.choices import COMBINE_CHOICES, STATUS_CHOICES
from ladder.models.connections import Connection
from omniroute_admin.common.constraints import check, unique
from omniroute_admin.common.fields import PercentField
from omniroute_admin.common.history import history


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
