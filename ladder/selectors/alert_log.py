"""What the page of alerts lists: rules, and the log of deliveries."""

from collections.abc import Mapping

from django.db.models import Count, Q, QuerySet

from ladder.core.alerts.delivery import UNDER_WAY
from ladder.models import AlertDelivery, AlertRule

FILTERS = ("state", "kind", "channel")
"""The columns that the log is narrowed by."""


def rules_with_counts() -> QuerySet[AlertRule]:
    """Return every rule by name, with the number of its open alerts (`open_count`); one query."""
    is_open = Q(alerts__isnull=False, alerts__resolved_at=None)
    return AlertRule.objects.annotate(open_count=Count("alerts", filter=is_open)).order_by("name", "id")


def find_deliveries(*, by: Mapping[str, str]) -> QuerySet[AlertDelivery]:
    """Return deliveries, the newest first, of which each column in `by` (of FILTERS) is as it says."""
    return AlertDelivery.objects.filter(**by).select_related("alert").order_by("-at", "-id")


def channels_in_log() -> list[str]:
    """Return the channels that anything was ever sent to, by name; one query."""
    return list(AlertDelivery.objects.order_by("channel").values_list("channel", flat=True).distinct())


def is_soon(delivery: AlertDelivery) -> bool:
    """Tell whether a delivery moves within seconds: it is in the queue, or its first pauses run."""
    return delivery.state in {state.value for state in UNDER_WAY[:2]} and delivery.attempts <= 1
