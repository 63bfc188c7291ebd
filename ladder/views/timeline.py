"""The timeline: which rung was in use, and what happened (SPEC 5, 6)."""

from datetime import datetime, timedelta
from typing import Any

import msgspec
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from ladder.core.timeline.marks import gather
from ladder.core.values import Rung
from ladder.selectors.timeline_chart import is_timeline_begun, read_happened, read_stretches
from ladder.selectors.timeline_events import TimelineEvent, count_places, list_events
from ladder.views.paging import Leaf, leaf_of
from ladder.views.presenting.pruned import PrunedWords, pruned_words
from ladder.views.presenting.steps import SLOTS, Steps, chart_data, lane_choices, still_of
from ladder.views.presenting.timeline import EventRow, event_row, mark_rows, served, stretch_rows
from ladder.views.presenting.timeline_words import CAUSE_WORDS
from ladder.views.timeline_query import RANGES, Asked, asked_of, earlier, later, query_of, span_of
from omniroute_admin.common import clock
from omniroute_admin.common.core.periods import LEAST_DAYS, Part
from omniroute_admin.common.core.roles import AUDIT_READ
from omniroute_admin.common.core.screen import Glance, iso_text
from omniroute_admin.common.core.words import clock_text
from omniroute_admin.common.scopes import rights_of_user
from omniroute_admin.common.selectors.horizons import read_pruned
from omniroute_admin.common.views.guard import needs
from omniroute_admin.common.zone import display_zone

PAGE_SIZE = 50
MINUTELY_FOR = timedelta(days=30)
"""How long a sample of every minute is kept (SPEC 3)."""


@needs("pools:read")
@never_cache
@require_safe
def timeline_page(request: HttpRequest) -> HttpResponse:
    """Show the rung in use as steps, marks of what happened, and the list of it."""
    glance = Glance(now=clock.now(), zone=display_zone())
    today = glance.now.astimezone(glance.zone).date()
    asked = asked_of(request.GET, today=today)
    start, end = span_of(asked, now=glance.now, zone=glance.zone)
    if not is_timeline_begun():
        context: dict[str, Any] = {"is_empty": True}
    else:
        may_audit = AUDIT_READ in rights_of_user(request.user)
        until = min(end, glance.now)
        context = _chart(glance, start, until, end) | _events(asked, glance, start, until, may_audit=may_audit)
    return render(request, "ladder/timeline.html", context | _frame(asked, glance, start, end))


def _frame(asked: Asked, glance: Glance, start: datetime, end: datetime) -> dict[str, Any]:
    """Return what stands around the chart: the range and the way to others."""
    today = glance.now.astimezone(glance.zone).date()
    before, after = earlier(asked, today=today), later(asked, today=today)
    return {
        "section": "timeline",
        "asked": asked,
        "zone": glance.zone_name,
        "from_clock": clock_text(at=start, now=glance.now, zone=glance.zone),
        "to_clock": clock_text(at=end, now=glance.now, zone=glance.zone),
        "now_iso": iso_text(glance.now),
        "now_clock": clock_text(at=glance.now, now=glance.now, zone=glance.zone, seconds=True),
        "ranges": [(name, query_of(asked, range=name, page=1)) for name in RANGES],
        "earlier_query": query_of(asked, day=before, page=1) if before else None,
        "later_query": query_of(asked, day=after, page=1) if asked.day else None,
        "is_latest": asked.day is None,
        "pruned": _pruned(start, glance),
        "clear_query": query_of(Asked(range=asked.range, day=asked.day)),
        "fold_query": query_of(asked, events=msgspec.structs.replace(asked.events, at=None), page=1),
        "causes": CAUSE_WORDS.items(),
        "rungs": [rung.word for rung in Rung],
    }


def _pruned(start: datetime, glance: Glance) -> PrunedWords | None:
    """Return what of the time that is shown was removed; it is asked for only where something can have been."""
    if glance.now - start < timedelta(days=LEAST_DAYS[Part.HISTORY]):
        return None
    pruned = read_pruned(Part.HISTORY)
    return pruned_words(pruned, glance=glance) if pruned is not None and start < pruned.before else None


def _chart(glance: Glance, start: datetime, until: datetime, end: datetime) -> dict[str, Any]:
    stretches = read_stretches(start=start, end=until, thinned_before=glance.now - MINUTELY_FOR)
    marks = gather(happened=read_happened(start=start, end=until), start=start, end=end, slots=SLOTS)
    steps = Steps(start, end, stretches, marks, glance.zone)
    numbers, numbers_more = stretch_rows(steps=steps, glance=glance)
    marked, marked_more = mark_rows(marks=marks, glance=glance)
    return {
        "chart": chart_data(steps),
        "still": still_of(steps),
        "lanes": lane_choices(),
        "served": served(stretches),
        "is_known": any(one.is_known for one in stretches),
        "numbers": numbers,
        "numbers_more": numbers_more,
        "marked": marked,
        "marked_more": marked_more,
    }


def _events(asked: Asked, glance: Glance, start: datetime, end: datetime, *, may_audit: bool) -> dict[str, Any]:
    span: dict[str, Any] = {"start": start, "end": end, "asked": asked.events}
    leaf = leaf_of(total=count_places(**span), page=asked.page, size=PAGE_SIZE)
    found = list_events(**span, offset=leaf.part.start, limit=leaf.size)
    return {
        "events": [_event(event, asked, glance, may_audit=may_audit) for event in found],
        "leaf": leaf,
        **_turns(asked, leaf),
    }


def _event(event: TimelineEvent, asked: Asked, glance: Glance, *, may_audit: bool) -> EventRow:
    row = event_row(event, glance=glance, may_audit=may_audit)
    if event.count == 1:
        return row
    of_it = msgspec.structs.replace(asked.events, at=event.at)
    return msgspec.structs.replace(row, query=query_of(asked, events=of_it, page=1))


def _turns(asked: Asked, leaf: Leaf) -> dict[str, str | None]:
    return {
        "previous_query": query_of(asked, page=leaf.page - 1) if leaf.page > 1 else None,
        "next_query": query_of(asked, page=leaf.page + 1) if leaf.page < leaf.pages else None,
    }
