"""Connections over HTTP, and clearing their cooldowns (SPEC 4)."""

from typing import Any
from urllib.parse import urlencode

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from ladder.api.documents import IF_MATCH, PROVIDER, REASON, words
from ladder.api.serializers import ConnectionSerializer
from ladder.core.values import CooldownCause
from ladder.models import Connection
from ladder.selectors.connections import find_connection, known_connections, stored_connections
from ladder.services.connections import create_connection, delete_connection, resolve_provider, update_connection
from ladder.services.cooldowns import clear_cooldowns
from omniroute_admin.common import clock
from omniroute_admin.common.authentication import caller
from omniroute_admin.common.core.names import NOAUTH, is_provider
from omniroute_admin.common.listing import bad_query, check_parameters
from omniroute_admin.common.resources import ResourceDetailView, ResourceListView, reason_of


def connection_at(*, request: Request, connection_id: str, rows: QuerySet[Connection]) -> Connection:
    """Return the connection that an address means; `?provider=` says whose `noauth` (SPEC 1).

    Raises:
        BadRequest: `noauth` without its provider, or a provider that can be none.
        NotFound: there is none.
    """
    provider = request.query_params.get("provider")
    if provider is None and connection_id == NOAUTH:
        raise bad_query([("provider", "Where noauth is named, its provider is named too.")])
    named = None if provider is None else resolve_provider(provider)
    if named is not None and not is_provider(named):
        raise bad_query([("provider", "This is no provider's id.")])
    return find_connection(rows=rows, connection_id=connection_id, provider=named)


@extend_schema_view(
    get=extend_schema(description="The stored connections. Scope: connections:read."),
    post=extend_schema(
        description="Store a connection; no credential is ever stored here. Declaring `hard-stop` where the catalogue"
        " does not needs a reason (B4). Scope: connections:write.",
        responses={201: ConnectionSerializer},
    ),
)
class ConnectionListView(ResourceListView):
    """The stored connections."""

    queryset = stored_connections()
    serializer_class = ConnectionSerializer
    read_scope = "connections:read"
    write_scope = "connections:write"
    lookup_field = "connection_id"

    def create_row(self, *, values: dict[str, Any], actor: Any, reason: str, now: Any) -> Connection:
        """Store a connection."""
        return create_connection(**values, actor=actor, reason=reason, now=now)

    def post(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Store a connection; one that was deleted under the same id hands nothing on."""
        response = super().post(request, *args, **kwargs)
        if response.data["connection_id"] == NOAUTH:
            response["Location"] += f"?{urlencode({'provider': response.data['provider']})}"
        return response


@extend_schema_view(
    get=extend_schema(parameters=[PROVIDER], description="Scope: connections:read."),
    put=extend_schema(
        parameters=[PROVIDER, IF_MATCH],
        description="What is left out takes its default; id and provider stay. Scope: connections:write.",
    ),
    patch=extend_schema(
        parameters=[PROVIDER, IF_MATCH], description="What is left out stays. Scope: connections:write."
    ),
    delete=extend_schema(
        parameters=[PROVIDER, IF_MATCH, REASON],
        description="Takes the connection out of routing, not out of the books. Scope: connections:write.",
    ),
)
class ConnectionView(ResourceDetailView):
    """One stored connection."""

    queryset = stored_connections()
    serializer_class = ConnectionSerializer
    read_scope = "connections:read"
    write_scope = "connections:write"
    lookup_field = "connection_id"
    extra_parameters = ("provider",)

    def get_object(self) -> Connection:
        """Return the connection of the address, locked where it is about to be changed."""
        rows = self.filter_queryset(self.get_queryset())
        return connection_at(request=self.request, connection_id=self.kwargs["connection_id"], rows=rows)

    def update_row(self, *, row: Any, changes: dict[str, Any], actor: Any, reason: str, now: Any) -> Connection:
        """Change the connection."""
        return update_connection(connection=row, changes=changes, actor=actor, reason=reason, now=now)

    def delete_row(self, *, row: Any, actor: Any, reason: str, now: Any) -> None:
        """Take the connection out of routing; it stays in the books."""
        delete_connection(connection=row, actor=actor, reason=reason, now=now)


class CooldownView(APIView):
    """The cooldowns of one connection."""

    required_scopes = {"DELETE": "connections:write"}

    @extend_schema(
        operation_id="cooldown_clear",
        parameters=[
            PROVIDER,
            REASON,
            OpenApiParameter("cause", str, enum=words(CooldownCause), description="Only this one; else all."),
        ],
        responses={204: None},
    )
    def delete(self, request: Request, connection_id: str) -> Response:
        """Clear the cooldowns of a connection; done already is done."""
        check_parameters(request.query_params, ("provider", "reason", "cause"))
        cause = request.query_params.get("cause")
        if cause is not None and cause not in words(CooldownCause):
            raise bad_query([("cause", f"Expected one of: {', '.join(words(CooldownCause))}")])
        clear_cooldowns(
            connection=connection_at(request=request, connection_id=connection_id, rows=known_connections()),
            causes=None if cause is None else [CooldownCause(cause)],
            actor=caller(request).actor,
            reason=reason_of(request),
            now=clock.now(),
        )
        return Response(status=204)
