"""Reports of refusals as the counting of failures needs them (C4)."""

from collections.abc import Collection
from datetime import datetime

import msgspec
from django.db.models import F, Max, OuterRef, Subquery, Window
from django.db.models.functions import Coalesce, RowNumber

from ladder.core.cooldown import CAP, MOST_STEPS
from ladder.models import Cooldown, RefusalReport, UsageEvent

RefusalKey = tuple[int, str | None, str]
"""What a cooldown is of: the connection's primary key, the model (None: every one), the cause (C3)."""

_KEY = ("connection_id", "model", "cause")
_REPORT = ("occurred_at", "succeeded_at", "is_counted", "reset_at", "is_reset_unreadable", "window")


class StoredReport(msgspec.Struct, frozen=True):
    """A report as it is kept; `succeeded_at` is the last success before it, `is_counted` that it gave no length."""

    occurred_at: datetime
    succeeded_at: datetime | None
    is_counted: bool
    reset_at: datetime | None
    is_reset_unreadable: bool
    window: str | None


def read_streaks(*, connection_keys: Collection[int], now: datetime) -> dict[RefusalKey, list[StoredReport]]:
    """Return by key, in order of time, the reports that a back-off which still acts may stand on; two queries.

    Those of the last half hour, for no counted back-off is longer, and of the older ones the newest that still count.
    """
    reports = RefusalReport.objects.filter(connection__in=connection_keys).annotate(succeeded_at=_last_success())
    newest_first = Window(RowNumber(), partition_by=[F(name) for name in _KEY], order_by=F("occurred_at").desc())
    older = reports.filter(occurred_at__lte=now - CAP).annotate(rank=newest_first).filter(rank__lte=MOST_STEPS)
    recent = reports.filter(occurred_at__gt=now - CAP)
    streaks: dict[RefusalKey, list[StoredReport]] = {}
    for rows in (older, recent):
        for key, model, cause, *rest in rows.order_by("occurred_at").values_list(*_KEY, *_REPORT):
            streaks.setdefault((key, model, cause), []).append(StoredReport(*rest))
    return streaks


def _last_success() -> Subquery:
    """Return for the query of reports the last success before each: of its connection, and of its model if it has one.

    An event of the ledger is a success: what was refused used nothing (C4).
    """
    used = UsageEvent.objects.filter(
        connection=OuterRef("connection"),
        model=Coalesce(OuterRef("model"), F("model")),
        original__isnull=True,
        booked_at__lt=OuterRef("occurred_at"),
    )
    return Subquery(used.order_by("-booked_at").values("booked_at")[:1])


def read_cleared(*, connection_keys: Collection[int], lifted: str) -> dict[RefusalKey, datetime]:
    """Return when an operator last cleared each cooldown, from the history; `lifted` is the reason of other ends."""
    acts = Cooldown.history.filter(connection_id__in=connection_keys, history_type="-")
    cleared = acts.exclude(history_change_reason=lifted).order_by().values_list(*_KEY).annotate(at=Max("history_date"))
    return {(key, model, cause): at for key, model, cause, at in cleared}
