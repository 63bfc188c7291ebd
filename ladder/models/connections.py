"""Connections: who may be asked, and who stays in the books (SPEC 1, 3)."""

from django.db import models
from django.db.models import Q

from billing_catalog.choices import OVERAGE_CHOICES
from omniroute_admin.common.constraints import check, unique
from omniroute_admin.common.core.names import NOAUTH
from omniroute_admin.common.fields import AuthTypeField, ConnectionIdField, ProviderField, TextListField
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
