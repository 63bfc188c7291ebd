"""What keeps connections and providers out for a while: cooldowns and breakers (C)."""

from django.db import models
from django.db.models import F, Q

from ladder.choices import CAUSE_CHOICES
from ladder.models.connections import Connection
from omniroute_admin.common.constraints import check, unique
from omniroute_admin.common.fields import ProviderField
from omniroute_admin.common.history import history


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
