"""The admin of connections: what is the operator's goes through the services."""

from typing import Any

from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest

from ladder.models import Connection
from ladder.services.connections import check_override, create_connection, delete_connection, update_connection
from omniroute_admin.common.admin_base import DecidingAdmin, ReasonForm, change_of

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
