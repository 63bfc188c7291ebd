"""The admin of the ladder's rows: what telemetry owns is shown, what is the operator's goes through the services."""

from datetime import datetime
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest

from ladder.core.values import CooldownCause
from ladder.models import (
    Breaker,
    Connection,
    Cooldown,
    LadderSettings,
    QuotaReading,
    QuotaWindow,
    RefusalReport,
    RungBudget,
    SpendHold,
    UsageEvent,
)
from ladder.services.connections import check_override, create_connection, delete_connection, update_connection
from ladder.services.cooldowns import clear_cooldown, set_cooldown
from ladder.services.settings import (
    BudgetChanges,
    BudgetsChanges,
    SettingsChanges,
    is_zone,
    update_settings,
)
from ladder.services.windows import OPERATOR_FIELDS, update_window
from omniroute_admin.common import clock
from omniroute_admin.common.admin_base import DecidingAdmin, NeitherAdded, NorDeleted, OnlyRead, ReasonForm, change_of

_CONNECTION_FIELDS = (
    "connection_id",
    "provider",
    "auth_type",
    "label",
    "is_enabled",
    "overage_override",
    "overage_override_reason",
    "excluded_models",
)


class ConnectionForm(ReasonForm):
    """A connection, its override checked where it can be mended (B4)."""

    def _post_clean(self) -> None:
        super()._post_clean()  # type: ignore[misc]
        try:
            check_override(self.instance, reason=self.cleaned_data.get("change_reason", ""))
        except ValidationError as error:
            self.add_error(None, error)


class DeletedFilter(admin.SimpleListFilter):
    """Connections by whether they are in routing, or only in the books."""

    title = "place"
    parameter_name = "place"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the places."""
        return [("routing", "in routing"), ("books", "only in the books")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Connection]) -> QuerySet[Connection]:
        """Return the connections of the place."""
        places = {"routing": {"deleted_at__isnull": True}, "books": {"deleted_at__isnull": False}}
        return queryset.filter(**places.get(self.value() or "", {}))


@admin.register(Connection)
class ConnectionAdmin(DecidingAdmin):
    """Connections; a deleted one stays in the books and is only looked at."""

    reads = "connections:read"
    writes = "connections:write"
    form = ConnectionForm
    list_display = ["connection_id", "provider", "auth_type", "label", "is_enabled", "overage_override", "deleted_at"]
    list_filter = [DeletedFilter, "is_enabled", "is_implied", "overage_override", "auth_type", "provider"]
    search_fields = ["connection_id", "provider", "label"]
    readonly_fields = ["is_implied", "created_at", "updated_at", "deleted_at"]
    fields = [*_CONNECTION_FIELDS, *readonly_fields]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return what cannot be changed: a stored connection keeps its id and provider."""
        return self.readonly_fields if obj is None else ["connection_id", "provider", *self.readonly_fields]

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Tell that a deleted connection is only looked at."""
        return super().has_change_permission(request, obj) and (obj is None or obj.deleted_at is None)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Tell that a connection is deleted once."""
        return super().has_delete_permission(request, obj) and (obj is None or obj.deleted_at is None)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Return what goes with a deletion: nothing, the rest stays in the books."""
        return [str(one) for one in objs], {self.opts.verbose_name_plural: len(objs)}, set(), []

    def save_model(self, request: HttpRequest, obj: Connection, form: Any, change: bool) -> None:
        """Store or change the connection."""
        values = {name: form.cleaned_data[name] for name in _CONNECTION_FIELDS if name in form.cleaned_data}
        values["excluded_models"] = values["excluded_models"] or []
        if change:
            row = update_connection(connection=obj, changes=values, **change_of(request))
        else:
            row = create_connection(**values, **change_of(request))
        obj.__dict__.update(row.__dict__)

    def delete_model(self, request: HttpRequest, obj: Connection) -> None:
        """Take the connection out of routing."""
        delete_connection(connection=obj, **change_of(request))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Connection]) -> None:
        """Take the connections out of routing; those that are out stay as they are."""
        super().delete_queryset(request, queryset.filter(deleted_at__isnull=True))


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


@admin.register(RefusalReport)
class RefusalReportAdmin(NeitherAdded, NorDeleted, admin.ModelAdmin):
    """Refusals, as they were reported; history itself, so it is only looked at."""

    reads = "connections:read"
    list_display = ["connection", "model", "cause", "occurred_at", "received_at", "asked_until", "is_counted"]
    list_filter = ["cause", "occurred_at", "connection__provider"]
    list_select_related = ["connection"]
    search_fields = ["connection__connection_id", "connection__provider", "model"]
    show_full_result_count = False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Tell that nobody changes one."""
        return False


class CooldownForm(ReasonForm):
    """A cooldown that an operator sets; that one stands already is the service's work, not an error (C5)."""

    model = forms.CharField(required=False, max_length=200, empty_value=None, help_text="Empty: every model.")

    def clean_effective_until(self) -> datetime | None:
        """Return the end; None is "until cleared".

        Raises:
            ValidationError: it has passed.
        """
        until: datetime | None = self.cleaned_data["effective_until"]
        if until is not None and until <= clock.now():
            raise ValidationError("This time has passed: a cooldown ends in the future. Leave it empty: until cleared.")
        return until

    def _get_validation_exclusions(self) -> set[str]:
        # A constraint that looks at an excluded field is left to the service; the form checks the cause's words itself.
        return {*super()._get_validation_exclusions(), "cause"}  # type: ignore[misc]


@admin.register(Cooldown)
class CooldownAdmin(DecidingAdmin):
    """Cooldowns: set and cleared (C3); what was set is not rewritten."""

    reads = "connections:read"
    writes = "connections:write"
    form = CooldownForm
    list_display = ["connection", "model", "cause", "asked_until", "effective_until", "set_by", "reported_at"]
    list_filter = ["cause", "effective_until", "connection__provider"]
    list_select_related = ["connection"]
    search_fields = ["connection__connection_id", "connection__provider", "model", "set_by", "origin"]
    fields = ["connection", "model", "cause", "effective_until"]
    raw_id_fields = ["connection"]

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return what is asked of a new cooldown, or all there is to see of one that is set."""
        return self.fields if obj is None else [*self.list_display, "origin", "failure_count"]

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Tell that a cooldown that is set is looked at or cleared."""
        return obj is None and super().has_change_permission(request)

    def save_model(self, request: HttpRequest, obj: Cooldown, form: Any, change: bool) -> None:
        """Set the cooldown; one that acts already is extended and not shortened (C5)."""
        by = change_of(request)
        until = form.cleaned_data["effective_until"]
        row = set_cooldown(
            connection=obj.connection,
            model=form.cleaned_data["model"],
            cause=CooldownCause(obj.cause),
            asked_until=until,
            effective_until=until,
            set_by=by["actor"].name,
            origin="set in the admin",
            reported_at=by["now"],
            failure_count=1,
            **by,
        )
        obj.__dict__.update(row.__dict__)
        if row.effective_until != until:
            end = "it is cleared" if row.effective_until is None else f"{row.effective_until:%Y-%m-%d %H:%M:%S} UTC"
            messages.warning(request, f"One that lasts longer stands, until {end}; clear it to set a shorter one.")

    def delete_model(self, request: HttpRequest, obj: Cooldown) -> None:
        """Clear the cooldown."""
        clear_cooldown(cooldown=obj, **change_of(request))


@admin.register(Breaker)
class BreakerAdmin(DecidingAdmin):
    """Breakers of providers, as routers reported them; an operator may close one."""

    reads = "connections:read"
    writes = "connections:write"
    list_display = ["provider", "open_until", "reported_at"]
    list_filter = ["open_until", "reported_at"]
    search_fields = ["provider"]
    fields = ["provider", "open_until", "reported_at"]
    readonly_fields = ["reported_at"]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return what cannot be changed: whose breaker it is."""
        return self.readonly_fields if obj is None else ["provider", *self.readonly_fields]

    def save_model(self, request: HttpRequest, obj: Breaker, form: Any, change: bool) -> None:
        """Keep when it was said."""
        obj.reported_at = change_of(request)["now"]
        super().save_model(request, obj, form, change)


@admin.register(LadderSettings)
class LadderSettingsAdmin(NeitherAdded, NorDeleted, DecidingAdmin):
    """The settings of the decision: one row."""

    reads = "settings:read"
    writes = "settings:write"
    list_display = ["__str__", "exit_cutoff_percent", "reentry_min_remaining_percent", "max_reading_age_seconds"]
    fields = ["exit_cutoff_percent", "reentry_min_remaining_percent", "max_reading_age_seconds"]

    def save_model(self, request: HttpRequest, obj: LadderSettings, form: Any, change: bool) -> None:
        """Change the settings."""
        values = {name: form.cleaned_data[name] for name in self.fields}
        update_settings(changes=SettingsChanges(**values), **change_of(request))


class BudgetForm(ReasonForm):
    """A rung's budget; the zone is one that there is (M3)."""

    def clean_zone(self) -> str:
        """Return the zone.

        Raises:
            ValidationError: no IANA zone has that name.
        """
        zone: str = self.cleaned_data["zone"]
        if not is_zone(zone):
            raise ValidationError("Give an IANA zone, as in Europe/Berlin.")
        return zone


@admin.register(RungBudget)
class RungBudgetAdmin(NeitherAdded, NorDeleted, DecidingAdmin):
    """The budgets of the paid rungs: 0 is off, empty is no limit (M1)."""

    reads = "settings:read"
    writes = "settings:write"
    form = BudgetForm
    list_display = ["rung", "amount_in_words", "period", "week_starts_on", "zone", "counted_from"]
    list_filter = ["period", "zone"]
    search_fields = ["rung", "zone"]
    fields = ["rung", "amount_usd", "period", "week_starts_on", "zone", "counted_from"]
    readonly_fields = ["rung", "counted_from"]

    @admin.display(description="amount", ordering="amount_usd")
    def amount_in_words(self, budget: RungBudget) -> str:
        """Return the amount; "off" and "no limit" are words on every screen (M1)."""
        if budget.amount_usd is None:
            return "no limit"
        return f"${budget.amount_usd.normalize():f}" if budget.amount_usd else "off"

    def save_model(self, request: HttpRequest, obj: RungBudget, form: Any, change: bool) -> None:
        """Change the budget."""
        names = [name for name in self.fields if name not in self.readonly_fields]
        budget = BudgetChanges(**{name: form.cleaned_data[name] for name in names})
        changes = SettingsChanges(rung_budgets=BudgetsChanges(**{obj.rung: budget}))
        update_settings(changes=changes, **change_of(request))


@admin.register(UsageEvent)
class UsageEventAdmin(OnlyRead):
    """The ledger: append-only, a correction is a row of its own (SPEC 3)."""

    reads = "settings:read"
    list_display = [
        "event_id",
        "connection",
        "model",
        "occurred_at",
        "rung",
        "money_kind",
        "booked_usd",
        "is_estimated",
        "original",
    ]
    list_filter = ["money_kind", "rung", "is_estimated", "booked_at", "connection__provider"]
    list_select_related = ["connection", "original"]
    search_fields = ["event_id", "hold_id", "model", "connection__connection_id", "connection__provider"]


@admin.register(SpendHold)
class SpendHoldAdmin(OnlyRead):
    """Holds: routers reserve, settle and release them (M2, M8)."""

    reads = "settings:read"
    list_display = ["hold_id", "connection", "model", "rung", "amount_usd", "expires_at", "released_at", "settled_by"]
    list_filter = ["rung", "expires_at", "connection__provider"]
    list_select_related = ["connection", "settled_by"]
    search_fields = ["hold_id", "model", "connection__connection_id", "connection__provider"]


from ladder import admin_timeline  # noqa: E402, F401 - Django looks for this module's name only
