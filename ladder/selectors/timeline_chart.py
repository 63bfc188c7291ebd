"""Reading what the timeline draws: what served when, and how much happened when (SPEC 5, 6)."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from django.db.models import Case, Count, IntegerField, Max, QuerySet, Value, When

from ladder.core.timeline.flips import Serving
from ladder.core.timeline.marks import BUDGET_ENDS, BudgetVersion, Happened, Lane, lane_of_flip, window_ends
from ladder.core.timeline.stretches import THINNED_REACH, Sample, Stretch, Turn, find_stretches
from ladder.core.values import Period, Rung, Weekday
from ladder.models import RungBudget, TimelineCursor
from ladder.selectors.acts import ACTS, acts_between
from ladder.selectors.slots import HOUR, MINUTE, slot_of, slot_start
from ladder.selectors.timeline import flips_between, samples_between

_BY_THE_MINUTE = timedelta(days=2)
_WORDS = {int(rung): rung.word for rung in Rung}
_NONE = -1
_WINDOW_FIELDS = ("period", "week_starts_on", "zone", "amount_usd")


def is_timeline_begun() -> bool:
    """Tell whether a worker ever looked; one query."""
    return TimelineCursor.objects.exists()


def read_stretches(*, start: datetime, end: datetime, thinned_before: datetime) -> tuple[Stretch, ...]:
    """Return what served in [start, end); two queries."""
    early = start - THINNED_REACH
    return find_stretches(
        samples=list(_read_samples(early, end)),
        turns=list(_read_turns(early, end)),
        start=start,
        end=end,
        thinned_before=thinned_before,
    )


def _read_samples(start: datetime, end: datetime) -> Iterator[Sample]:
    index = Case(
        *(When(is_serving=True, rung=rung.word, then=Value(int(rung))) for rung in Rung),
        default=Value(_NONE),
        output_field=IntegerField(),
    )
    rows = samples_between(start=start, end=end).order_by("at").values("at")
    for at, serving in rows.annotate(serving=Max(index)).values_list("at", "serving"):
        yield Sample(at, _WORDS.get(serving))


def _read_turns(start: datetime, end: datetime) -> Iterator[Turn]:
    rows = flips_between(start=start, end=end, kind="rung")
    for at, rung, state, cause in rows.values_list("at", "rung", "to_state", "cause"):
        yield Turn(at, rung, state == Serving.SERVING, cause)


def read_happened(*, start: datetime, end: datetime) -> list[Happened]:
    """Return how many of what happened when in [start, end), by the minute, or by the hour in a longer stretch.

    Four queries, whatever happened; the lines they return do not grow with what happened together.
    """
    size = MINUTE if end - start <= _BY_THE_MINUTE else HOUR
    return [*_flips(start, end, size), *_acts(start, end, size), *_window_ends(start, end)]


def _slots(rows: QuerySet[Any, Any], field: str, size: int, what: str) -> QuerySet[Any, Any]:
    """Return (slot, what, how many) of rows."""
    cut = rows.order_by().annotate(m_slot=slot_of(field, size=size))
    return cut.values("m_slot", what).annotate(m_count=Count("*")).values_list("m_slot", what, "m_count")


def _flips(start: datetime, end: datetime, size: int) -> Iterator[Happened]:
    rows = flips_between(start=start, end=end, kind="connection")
    for slot, cause, count in _slots(rows, "at", size, "cause"):
        yield Happened(max(slot_start(slot), start), lane_of_flip(cause), cause, count)


def _acts(start: datetime, end: datetime, size: int) -> Iterator[Happened]:
    lanes = {act.kind: act.lane for act in ACTS}
    first, *others = [
        _slots(rows.annotate(m_kind=Value(kind)), "history_date", size, "m_kind")
        for kind, rows in acts_between(start=start, end=end)
    ]
    for slot, kind, count in first.union(*others, all=True):
        yield Happened(max(slot_start(slot), start), lanes[kind], kind, count)


def _window_ends(start: datetime, end: datetime) -> Iterator[Happened]:
    versions = _read_versions()
    for rung, *row in RungBudget.objects.values_list("rung", *_WINDOW_FIELDS):
        ones = versions.get(rung) or [_version(start, *row)]
        for at in window_ends(versions=ones, start=start, end=end):
            yield Happened(at, Lane.RESET, f"{BUDGET_ENDS}{rung}")


def _read_versions() -> dict[str, list[BudgetVersion]]:
    versions: dict[str, list[BudgetVersion]] = {}
    rows = RungBudget.history.order_by("history_date", "history_id")
    for rung, since, *row in rows.values_list("rung", "history_date", *_WINDOW_FIELDS):
        versions.setdefault(rung, []).append(_version(since, *row))
    return versions


def _version(since: datetime, period: str, weekday: str, zone: str, amount: Decimal | None) -> BudgetVersion:
    return BudgetVersion(since, Period(period), Weekday(weekday), ZoneInfo(zone), is_limited=bool(amount))
