"""What an operator tunes: settings of the decision, budgets of the paid rungs (SPEC 2)."""

from decimal import Decimal

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q

from ladder.choices import BUDGET_RUNG_CHOICES, PERIOD_CHOICES, WEEKDAY_CHOICES
from omniroute_admin.common.constraints import check
from omniroute_admin.common.fields import PercentField
from omniroute_admin.common.history import history


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
    traced_at = models.DateTimeField(
        null=True, editable=False, help_text="Until when the timeline has an image of it (see TimelineTrace)."
    )
    history = history(excluded_fields=["traced_at"])

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
