"""What routers tell of usage (SPEC 4): each event is judged alone, and booked once."""

import msgspec
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers as s
from rest_framework.request import Request
from rest_framework.views import APIView

from ladder.api.counts import count_items
from ladder.api.documents import usd
from ladder.api.items import EventsDecoder
from ladder.api.telemetry import TelemetryDocument
from ladder.services.usage import record_usage
from ladder.services.usage_items import LONGEST_ID, UnreadableItem, UsageItem
from omniroute_admin.common import clock
from omniroute_admin.common.authentication import caller
from omniroute_admin.common.bodies import MAX_ITEMS, read_body
from omniroute_admin.common.listing import check_parameters

_EVENTS = EventsDecoder(UsageItem)


class UsageEventDocument(s.Serializer):
    """One event. Without a cost it is priced from the catalogue as it stood when it happened."""

    event_id = s.CharField(max_length=LONGEST_ID, help_text="The same event sent again has one effect.")
    connection_id = s.CharField()
    provider = s.CharField(required=False, allow_null=True, help_text="Needed for noauth.")
    model = s.CharField(max_length=LONGEST_ID)
    occurred_at = s.DateTimeField(
        help_text="Events older than the ledger keeps one by one are rejected as too_old, which names the instant."
    )
    input_tokens = s.IntegerField(required=False, allow_null=True, min_value=0, help_text="The cached ones included.")
    output_tokens = s.IntegerField(required=False, allow_null=True, min_value=0)
    cached_input_tokens = s.IntegerField(required=False, allow_null=True, min_value=0)
    cost_usd = usd(required=False, allow_null=True, help_text="At most six places.")
    is_overage = s.BooleanField(required=False, allow_null=True, help_text="Billed past the allowance of a plan.")
    hold_id = s.CharField(required=False, allow_null=True, max_length=LONGEST_ID, help_text="The hold this settles.")
    corrects_event_id = s.CharField(
        required=False,
        allow_null=True,
        max_length=LONGEST_ID,
        help_text="The event of which this tells the full cost anew. The correction with the latest `occurred_at` "
        "counts, so let that be when the correction was made; it is booked at the original's instant all the same. "
        "At one instant a correction of a correction counts before the one it corrects, however they arrive; of two "
        "that are equally far from the original the one whose id sorts last.",
    )


class UsageDocument(s.Serializer):
    """A body of usage events."""

    events = s.ListField(child=UsageEventDocument(), max_length=MAX_ITEMS)


class UsageView(APIView):
    """The ledger's way in."""

    required_scopes = {"POST": "telemetry:write"}

    @extend_schema(operation_id="telemetry_usage", request=UsageDocument, responses={200: TelemetryDocument})
    def post(self, request: Request) -> HttpResponse:
        """Book usage; what is answered as accepted is committed.

        An item is rejected as `too_old` where it happened before the instant from which on events are kept one by one
        (`KEEP_LEDGER_DAYS`): whether it was booked then can no longer be told, so it is never booked twice. Its
        `detail` names the instant; do not send it again.
        """
        check_parameters(request.query_params)
        items = [
            UnreadableItem(item) if isinstance(item, str) else item
            for item in _EVENTS.decode(read_body(request._request))
        ]
        answer = record_usage(items=items, actor=caller(request).actor, now=clock.now())
        count_items(kind="usage", answer=answer)
        return HttpResponse(msgspec.json.encode(answer), content_type="application/json")
