"""Quota windows of a connection over HTTP (SPEC 4)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

import msgspec
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from msgspec import Meta
from rest_framework import serializers as s
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from ladder.api.connections import connection_at
from ladder.api.documents import IF_MATCH, PROVIDER
from ladder.api.serializers import WindowSerializer
from ladder.models import Connection, QuotaWindow
from ladder.selectors.connections import known_connections
from ladder.selectors.windows import judge_rows
from ladder.services.connections import keyless_path
from ladder.services.live_connections import locked
from ladder.services.reading_items import LONGEST_WINDOW, Instant, is_storable
from ladder.services.windows import OPERATOR_FIELDS, mark_exhausted, update_window
from omniroute_admin.common import clock
from omniroute_admin.common.authentication import caller
from omniroute_admin.common.bodies import check_meta, decode, read_body
from omniroute_admin.common.core.names import NOAUTH
from omniroute_admin.common.errors import NotFound
from omniroute_admin.common.history import LONGEST_REASON, Actor
from omniroute_admin.common.listing import check_parameters
from omniroute_admin.common.resources import ResourceListView, ResourceView, check_if_match, etag_of
from omniroute_admin.common.services.revision import deciding_write


class _WindowsOfConnection(ResourceView):
    """What the list and the single window share."""

    queryset = QuotaWindow.objects.all()
    serializer_class = WindowSerializer
    read_scope = "connections:read"
    write_scope = "connections:write"
    extra_parameters = ("provider",)

    def get_queryset(self) -> QuerySet[QuotaWindow]:
        """Return the windows of the connection of the address, which is locked where one is about to be changed."""
        known = known_connections()
        rows = known if self.request.method in {"GET", "HEAD"} else locked(known)
        connection = connection_at(request=self.request, connection_id=self.kwargs["connection_id"], rows=rows)
        return QuotaWindow.objects.filter(connection=connection).order_by("window")


class WindowListView(_WindowsOfConnection, ResourceListView):
    """The quota windows of one connection, each with its own verdict."""

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

    @extend_schema(operation_id="windows_change", parameters=[PROVIDER, IF_MATCH])
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


def _window_problem(text: str) -> str | None:
    return None if is_storable(text, length=LONGEST_WINDOW) else f"Give 1 to {LONGEST_WINDOW} printable characters."


class MarkExhaustedBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is marked: one window, or (left out) all that count."""

    window: Annotated[str, check_meta(_window_problem)] | None = None
    reset_at: Instant | None = None
    reason: Annotated[str, Meta(max_length=LONGEST_REASON)] = ""


_MARK = msgspec.json.Decoder(MarkExhaustedBody)


class MarkExhaustedDocument(s.Serializer):
    """What is marked: one window, or (left out) all that count."""

    window = s.CharField(
        required=False, allow_null=True, max_length=LONGEST_WINDOW, help_text="One there is; 404 names them."
    )
    reset_at = s.DateTimeField(required=False, allow_null=True, help_text="Left out: the reset that is known.")
    reason = s.CharField(required=False, allow_blank=True, max_length=LONGEST_REASON)


class MarkedDocument(s.Serializer):
    """The windows that were marked."""

    windows = WindowSerializer(many=True)


class MarkExhaustedView(APIView):
    """An operator's word that quota is used up."""

    required_scopes = {"POST": "connections:write"}

    @extend_schema(
        operation_id="mark_exhausted",
        parameters=[PROVIDER],
        request=MarkExhaustedDocument,
        responses={200: MarkedDocument},
    )
    def post(self, request: Request, connection_id: str) -> Response:
        """Mark windows as exhausted: each until a newer reading of it, or the reset. Scope: connections:write.

        A connection without a window that counts gets the window `by hand`, which stands until a newer reading of any
        window of the connection, or the reset.
        """
        check_parameters(request.query_params, ("provider",))
        raw = read_body(request._request)
        body = decode(body=raw, decoder=_MARK) if raw.strip() else MarkExhaustedBody()
        by, now = caller(request).actor, clock.now()
        with deciding_write():
            connection = _marked(request=request, connection_id=connection_id, actor=by, now=now)
            rows = mark_exhausted(
                connection=connection,
                window=body.window,
                reset_at=body.reset_at,
                actor=by,
                reason=body.reason.strip(),
                now=now,
            )
        return Response({"windows": WindowSerializer(judge_rows(rows=rows, now=now), many=True).data})


def _marked(*, request: Request, connection_id: str, actor: Actor, now: datetime) -> Connection:
    """Return the connection of the address; a keyless path is always known, whether anybody spoke of it or not."""
    try:
        return connection_at(request=request, connection_id=connection_id, rows=known_connections())
    except NotFound:
        if connection_id != NOAUTH:
            raise
        return keyless_path(provider=request.query_params["provider"], actor=actor, now=now)


def _owned(representation: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the entity tag speaks of: the operator's part. A reading that came in meanwhile loses no update."""
    return {name: representation[name] for name in ("window", *OPERATOR_FIELDS)}
