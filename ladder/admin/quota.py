"""The admin of quota windows and readings: telemetry's, but for the operator's part of a window."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from ladder.models import QuotaReading, QuotaWindow
from ladder.services.windows import OPERATOR_FIELDS, update_window
from omniroute_admin.common.admin_base import DecidingAdmin, NeitherAdded, NorDeleted, change_of


@admin.register(QuotaWindow)
class QuotaWindowAdmin(NeitherAdded, NorDeleted, DecidingAdmin):
    """Quota windows: muted or given a cutoff of their own; the rest is telemetry's."""

    reads = "connections:read"
    writes = "connections:write"
    list_display = [
        "connection",
        "window",
        "remaining_percent",
        "unlimited",
        "status",
        "reset_at",
        "observed_at",
        "is_muted",
        "exit_cutoff_percent",
        "is_reported",
    ]
    list_filter = ["status", "is_muted", "is_reported", "unlimited", "combine", "connection__provider"]
    list_select_related = ["connection"]
    search_fields = ["window", "model", "connection__connection_id", "connection__provider"]
    fields = [
        *[name for name in list_display if name not in OPERATOR_FIELDS],
        "received_at",
        "combine",
        "model",
        *OPERATOR_FIELDS,
    ]
    readonly_fields = [name for name in fields if name not in {"is_muted", "exit_cutoff_percent"}]

    def save_model(self, request: HttpRequest, obj: QuotaWindow, form: Any, change: bool) -> None:
        """Change the operator's part."""
        changes = {name: form.cleaned_data[name] for name in OPERATOR_FIELDS}
        update_window(window=obj, changes=changes, **change_of(request))


@admin.register(QuotaReading)
class QuotaReadingAdmin(NeitherAdded, NorDeleted, admin.ModelAdmin):
    """Readings, as they were reported; history itself, so it is only looked at."""

    reads = "connections:read"
    list_display = ["window", "observed_at", "received_at", "remaining_percent", "unlimited", "status", "reset_at"]
    list_filter = ["status", "unlimited", "observed_at", "window__connection__provider"]
    list_select_related = ["window__connection"]
    search_fields = ["window__window", "window__connection__connection_id", "window__connection__provider"]
    show_full_result_count = False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Tell that nobody changes one."""
        return False
