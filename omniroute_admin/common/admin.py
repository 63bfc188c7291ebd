"""The admin of keys and of periodic processes."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import add_never_cache_headers

from omniroute_admin.common import clock
from omniroute_admin.common.admin_base import DecidingAdmin, OnlyRead, ReasonForm, change_of
from omniroute_admin.common.models import ApiKey, Heartbeat, Horizon, TaskRun
from omniroute_admin.common.scopes import SCOPES
from omniroute_admin.common.selectors.key_list import KEY_STATES, keys_in
from omniroute_admin.common.sent import LONGEST_FORM_NAME, new_form_name, note_sent
from omniroute_admin.common.services.keys import create_key, revoke_key


class KeyForm(ReasonForm):
    """What is asked of a new key. A form has a name of its own, so that sent again it makes no second key."""

    form_name = forms.CharField(widget=forms.HiddenInput, max_length=LONGEST_FORM_NAME, initial=new_form_name)

    scopes = forms.MultipleChoiceField(
        choices=[(scope, scope) for scope in SCOPES], widget=forms.CheckboxSelectMultiple, help_text="What it may do."
    )


class StateFilter(admin.SimpleListFilter):
    """Keys by whether they open anything now."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the states."""
        return [(state, state) for state in KEY_STATES]

    def queryset(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> QuerySet[ApiKey]:
        """Return the keys of the state."""
        state = self.value() or ""
        return queryset & keys_in(state=state, now=clock.now()) if state in KEY_STATES else queryset


@admin.register(ApiKey)
class ApiKeyAdmin(DecidingAdmin):
    """Keys: made (the text is shown once), seen, revoked; never deleted. The page of keys edits and rotates them."""

    reads = "keys:write"
    writes = "keys:write"
    list_display = [
        "name",
        "prefix",
        "what_was_asked",
        "what_it_may",
        "calls_per_minute",
        "created_at",
        "made_by",
        "expires_at",
        "replaced_until",
        "revoked_at",
        "last_used_at",
    ]
    list_filter = [StateFilter, "created_at", "expires_at", "last_used_at"]
    search_fields = ["name", "prefix", "made_by"]
    date_hierarchy = "created_at"
    actions = ["revoke"]
    form = KeyForm
    fields = ["name", "scopes", "calls_per_minute", "expires_at", "form_name"]

    @admin.display(description="asked")
    def what_was_asked(self, key: ApiKey) -> str:
        """Return the scopes it was given, in words."""
        return ", ".join(key.scopes)

    @admin.display(description="may now")
    def what_it_may(self, key: ApiKey) -> str:
        """Return those of them that its maker still has."""
        return ", ".join(key.granted) or "nothing: its maker may nothing"

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return what is asked of a new key, or all there is to see of an old one."""
        return self.fields if obj is None else [*self.list_display]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return the fields of a key that is there already: all."""
        return [] if obj is None else [*self.list_display]

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Tell that keys as such may be worked on (revoked), and none may be edited."""
        return obj is None and super().has_change_permission(request)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Tell that no key is deleted: a revoked one still tells who called."""
        return False

    def save_model(self, request: HttpRequest, obj: ApiKey, form: Any, change: bool) -> None:
        """Make the key; its text waits on the request for the one page that shows it.

        Raises:
            Conflict: this form was sent before.
        """
        note_sent(request, form_name=form.cleaned_data["form_name"])
        values = {name: form.cleaned_data[name] for name in ("name", "scopes", "calls_per_minute", "expires_at")}
        key, secret = create_key(**values, **change_of(request))
        obj.__dict__.update(key.__dict__)
        request.made_secret = secret  # type: ignore[attr-defined]

    def response_add(self, request: HttpRequest, obj: ApiKey, post_url_continue: str | None = None) -> HttpResponse:
        """Show the key's text, this once: it is neither stored nor sent through a cookie.

        The page answers the form itself, as an address of its own would have to keep the text until it is asked for.
        """
        context = {
            **self.admin_site.each_context(request),
            "title": "Key made",
            "opts": self.model._meta,
            "key": obj,
            "secret": request.made_secret,  # type: ignore[attr-defined]
        }
        response = render(request, "admin/common/apikey/made.html", context)
        add_never_cache_headers(response)
        return response

    @admin.action(description="Revoke the selected keys", permissions=["change"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> None:
        """Revoke keys; the reason beside the list of actions is needed."""
        by = change_of(request)
        if not by["reason"]:
            messages.error(request, "Say why they are revoked: there is a field for it beside the action.")
            return
        count = len([revoke_key(key=key, **by) for key in queryset.filter(revoked_at=None)])
        messages.success(request, f"Revoked: {count}. They are refused from now on.")


@admin.register(Heartbeat)
class HeartbeatAdmin(OnlyRead):
    """When periodic processes were last seen; written by them alone."""

    reads = "pools:read"
    show_full_result_count = True
    list_display = ["name", "beat_at"]
    list_filter = ["beat_at"]
    search_fields = ["name"]


@admin.register(TaskRun)
class TaskRunAdmin(OnlyRead):
    """How periodic tasks last ended; written by the worker alone."""

    reads = "pools:read"
    show_full_result_count = True
    list_display = ["name", "succeeded_at", "failed_at", "failures", "took_milliseconds"]
    list_filter = ["succeeded_at", "failed_at"]


@admin.register(Horizon)
class HorizonAdmin(OnlyRead):
    """How far back what is kept has been pruned; written by the pruning alone."""

    reads = "settings:read"
    list_display = ["name", "before", "moved_at", "removed"]
    search_fields = ["name"]


from omniroute_admin.common import admin_users  # noqa: E402, F401 - Django looks for this module's name only
