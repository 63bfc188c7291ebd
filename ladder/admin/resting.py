"""The admin of what keeps connections and providers out for a while: refusals, cooldowns and breakers (C)."""

from datetime import datetime
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest

from ladder.core.values import CooldownCause
from ladder.models import Breaker, Cooldown, RefusalReport
from ladder.services.cooldowns import clear_cooldown, set_cooldown
from omniroute_admin.common import clock
from omniroute_admin.common.admin_base import DecidingAdmin, NeitherAdded, NorDeleted, ReasonForm, change_of


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
