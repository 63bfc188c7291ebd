"""Rows that both apps stand on: the revision, API keys, heartbeats."""

from django.db import models
from django.db.models import Q

from omniroute_admin.common.constraints import check
from omniroute_admin.common.fields import TextListField
from omniroute_admin.common.history import history


class Revision(models.Model):
    """The one counter that grows with every committed change that can alter a decision or a permission (SPEC 3).

    One row, id 1, made by the first migration. `shown` grows with every commit that moves no decision, yet changes what
    screens show beyond them (spend so far): their token.
    """

    value = models.BigIntegerField(default=1)
    shown = models.BigIntegerField(default=0)

    class Meta:
        constraints = [
            check(
                condition=Q(id=1),
                name="revision_is_one_row",
                fields=["id"],
                words="There is one revision.",
            )
        ]

    def __str__(self) -> str:
        return str(self.value)


class ApiKey(models.Model):
    """A key a router or tool calls the API with: shown once, kept as a hash (SPEC 4)."""

    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=16, help_text="The first characters, to tell keys apart; no secret.")
    secret_hash = models.CharField(max_length=64, unique=True, editable=False)
    scopes = TextListField(help_text="What the key may do, as in pools:read.")
    created_at = models.DateTimeField()
    made_by = models.CharField(max_length=200, blank=True, default="")
    expires_at = models.DateTimeField(null=True, blank=True, help_text="Empty: never.")
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    history = history(excluded_fields=["secret_hash", "last_used_at"])

    class Meta:
        ordering = ["-created_at", "-id"]
        verbose_name = "API key"
        constraints = [
            check(
                condition=~Q(name=""),
                name="key_has_name",
                fields=["name"],
                words="Give the key a name.",
            ),
            check(
                condition=~Q(secret_hash=""),
                name="key_has_hash",
                fields=["secret_hash"],
                words="A key is kept as a hash.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"


class Heartbeat(models.Model):
    """When a periodic process was last seen, so that a dead one is noticed."""

    name = models.CharField(max_length=50, unique=True)
    beat_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.name} at {self.beat_at:%Y-%m-%d %H:%M:%S}"
