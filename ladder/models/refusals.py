"""Reports of refusals, kept so that one that comes twice, or late, is known again (C3 to C5)."""

from django.db import models
from django.db.models import Q

from ladder.choices import CAUSE_CHOICES
from ladder.models.connections import Connection
from omniroute_admin.common.constraints import check, unique


class RefusalReport(models.Model):
    """One report of a router that a provider refused it; the cooldown it set is in `Cooldown`.

    It is known by connection, model, cause and instant. Kept for a month, then no end it asked for can act.
    """

    connection = models.ForeignKey(Connection, on_delete=models.CASCADE, related_name="refusal_reports")
    model = models.CharField(max_length=200, null=True, blank=True, help_text="Empty: every model.")
    cause = models.CharField(max_length=10, choices=CAUSE_CHOICES)
    occurred_at = models.DateTimeField()
    received_at = models.DateTimeField()
    is_counted = models.BooleanField(help_text="It gave no length: reports in a row are counted (C4).")
    asked_until = models.DateTimeField(null=True, help_text="The end it gave itself; empty: none.")

    reset_at = models.DateTimeField(null=True, help_text="The reset it named (C1).")
    is_reset_unreadable = models.BooleanField(default=False)
    window = models.CharField(max_length=100, null=True, blank=True, help_text="The window it named (C1).")

    class Meta:
        ordering = ["connection", "-occurred_at"]
        indexes = [
            models.Index(fields=["connection", "occurred_at"], name="refusal_by_connection"),
            models.Index(fields=["occurred_at"], name="refusal_by_instant"),
        ]
        constraints = [
            unique(
                fields=["connection", "model", "cause", "occurred_at"],
                condition=Q(model__isnull=False),
                name="refusal_one_per_model",
                words="This report is kept already.",
            ),
            unique(
                fields=["connection", "cause", "occurred_at"],
                condition=Q(model__isnull=True),
                name="refusal_one_for_all_models",
                words="This report is kept already.",
                about=["connection", "model", "cause", "occurred_at"],
            ),
            check(
                condition=~Q(model=""),
                name="refusal_model_is_not_blank",
                fields=["model"],
                words="Give a model, or null for every one.",
            ),
            check(
                condition=Q(cause__in=["quota", "rate_limit", "auth", "ban"]),
                name="refusal_cause_is_a_routers",
                fields=["cause"],
                words="Expected one of: quota, rate_limit, auth, ban.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.connection} {self.cause} at {self.occurred_at:%Y-%m-%d %H:%M:%S}"
