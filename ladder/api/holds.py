"""Money reserved before a request (SPEC 4, Holds)."""

from decimal import Decimal
from typing import Annotated

import msgspec
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiResponse, extend_schema
from msgspec import Meta
from rest_framework import serializers as s
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from ladder.api.answers import on_the_wire
from ladder.api.documents import REASON, RUNGS, usd
from ladder.services.holds import Granted, HoldRequest, grant_hold, release_hold
from ladder.services.reading_items import is_storable
from ladder.services.usage_items import LONGEST_ID, MOST_USD
from omniroute_admin.common import clock
from omniroute_admin.common.authentication import caller
from omniroute_admin.common.bodies import check_meta, decimal_meta, decode, read_body
from omniroute_admin.common.listing import check_parameters
from omniroute_admin.common.openapi_calls import NAMES_WHAT_IS_STORED
from omniroute_admin.common.resources import reason_of

_LONGEST_HOLD = 3600


def _name_problem(text: str) -> str | None:
    return None if is_storable(text, length=LONGEST_ID) else f"Expected 1 to {LONGEST_ID} printable characters"


_Name = Annotated[str, check_meta(_name_problem)]


class HoldBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be reserved, for whom, how long."""

    hold_id: _Name
    connection_id: str
    provider: str | None = None
    model: _Name
    estimated_cost_usd: Annotated[Decimal, decimal_meta(ge=0, le=MOST_USD, places=6)]
    ttl_seconds: Annotated[int, Meta(ge=1, le=_LONGEST_HOLD)]


_HOLD = msgspec.json.Decoder(HoldBody)


class HoldDocument(s.Serializer):
    """A hold that is asked for."""

    hold_id = s.CharField(max_length=LONGEST_ID)
    connection_id = s.CharField()
    provider = s.CharField(required=False, allow_null=True, help_text="Needed for noauth.")
    model = s.CharField(max_length=LONGEST_ID)
    estimated_cost_usd = usd(min_value=0)
    ttl_seconds = s.IntegerField(min_value=1, max_value=_LONGEST_HOLD)


class GrantedDocument(s.Serializer):
    """A hold that was granted; `left_usd` null is no limit, or a rung on which nothing is reserved."""

    hold_id = s.CharField()
    rung = s.ChoiceField(RUNGS)
    expires_at = s.DateTimeField()
    left_usd = usd(allow_null=True)


class HoldRefusalDocument(s.Serializer):
    """Why a hold is refused; a problem document with members of its own."""

    type = s.CharField()
    title = s.CharField()
    status = s.IntegerField()
    detail = s.CharField(help_text="Says what is in the way, and what to do about it.")
    code = s.ChoiceField(["budget_spent", "rung_disabled", "hold_ended", "conflict"])
    left_usd = usd(required=False, help_text="With `budget_spent` and `rung_disabled`.")
    ended = s.ChoiceField(["released", "settled", "expired"], required=False, help_text="With `hold_ended`: how.")
    ended_at = s.DateTimeField(required=False, help_text="With `hold_ended`: when.")
    settled_by = s.CharField(
        required=False, allow_null=True, help_text="With `hold_ended`: the event that names the hold, null without one."
    )


_ANSWERS = {
    201: GrantedDocument,
    200: OpenApiResponse(GrantedDocument, description="The same hold, granted before and still reserving its money."),
    (409, "application/problem+json"): OpenApiResponse(
        HoldRefusalDocument,
        description="`budget_spent` or `rung_disabled`, with `left_usd`. `hold_ended`: the same hold was granted "
        "before and has been released, settled or has expired since; it reserves nothing, so ask with a new `hold_id`. "
        "`conflict`: this `hold_id` is another hold's.",
    ),
}


class HoldsView(APIView):
    """Holds."""

    required_scopes = {"POST": "telemetry:write"}

    @extend_schema(
        operation_id="holds_create",
        request=HoldDocument,
        responses=_ANSWERS,
        extensions={NAMES_WHAT_IS_STORED: True},
    )
    def post(self, request: Request) -> HttpResponse:
        """Reserve money on the rung that the connection has for the model now; nothing is reserved on rungs 0 to 2.

        Asked again with the same content it is the same hold as long as it acts; afterwards it is refused.
        """
        check_parameters(request.query_params)
        body = decode(body=read_body(request._request), decoder=_HOLD)
        asked = HoldRequest(**msgspec.structs.asdict(body))
        granted = grant_hold(request=asked, actor=caller(request).actor, now=clock.now())
        return HttpResponse(_encode(granted), status=201 if granted.is_new else 200, content_type="application/json")


class HoldView(APIView):
    """One hold."""

    required_scopes = {"DELETE": "telemetry:write"}

    @extend_schema(operation_id="holds_release", parameters=[REASON], responses={204: None})
    def delete(self, request: Request, hold_id: str) -> Response:
        """Give back what a hold reserves; done already is done."""
        check_parameters(request.query_params, ("reason",))
        reason_of(request)  # nothing keeps it; what no history would take is refused all the same
        release_hold(hold_id=hold_id, now=clock.now())
        return Response(status=204)


def _encode(granted: Granted) -> bytes:
    fields = {name: getattr(granted, name) for name in ("hold_id", "rung", "expires_at", "left_usd")}
    return msgspec.json.encode(on_the_wire(fields))
