"""The admin of the ledger and of holds: they are only looked at."""

from django.contrib import admin

from ladder.models import LedgerSum, SpendHold, UsageEvent
from omniroute_admin.common.admin_base import OnlyRead


@admin.register(UsageEvent)
class UsageEventAdmin(OnlyRead):
    """The ledger: append-only, a correction is a row of its own (SPEC 3)."""

    reads = "settings:read"
    list_display = [
        "event_id",
        "connection",
        "model",
        "occurred_at",
        "rung",
        "money_kind",
        "booked_usd",
        "is_estimated",
        "original",
    ]
    list_filter = ["money_kind", "rung", "is_estimated", "booked_at", "connection__provider"]
    list_select_related = ["connection", "original"]
    search_fields = ["event_id", "hold_id", "model", "connection__connection_id", "connection__provider"]


@admin.register(SpendHold)
class SpendHoldAdmin(OnlyRead):
    """Holds: routers reserve, settle and release them (M2, M8)."""

    reads = "settings:read"
    list_display = ["hold_id", "connection", "model", "rung", "amount_usd", "expires_at", "released_at", "settled_by"]
    list_filter = ["rung", "expires_at", "connection__provider"]
    list_select_related = ["connection", "settled_by"]
    search_fields = ["hold_id", "model", "connection__connection_id", "connection__provider"]


@admin.register(LedgerSum)
class LedgerSumAdmin(OnlyRead):
    """What is left of old events: sums that stand in every total (M4, M5)."""

    reads = "settings:read"
    list_display = [
        "booked_at",
        "connection",
        "model",
        "rung",
        "money_kind",
        "booked_usd",
        "estimated_usd",
        "folded_events",
        "folded_rows",
    ]
    list_filter = ["money_kind", "rung", "booked_at", "connection__provider"]
    list_select_related = ["connection"]
    search_fields = ["model", "connection__connection_id", "connection__provider"]
