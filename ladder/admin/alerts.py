"""The admin of alerts: rules go through their service, what was raised and delivered is only looked at."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from ladder.models import Alert, AlertDelivery, AlertRule
from ladder.services.alert_rules import RULE_FIELDS, create_rule, delete_rule, update_rule
from omniroute_admin.common.admin_base import DecidingAdmin, OnlyRead, change_of


@admin.register(AlertRule)
class AlertRuleAdmin(DecidingAdmin):
    """Rules of alerts; the page Alerts asks for them in words."""

    reads = "settings:read"
    writes = "settings:write"
    list_display = ["name", "looks_for", "subject", "threshold", "channels", "for_seconds", "quiet_from", "is_enabled"]
    list_filter = ["looks_for", "is_enabled"]
    search_fields = ["name", "subject"]
    fields = ["looks_for", *RULE_FIELDS]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return what cannot be changed: a rule keeps its kind."""
        return [] if obj is None else ["looks_for"]

    def save_model(self, request: HttpRequest, obj: AlertRule, form: Any, change: bool) -> None:
        """Make or change the rule."""
        values = {name: form.cleaned_data[name] for name in RULE_FIELDS}
        values |= {name: values[name] or [] for name in ("channels", "quiet_days")}
        if change:
            row = update_rule(rule=obj, changes=values, **change_of(request))
        else:
            row = create_rule(kind=obj.looks_for, **values, **change_of(request))
        obj.__dict__.update(row.__dict__)

    def delete_model(self, request: HttpRequest, obj: AlertRule) -> None:
        """Delete the rule; what it raised stays."""
        delete_rule(rule=obj, **change_of(request))

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Return what goes with a deletion: nothing, what it raised stays in the log."""
        return [str(one) for one in objs], {self.opts.verbose_name_plural: len(objs)}, set(), []


@admin.register(Alert)
class AlertAdmin(OnlyRead):
    """What was raised, and when it was over."""

    reads = "settings:read"
    list_display = ["title", "kind", "subject", "rule_name", "raised_at", "resolved_at", "revision"]
    list_filter = ["kind", "raised_at", "resolved_at"]
    search_fields = ["title", "subject", "rule_name"]


@admin.register(AlertDelivery)
class AlertDeliveryAdmin(OnlyRead):
    """Every notice to every channel, and what became of it."""

    reads = "settings:read"
    list_display = ["at", "kind", "alert", "rule_name", "channel", "state", "attempts", "next_attempt_at", "last_error"]
    list_filter = ["state", "kind", "channel", "at"]
    list_select_related = ["alert"]
    search_fields = ["rule_name", "channel", "alert__title"]
