"""Why a connection is where it is (SPEC 4)."""

from typing import Any

from django.http import HttpResponse, QueryDict
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.views import APIView

from ladder.api import documents_state
from ladder.api.answers import ENCODER, on_the_wire
from ladder.api.documents import PROVIDER
from ladder.api.names import resolver
from ladder.api.queries import refuse_query
from ladder.core.judge import Account
from ladder.core.snapshot import Snapshot
from ladder.selectors.explain import explain_connection
from ladder.selectors.state import get_snapshot
from omniroute_admin.common import clock
from omniroute_admin.common.core.names import NOAUTH
from omniroute_admin.common.errors import NotFound, field
from omniroute_admin.common.listing import bad_query, unknown_parameters

PAGE_SIZE, LARGEST_PAGE, MOST_PAGES, MOST_DIGITS = 50, 500, 1_000_000, 7


def find_stored_account(*, snapshot: Snapshot, connection_id: str, provider: str | None) -> Account:
    """Return a stored connection of the snapshot.

    Raises:
        NotFound: there is none of that id (at that provider).
        BadRequest: `noauth` is named without its provider.
    """
    if connection_id == NOAUTH and provider is None:
        raise bad_query([("provider", "Where noauth is named, its provider is named too.")])
    named = None if provider is None else resolver(snapshot.facts.aliases)(provider)
    for account in snapshot.accounts:
        one = account.connection
        if one.connection_id == connection_id and named in (None, one.provider):
            return account
    raise NotFound(f"There is no connection {connection_id!r}.")


def page_of(query: QueryDict) -> tuple[int, int]:
    """Return the page asked for and its size.

    Raises:
        BadRequest: one of them is no number in range.
    """
    errors = unknown_parameters(query, ("page", "page_size", "provider"))
    found = {"page": 1, "page_size": PAGE_SIZE}
    for name, largest in (("page", MOST_PAGES), ("page_size", LARGEST_PAGE)):
        text = query.get(name, str(found[name]))
        if not (text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS and 1 <= int(text) <= largest):
            errors.append(field(name, f"This is a whole number from 1 to {largest}."))
        else:
            found[name] = int(text)
    refuse_query(errors)
    return found["page"], found["page_size"]


def _whole(highest: int) -> dict[str, Any]:
    """Return the schema of a whole number from 1."""
    return {"type": "integer", "minimum": 1, "maximum": highest}


class ExplainView(APIView):
    """Everything about one connection in the words a router gets."""

    required_scopes = {"GET": "connections:read"}

    @extend_schema(
        operation_id="connections_explain",
        parameters=[
            PROVIDER,
            OpenApiParameter("page", _whole(MOST_PAGES), description="Page of the provider's models."),
            OpenApiParameter("page_size", _whole(LARGEST_PAGE), description="Models a page, 50 unless told."),
        ],
        responses=documents_state.Explanation,
    )
    def get(self, request: Request, connection_id: str) -> HttpResponse:
        """Explain a connection; its pools are paged by model."""
        page, size = page_of(request.query_params)
        now = clock.now()
        snapshot = get_snapshot(now=now)
        account = find_stored_account(
            snapshot=snapshot, connection_id=connection_id, provider=request.query_params.get("provider")
        )
        models = snapshot.models_of(provider=account.connection.provider, now=now)
        shown = models[(page - 1) * size : page * size]
        explanation = explain_connection(snapshot=snapshot, account=account, models=shown, now=now)
        response = HttpResponse(ENCODER.encode(on_the_wire(explanation)), content_type="application/json")
        response["Cache-Control"] = "private, no-cache"
        response["X-Ladder-Revision"] = snapshot.facts.revision
        return response
