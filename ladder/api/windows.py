"""Quota windows of a connection over HTTP (SPEC 4)."""

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from ladder.api.connections import PROVIDER, connection_at
from ladder.api.serializers import WindowSerializer
from ladder.models import QuotaWindow
from ladder.selectors.connections import known_connections
from ladder.selectors.windows import judge_rows
from ladder.services.live_connections import locked
from ladder.services.windows import OPERATOR_FIELDS, update_window
from omniroute_admin.common import clock
from omniroute_admin.common.errors import NotFound
from omniroute_admin.common.resources import ResourceListView, ResourceView, check_if_match, etag_of
from omniroute_admin.common.services.revision import deciding_write


class _WindowsOfConnection(ResourceView):
    """What the list and the single window share."""

    queryset = QuotaWindow.objects.all()
    serializer_class = WindowSerializer
    read_scope = "connections:read"
    write_scope = "connections:write"

    def get_queryset(self) -> QuerySet[QuotaWindow]:
        """Return the windows of the connection of the address, which is locked where one is about to be changed."""
        known = known_connections()
        rows = known if self.request.method in {"GET", "HEAD"} else locked(known)
        connection = connection_at(request=self.request, connection_id=self.kwargs["connection_id"], rows=rows)
        return QuotaWindow.objects.filter(connection=connection).order_by("window")


class WindowListView(_WindowsOfConnection, ResourceListView):
    """The quota windows of one connection, each with its own verdict."""

    extra_parameters = ("provider",)

    def paginate_queryset(self, queryset: Any) -> Any:
        """Return the windows of the page, judged now."""
        return judge_rows(rows=super().paginate_queryset(queryset) or [], now=clock.now())

    @extend_schema(operation_id="windows_list", parameters=[PROVIDER])
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Return a page of the windows."""
        return super().get(request, *args, **kwargs)


class WindowView(_WindowsOfConnection):
    """One quota window."""

    hooks = {"update_row": ("patch",)}

    @extend_schema(operation_id="windows_read", parameters=[PROVIDER])
    def get(self, request: Request, connection_id: str, window: str) -> Response:
        """Return the window."""
        return self._judged(self._window(window))

    @extend_schema(operation_id="windows_change", parameters=[PROVIDER])
    def patch(self, request: Request, connection_id: str, window: str) -> Response:
        """Mute the window or give it a cutoff of its own, in percent remaining (null: that of the settings)."""
        with deciding_write():
            row = self._window(window)
            check_if_match(request, _owned(self._judged(row).data))
            changes = self.valid(row=row, partial=True)
            row = self.update_row(row=row, changes=changes, **self.change(changes))
        return self._judged(row)

    def update_row(self, *, row: Any, changes: dict[str, Any], actor: Any, reason: str, now: Any) -> QuotaWindow:
        """Change the operator's part of the window."""
        return update_window(window=row, changes=changes, actor=actor, reason=reason, now=now)

    def _window(self, name: str) -> QuotaWindow:
        row = self.get_queryset().filter(window=name).first()
        if row is None:
            raise NotFound("The connection has no such window.")
        return row

    def _judged(self, row: QuotaWindow) -> Response:
        """Return the window with its verdict now."""
        judge_rows(rows=[row], now=clock.now())
        representation = self.get_serializer(row).data
        return Response(representation, headers={"ETag": etag_of(_owned(representation))})


def _owned(representation: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the entity tag speaks of: the operator's part. A reading that came in meanwhile loses no update."""
    return {name: representation[name] for name in ("window", *OPERATOR_FIELDS)}
