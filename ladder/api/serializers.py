"""How connections and windows look over HTTP (SPEC 4, Resources)."""

from rest_framework import serializers

from ladder.core.values import QuotaVerdict
from ladder.models import Connection, QuotaWindow
from omniroute_admin.common.serializers import StrictModelSerializer


class ConnectionSerializer(StrictModelSerializer):
    """One account at one provider; no credential is stored here."""

    class Meta:
        model = Connection
        fields = [
            "connection_id",
            "provider",
            "auth_type",
            "label",
            "is_enabled",
            "overage_override",
            "overage_override_reason",
            "excluded_models",
        ]


class WindowSerializer(StrictModelSerializer):
    """A quota window with its current reading; percent is percent remaining. Telemetry owns all but two fields."""

    is_held = serializers.BooleanField(read_only=True)
    verdict = serializers.ChoiceField([verdict.value for verdict in QuotaVerdict], read_only=True)

    class Meta:
        model = QuotaWindow
        fields = [
            "window",
            "remaining_percent",
            "unlimited",
            "status",
            "reset_at",
            "observed_at",
            "combine",
            "model",
            "is_muted",
            "exit_cutoff_percent",
            "is_held",
            "is_reported",
            "verdict",
        ]
        read_only_fields = [name for name in fields if name not in {"is_muted", "exit_cutoff_percent"}]
