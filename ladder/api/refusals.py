"""What routers tell of refusals and of breakers (SPEC 4): each item is judged alone."""

from typing import TypeVar

import msgspec
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers as s
from rest_framework.request import Request
from rest_framework.views import APIView

from ladder.api.counts import count_items
from ladder.api.documents import words
from ladder.api.items import EventsDecoder
from ladder.api.telemetry import TelemetryDocument
from ladder.core.values import CooldownCause
from ladder.services.breakers import OPEN_WITHOUT_END, BreakerItem, record_breakers
from ladder.services.reading_items import UnreadableItem
from ladder.services.refusal_items import RateLimitItem
from ladder.services.refusals import record_rate_limits
from omniroute_admin.common import clock
from omniroute_admin.common.authentication import caller
from omniroute_admin.common.bodies import MAX_ITEMS, read_body
from omniroute_admin.common.listing import check_parameters

T = TypeVar("T", bound=msgspec.Struct)
_CAUSES = [word for word in words(CooldownCause) if word != CooldownCause.OPERATOR.value]


_RATE_LIMITS = EventsDecoder(RateLimitItem)
_BREAKERS = EventsDecoder(BreakerItem)


class RateLimitDocument(s.Serializer):
    """One refusal by a provider."""

    connection_id = s.CharField()
    provider = s.CharField(required=False, allow_null=True, help_text="Needed for noauth.")
    model = s.CharField(required=False, allow_null=True, max_length=200, help_text="Null: every model rests.")
    occurred_at = s.DateTimeField()
    status_code = s.IntegerField(required=False, allow_null=True, min_value=100, max_value=599)
    retry_after = s.CharField(
        required=False, allow_null=True, help_text="Seconds (a number or its text) or an HTTP date; at most 30 days."
    )
    cause = s.ChoiceField(_CAUSES)
    failure_count = s.IntegerField(
        required=False, allow_null=True, min_value=0, help_text="Failures in a row; left out, reports are counted."
    )
    reset_at = s.CharField(required=False, allow_null=True, help_text="ISO with a zone, or epoch (milli)seconds.")
    window = s.CharField(required=False, allow_null=True, max_length=100, help_text="The quota window used up.")


class RateLimitsDocument(s.Serializer):
    """A body of refusals."""

    events = s.ListField(child=RateLimitDocument(), max_length=MAX_ITEMS)


class CooldownToldDocument(s.Serializer):
    """A cooldown as it stands now; null instants are "until cleared"."""

    connection_id = s.CharField()
    asked_until = s.DateTimeField(allow_null=True)
    effective_until = s.DateTimeField(allow_null=True)
    clamped = s.BooleanField(help_text="Cut at the reset of the quota that caused it.")
    cause = s.ChoiceField(words(CooldownCause))


class RateLimitAnswerDocument(TelemetryDocument):
    """What became of the items, and the cooldowns they are about."""

    cooldowns = CooldownToldDocument(many=True)


class BreakerDocument(s.Serializer):
    """One change of a provider's breaker."""

    provider = s.CharField()
    state = s.ChoiceField(["open", "closed"])
    open_until = s.CharField(
        required=False,
        allow_null=True,
        help_text="ISO with a zone, or epoch (milli)seconds; left out, "
        f"{OPEN_WITHOUT_END.total_seconds():.0f} s after occurred_at. Only where it is open.",
    )
    occurred_at = s.DateTimeField()


class BreakersDocument(s.Serializer):
    """A body of breaker reports."""

    events = s.ListField(child=BreakerDocument(), max_length=MAX_ITEMS)


class RateLimitsView(APIView):
    """Refusals by providers."""

    required_scopes = {"POST": "telemetry:write"}

    @extend_schema(
        operation_id="telemetry_rate_limits", request=RateLimitsDocument, responses={200: RateLimitAnswerDocument}
    )
    def post(self, request: Request) -> HttpResponse:
        """Record refusals and let the connections rest; what is answered as accepted is committed."""
        items = _read(request, _RATE_LIMITS)
        answer = record_rate_limits(items=items, actor=caller(request).actor, now=clock.now())
        count_items(kind="rate_limits", answer=answer)
        return HttpResponse(msgspec.json.encode(answer), content_type="application/json")


class BreakersView(APIView):
    """Breakers of providers."""

    required_scopes = {"POST": "telemetry:write"}

    @extend_schema(operation_id="telemetry_breakers", request=BreakersDocument, responses={200: TelemetryDocument})
    def post(self, request: Request) -> HttpResponse:
        """Record breakers that opened or closed; what is answered as accepted is committed."""
        items = _read(request, _BREAKERS)
        answer = record_breakers(items=items, actor=caller(request).actor, now=clock.now())
        count_items(kind="breakers", answer=answer)
        return HttpResponse(msgspec.json.encode(answer), content_type="application/json")


def _read(request: Request, decoder: EventsDecoder[T]) -> list[T | UnreadableItem]:
    check_parameters(request.query_params)
    items = decoder.decode(read_body(request._request))
    return [UnreadableItem(detail=item) if isinstance(item, str) else item for item in items]
