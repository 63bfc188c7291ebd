"""The held state, derived from readings and settings at every build, never recorded (Q5)."""

from collections.abc import Collection
from decimal import ROUND_FLOOR, Decimal
from typing import Any

from django.db.models import Case, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import Coalesce, Greatest

from ladder.core.values import LadderSettings, ReadingStatus
from ladder.models import QuotaReading, QuotaWindow
from omniroute_admin.common.fields import PercentField

_EIGHT_PLACES = Decimal(1).scaleb(-8)
_EXHAUSTED = Q(status=ReadingStatus.EXHAUSTED.value)


def held_windows(*, settings: LadderSettings, window_ids: Collection[int] | None) -> set[int]:
    """Return the ids of the windows whose connection dropped out on them and was not seen back in since (Q4, Q5).

    Per window the newest reading outside the band decides: at or below the exit cutoff (its own, else that of the
    settings) or said to be exhausted is out; strictly above max(re-entry, exit) or unlimited is in. A window never
    outside the band is in. One query for all windows of live connections, or for those of `window_ids`; it walks back
    along the index on (window, observed_at) only as far as the deciding reading.
    """
    windows = QuotaWindow.objects.all() if window_ids is None else QuotaWindow.objects.filter(pk__in=window_ids)
    deciding = with_dropped_out(windows=windows.filter(connection__deleted_at__isnull=True), settings=settings)
    return {pk for pk, is_out in deciding.order_by().values_list("pk", "dropped_out") if is_out}


def with_dropped_out(*, windows: QuerySet[QuotaWindow], settings: LadderSettings) -> QuerySet[Any, Any]:
    """Return the query of windows with `dropped_out`: true where the connection is held on it, null or false if not."""
    return windows.annotate(dropped_out=Subquery(_newest_outside_the_band(settings)))


def _newest_outside_the_band(settings: LadderSettings) -> QuerySet[QuotaReading, Any]:
    """Return the query for whether one window (the outer row) dropped out at its deciding reading."""
    exit_cutoff = Coalesce(OuterRef("exit_cutoff_percent"), _percent(settings.exit_cutoff_percent))
    floor = Greatest(_percent(settings.reentry_min_remaining_percent), exit_cutoff)
    is_out = _EXHAUSTED | Q(unlimited=False, remaining_percent__lte=exit_cutoff)
    is_in = Q(unlimited=True) | Q(remaining_percent__gt=floor)
    return (
        QuotaReading.objects.filter(Q(window=OuterRef("pk")) & (is_out | is_in))
        .order_by("-observed_at")
        .values_list(Case(When(is_out, then=Value(True)), default=Value(False)))[:1]
    )


def _percent(value: Decimal) -> Value:
    """Return a bound for the database. Readings have eight places, so a finer bound cuts them where its floor does."""
    return Value(value.quantize(_EIGHT_PLACES, rounding=ROUND_FLOOR), output_field=PercentField())
