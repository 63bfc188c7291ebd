"""The admin of what decisions depend on: every write moves the revision and says who, when and why (SPEC 3, 4)."""

from collections.abc import Callable, Sequence
from datetime import datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any, TypedDict

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ActionForm
from django.contrib.admin.options import IS_POPUP_VAR
from django.contrib.admin.utils import unquote
from django.contrib.admin.widgets import AdminSplitDateTime
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import models
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import SimpleTemplateResponse
from simple_history.admin import SimpleHistoryAdmin
from simple_history.models import ModelChange, ModelDelta
from simple_history.template_utils import HistoricalRecordContextHelper

from omniroute_admin.common import clock
from omniroute_admin.common.admin_rights import ByRights
from omniroute_admin.common.core.numbers import decimal_text
from omniroute_admin.common.core.roles import AUDIT_READ
from omniroute_admin.common.denials import note_denial
from omniroute_admin.common.errors import Forbidden, ProductError
from omniroute_admin.common.history import LONGEST_REASON, Actor, stamp
from omniroute_admin.common.services.revision import deciding_write

REASON = "change_reason"


class Change(TypedDict):
    """Who changes something, why and when: the arguments that every service takes."""

    actor: Actor
    reason: str
    now: datetime


class ReasonForm(forms.ModelForm):
    """A model's form that asks why."""

    change_reason = forms.CharField(label="Why", max_length=LONGEST_REASON, help_text="Goes to the history.")


class ReasonActionForm(ActionForm):
    """The form of a list's actions, with the reason beside."""

    change_reason = forms.CharField(label="Why:", max_length=LONGEST_REASON, required=False)


class DateAndTime(AdminSplitDateTime):
    """A day and a time of day beside each other, each with a name of its own for who does not see them."""

    def __init__(self, attrs: Any = None) -> None:
        """Name both."""
        super().__init__(attrs)
        for widget, name in zip(self.widgets, ("Date, in UTC", "Time of day, in UTC"), strict=True):
            widget.attrs["aria-label"] = name


class PlainContext(HistoricalRecordContextHelper):
    """Old and new values in a history, as people read them."""

    def prepare_delta_change_value(self, change: Any, value: Any) -> Any:
        """Return a number without zeros at its end and without an exponent; nothing is a word."""
        if value is None:
            return "none"
        return decimal_text(value) if isinstance(value, Decimal) else super().prepare_delta_change_value(change, value)


def change_of(request: HttpRequest) -> Change:
    """Return who changes something with this request, why and when, as services take it (`**change_of(request)`)."""
    reason = request.POST.get(REASON, "").strip()[:LONGEST_REASON]
    actor = Actor(name=request.user.get_username(), user_id=request.user.pk)
    return Change(actor=actor, reason=reason, now=clock.now())


class NeitherAdded(ByRights):
    """Rows that the admin does not add."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Tell that nobody adds one here."""
        return False


class NorDeleted(ByRights):
    """Rows that the admin does not delete."""

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Tell that nobody deletes one here."""
        return False


class OnlyRead(NeitherAdded, NorDeleted, admin.ModelAdmin):
    """Rows that are only looked at."""

    show_full_result_count = False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Tell that nobody changes one."""
        return False


def _quiet_changes(older: Any, newer: Any) -> list[ModelChange]:
    """Return the changes of tracked columns that no form edits; when a row was made and changed is told anyway."""
    names = {field.attname for field in older.tracked_fields if not field.editable} - {"created_at", "updated_at"}
    values = [(name, getattr(older, name), getattr(newer, name)) for name in sorted(names)]
    return [ModelChange(name, old, new) for name, old, new in values if old != new]


class DecidingAdmin(ByRights, SimpleHistoryAdmin):
    """A model's admin whose writes move the revision, are stamped, and ask for a reason.

    A subclass whose writes are a service's calls overrides `save_model` and `delete_model` with them
    (`**change_of(request)`); what they refuse is shown as a message, and nothing is written.
    """

    form = ReasonForm
    action_form = ReasonActionForm
    formfield_overrides: dict[Any, Any] = {
        models.DateTimeField: {"form_class": forms.SplitDateTimeField, "widget": DateAndTime}
    }
    delete_confirmation_template = "admin/deciding/delete_confirmation.html"
    delete_selected_confirmation_template = "admin/deciding/delete_selected_confirmation.html"
    save_on_top = False

    def get_historical_record_context_helper(self, request: HttpRequest, historical_record: Any) -> PlainContext:
        """Return what tells the changes of a record."""
        return PlainContext(self.model, historical_record)

    def set_history_delta_changes(
        self, request: HttpRequest, historical_records: Any, foreign_keys_are_objs: bool = True
    ) -> None:
        """Tell the changes of each record, those of columns that only the product writes too (a reset, a deletion)."""
        super().set_history_delta_changes(request, historical_records, foreign_keys_are_objs)
        for newer, older in pairwise(historical_records):
            helper = self.get_historical_record_context_helper(request, newer)
            delta = ModelDelta(_quiet_changes(older, newer), [], older, newer)
            newer.history_delta_changes = [*newer.history_delta_changes, *helper.context_for_delta_changes(delta)]

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return the fields, the reason last; without it where nothing can be changed."""
        sets = [(name, {**options, "fields": _without_reason(options["fields"])}) for name, options in
                super().get_fieldsets(request, obj)]  # fmt: skip
        may = self.has_change_permission(request, obj) if obj else self.has_add_permission(request)
        return [*sets, (None, {"fields": [REASON]})] if may else sets

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Add or change a row."""
        return deciding(request, lambda: super(DecidingAdmin, self).changeform_view(request, *args, **kwargs))

    def changelist_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """List the rows and run actions on them."""
        return deciding(request, lambda: super(DecidingAdmin, self).changelist_view(request, *args, **kwargs))

    def delete_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Delete a row; the reason is needed."""
        self.require(request, self.writes or self.reads)
        if request.method == "POST" and not change_of(request)["reason"]:
            messages.error(request, "Say why it is deleted.")
            return HttpResponseRedirect(request.get_full_path())
        return deciding(request, lambda: super(DecidingAdmin, self).delete_view(request, *args, **kwargs))

    def history_form_view(self, request: HttpRequest, object_id: str, version_id: str, **kwargs: Any) -> Any:
        """Show an earlier state of a row and go back to it.

        Raises:
            PermissionDenied: the row may not be changed, so it may not be turned back either.
            Http404: the address names no number of a row or of a version.
        """
        self.require(request, self.reads, AUDIT_READ)
        _require_number(self.model._meta.pk, object_id)
        _require_number(self.model.history.model._meta.pk, version_id)
        if request.method == "POST" and not self.has_change_permission(request, self.get_object(request, object_id)):
            raise PermissionDenied
        view = super().history_form_view
        return deciding(request, lambda: view(request, object_id, version_id, **kwargs))

    def history_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> Any:
        """Show who changed what.

        Raises:
            Http404: the address names no number of a row.
        """
        self.require(request, self.reads, AUDIT_READ)
        _require_number(self.model._meta.pk, unquote(object_id))
        return super().history_view(request, object_id, *args, **kwargs)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Save a row with who, why and when; a shipped fact becomes the operator's."""
        by = change_of(request)
        _mark(obj, now=by["now"], is_new=not change)
        stamp(instance=obj, **by)
        super().save_model(request, obj, form, change)

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        """Save the rows of an inline the same way."""
        by = change_of(request)
        for row in formset.save(commit=False):
            _mark(row, now=by["now"], is_new=row.pk is None)
            stamp(instance=row, **by)
            row.save()
        for row in formset.deleted_objects:
            stamp(instance=row, **by)
            row.delete()
        formset.save_m2m()

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        """Delete a row with who, why and when."""
        stamp(instance=obj, **change_of(request))
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        """Delete rows one by one: each gets its place in the history."""
        for row in queryset:
            self.delete_model(request, row)


def deciding(request: HttpRequest, view: Callable[[], HttpResponse]) -> HttpResponse:
    """Run a view; one that writes runs in a deciding write, and what a service refuses becomes a message."""
    if request.method != "POST":
        return view()
    try:
        with deciding_write(wide_at=clock.now()) as write:
            response = view()
            # A form shown again, or a question whether one is sure: nothing was written.
            shown = isinstance(response, SimpleTemplateResponse) and IS_POPUP_VAR not in request.POST
            write.changed = not shown
    except (ProductError, ValidationError) as error:
        if isinstance(error, Forbidden):
            note_denial(request, code=error.code)
        messages.error(request, _words(error))
        return HttpResponseRedirect(request.get_full_path())
    return response


def _require_number(key: Any, text: str) -> None:
    try:
        key.to_python(text)
    except ValidationError as error:
        raise Http404("There is no such row.") from error


def _without_reason(fields: Sequence[Any]) -> list[Any]:
    return [name for name in fields if name != REASON]


def _mark(row: Any, *, now: datetime, is_new: bool) -> None:
    """Set the columns that tell when a row was made and changed and whose it is, where it has them."""
    columns = {column.name for column in row._meta.concrete_fields}
    if is_new and "created_at" in columns:
        row.created_at = now
    if "updated_at" in columns:
        row.updated_at = now
    if "origin" in columns and row._meta.get_field("origin").choices:
        row.origin = "operator"


def _words(error: ProductError | ValidationError) -> str:
    """Return what a service refused, in one line."""
    if isinstance(error, ValidationError):
        return " ".join(error.messages)
    return " ".join([error.detail, *(f"{bad.pointer[1:]}: {bad.detail}." for bad in error.errors)])
