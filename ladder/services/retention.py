"""Prune what is older than its period: readings, timeline, who changed what, ledger; no total and no verdict changes.

Age is not counted by the clock alone. What routers told, and when, is a second witness: nothing is pruned by an instant
that lies later than the newest that they told of, and nothing at all where that stands alone, long after all others. So
a clock that is years ahead prunes nothing for a month.
"""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

import msgspec
from django.db.models import Max

from billing_catalog.models import BillingEntry
from ladder.models import QuotaReading, QuotaWindow, RungSample, SpendHold, UsageEvent
from ladder.services.folding import fold_ledger
from ladder.services.old_readings import prune_readings
from ladder.services.old_timeline import prune_timeline
from ladder.services.old_versions import prune_versions
from ladder.services.pruning import Removed, Run
from ladder.services.timeline import note_flips
from omniroute_admin.common.core.periods import LEAST_DAYS, Part, Periods

WITNESS_AGE = timedelta(days=31)
"""For so long after a gap as long nothing is pruned: an operator has that time to see that the clock is wrong."""

_ORDER = (Part.READINGS, Part.HISTORY, Part.AUDIT, Part.LEDGER)
"""The audit before the ledger: what prices events goes a run later than the last event that may ask for it."""


class Age(msgspec.Struct, frozen=True):
    """By which instant age is counted; None where nothing is pruned, and why not."""

    at: datetime | None
    refusal: str = ""


class Pruning(msgspec.Struct, frozen=True):
    """From before which instant each part was pruned, what went of each table, and which events stay for a fault."""

    cutoffs: Mapping[Part, datetime]
    removed: tuple[Removed, ...] = ()
    kept_faulty: tuple[str, ...] = ()


def read_age(*, now: datetime) -> Age:
    """Return by which instant age is counted: the newest that a router told of, and none later than `now`."""
    told = [
        QuotaWindow.objects.aggregate(at=Max("observed_at"))["at"],
        UsageEvent.objects.order_by().aggregate(at=Max("booked_at"))["at"],
    ]
    newest = max((at for at in told if at is not None), default=None)
    newest = newest or RungSample.objects.aggregate(at=Max("at"))["at"]
    if newest is None:
        return Age(None, "Nothing was ever reported, so there is no telling how old anything is.")
    at = min(now, newest)
    if not _was_anything_told(at - 2 * WITNESS_AGE, at - WITNESS_AGE):
        return Age(None, f"Nothing was reported in the month that ended {WITNESS_AGE.days} days before {at:%Y-%m-%d}.")
    return Age(at)


def _was_anything_told(start: datetime, end: datetime) -> bool:
    return (
        RungSample.objects.filter(at__gte=start, at__lt=end).exists()
        or UsageEvent.objects.filter(booked_at__gte=start, booked_at__lt=end).exists()
        or QuotaReading.objects.filter(observed_at__gte=start, observed_at__lt=end).exists()
    )


def cutoffs_of(
    *, age: datetime, periods: Periods, parts: Collection[Part] = tuple(Part), before: datetime | None = None
) -> dict[Part, datetime]:
    """Return from before which instant each part is pruned; none where it is kept for ever.

    `before` is taken in place of the periods, though never one that lies within the shortest period of a part.
    """
    found = {}
    for part in (one for one in _ORDER if one in parts):
        latest = age - timedelta(days=LEAST_DAYS[part])
        if before is not None:
            found[part] = min(before, latest)
        elif periods.of(part):
            found[part] = age - timedelta(days=periods.of(part))
    return found


def prune(*, cutoffs: Mapping[Part, datetime], run: Run) -> Pruning:
    """Prune each part that has a cutoff. Stopped at any instant, and said again, it does the rest."""
    if not run.dry_run:
        # What time did to the ladder is told from holds and events: it is told before they go.
        note_flips(now=run.now)
    removed, kept_faulty = list[Removed](), tuple[str, ...]()
    for part in (one for one in _ORDER if one in cutoffs):
        before = cutoffs[part]
        if part is Part.READINGS:
            removed.append(prune_readings(before=before, run=run))
        elif part is Part.HISTORY:
            removed += prune_timeline(before=before, run=run)
        elif part is Part.AUDIT:
            removed += prune_versions(before=before, run=run)
        elif _is_older_than(before):
            report = fold_ledger(before=before, run=run)
            removed += report.removed
            kept_faulty = report.kept_faulty
    return Pruning(cutoffs, tuple(removed), kept_faulty)


def _is_older_than(before: datetime) -> bool:
    """Tell whether there is anything of the ledger from before, or this installation is: else its horizon stays.

    History that is imported on day one is booked, however old (M6).
    """
    return (
        UsageEvent.objects.filter(booked_at__lt=before).exists()
        or SpendHold.objects.filter(expires_at__lt=before).exists()
        or BillingEntry.history.filter(history_date__lt=before).exists()
    )
