"""Alerts: the rules, what they raised and resolved, and every delivery. Nothing here decides anything."""

import uuid

from django.core.validators import MaxValueValidator
from django.db import models
from django.db.models import F, Q

from ladder.choices import ALERT_KIND_CHOICES, DELIVERY_STATE_CHOICES, NOTICE_CHOICES
from omniroute_admin.common.constraints import check, unique
from omniroute_admin.common.fields import TextListField
from omniroute_admin.common.history import history

LONGEST_HOLD = 24 * 3600
"""Most seconds that a rule waits before a change counts."""


class AlertRule(models.Model):
    """What operators are to hear of, by which channels, and when not."""

    name = models.CharField(max_length=100)
    looks_for = models.CharField(max_length=14, choices=ALERT_KIND_CHOICES)
    subject = models.CharField(max_length=257, blank=True, default="", help_text="What of the kind; empty: all of it.")
    threshold = models.PositiveIntegerField(null=True, blank=True, help_text="In the unit of the kind, if it has one.")
    channels = TextListField(help_text="Names of channels that the environment names.")
    for_seconds = models.PositiveIntegerField(
        default=0, validators=[MaxValueValidator(LONGEST_HOLD)], help_text="A change counts once it lasted so long."
    )
    quiet_from = models.TimeField(null=True, blank=True)
    quiet_to = models.TimeField(null=True, blank=True)
    quiet_zone = models.CharField(max_length=64, default="UTC", help_text="IANA name, as in Europe/Berlin.")
    quiet_days = TextListField(help_text="Days on which the quiet hours begin; empty: every day.")
    is_enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(editable=False)
    updated_at = models.DateTimeField(editable=False)
    history = history(excluded_fields=["created_at", "updated_at"])

    class Meta:
        ordering = ["name", "id"]
        constraints = [
            check(
                condition=~Q(name=""),
                name="alert_rule_has_name",
                fields=["name"],
                words="Give the rule a name.",
            ),
            check(
                condition=Q(looks_for__in=[word for word, _ in ALERT_KIND_CHOICES]),
                name="alert_rule_looks_for_a_kind",
                fields=["looks_for"],
                words=f"Expected one of: {', '.join(word for word, _ in ALERT_KIND_CHOICES)}.",
            ),
            check(
                condition=Q(quiet_from__isnull=True, quiet_to__isnull=True)
                | Q(quiet_from__isnull=False, quiet_to__isnull=False),
                name="alert_rule_quiet_has_both_ends",
                fields=["quiet_from", "quiet_to"],
                words="Quiet hours have a beginning and an end.",
            ),
            check(
                condition=Q(for_seconds__lte=LONGEST_HOLD),
                name="alert_rule_hold_is_in_range",
                fields=["for_seconds"],
                words=f"Expected 0 to {LONGEST_HOLD} seconds.",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Alert(models.Model):
    """A condition that was raised, and resolved once it was over. Open, there is one of it."""

    rule = models.ForeignKey(AlertRule, on_delete=models.SET_NULL, null=True, related_name="alerts")
    rule_name = models.CharField(max_length=100)
    kind = models.CharField(max_length=14, choices=ALERT_KIND_CHOICES)
    subject = models.CharField(max_length=300)
    key = models.CharField(max_length=350, help_text="Rule, kind and subject: what tells a condition from all others.")
    title = models.CharField(max_length=500)
    text = models.TextField()
    resolved_text = models.TextField(blank=True, default="")
    page = models.CharField(max_length=700, blank=True, default="", help_text="Path of the page to look at.")
    raised_at = models.DateTimeField(db_index=True)
    resolved_at = models.DateTimeField(null=True, blank=True)
    revision = models.BigIntegerField(help_text="The one at which it was found.")

    class Meta:
        ordering = ["-raised_at", "-id"]
        constraints = [
            unique(
                fields=["key"],
                condition=Q(resolved_at__isnull=True),
                name="alert_once_while_open",
                words="This condition is raised already.",
            ),
            check(
                condition=Q(resolved_at__isnull=True) | Q(resolved_at__gte=F("raised_at")),
                name="alert_ends_after_it_began",
                fields=["resolved_at"],
                words="An alert is not resolved before it was raised.",
            ),
        ]

    def __str__(self) -> str:
        return self.title


class AlertDelivery(models.Model):
    """One notice to one channel. It is written with what it tells of, so that no process that dies loses it.

    It is due from `next_attempt_at` on, while it is queued, failed or held for quiet hours. An attempt moves that
    instant ahead first: one that is not heard of is made again then.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    alert = models.ForeignKey(Alert, on_delete=models.CASCADE, null=True, related_name="deliveries")
    rule = models.ForeignKey(AlertRule, on_delete=models.SET_NULL, null=True, related_name="deliveries")
    rule_name = models.CharField(max_length=100)
    channel = models.CharField(max_length=40)
    kind = models.CharField(max_length=8, choices=NOTICE_CHOICES)
    state = models.CharField(max_length=14, choices=DELIVERY_STATE_CHOICES)
    attempts = models.PositiveIntegerField(default=0)
    at = models.DateTimeField(db_index=True, help_text="When it was written.")
    next_attempt_at = models.DateTimeField(null=True, blank=True)
    sent_at = models.DateTimeField(null=True, blank=True)
    was_held = models.BooleanField(default=False, help_text="It waited for quiet hours to end.")
    last_error = models.CharField(max_length=300, blank=True, default="")
    asked_by = models.CharField(max_length=200, blank=True, default="", help_text="Who asked for a test.")

    class Meta:
        ordering = ["-at", "-id"]
        verbose_name_plural = "alert deliveries"
        indexes = [
            models.Index(
                fields=["next_attempt_at"], condition=Q(next_attempt_at__isnull=False), name="alert_delivery_due"
            )
        ]
        constraints = [
            unique(
                fields=["alert", "channel", "kind"],
                condition=Q(alert__isnull=False),
                name="alert_delivered_once_a_channel",
                words="This notice is on its way to that channel already.",
            ),
            check(
                condition=Q(alert__isnull=False) ^ Q(kind="test"),
                name="alert_delivery_is_of_an_alert_or_a_test",
                fields=["alert", "kind"],
                words="A test is of no alert, and everything else is of one.",
            ),
            check(
                condition=Q(state__in=[word for word, _ in DELIVERY_STATE_CHOICES]),
                name="alert_delivery_state_is_a_word",
                fields=["state"],
                words=f"Expected one of: {', '.join(word for word, _ in DELIVERY_STATE_CHOICES)}.",
            ),
            check(
                condition=Q(state__in=["queued", "failed", "held_for_quiet"], next_attempt_at__isnull=False)
                | (~Q(state__in=["queued", "failed", "held_for_quiet"]) & Q(next_attempt_at__isnull=True)),
                name="alert_delivery_under_way_has_its_time",
                fields=["state", "next_attempt_at"],
                words="What is under way has a time for its next attempt, and what is done has none.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} by {self.rule_name} to {self.channel}: {self.state}"


class AlertLook(models.Model):
    """How the looks for alerts stand. One row, id 1, made by the first look.

    A look writes only if `version` is still what it read, so that of many processes one writes a change.
    """

    version = models.BigIntegerField(default=1)
    at = models.DateTimeField(help_text="The last look that wrote something.")
    differing = models.JSONField(help_text="Since when conditions are not as they were told, by key.")

    class Meta:
        constraints = [
            check(
                condition=Q(id=1),
                name="alert_look_is_one_row",
                fields=["id"],
                words="There is one row of looks.",
            )
        ]

    def __str__(self) -> str:
        return f"alerts up to {self.at:%Y-%m-%d %H:%M:%S}"
