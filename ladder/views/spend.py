"""The spend page and its files: where the money went, beside the budgets (SPEC 5, 5)."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import chain
from typing import Any
from zoneinfo import ZoneInfo

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from ladder.core.values import Rung
from ladder.selectors.spend_events import count_events, each_ledger_row, find_folded, list_events, read_corrections
from ladder.views.paging import Leaf, leaf_of
from ladder.views.presenting.curves import chart_of
from ladder.views.presenting.pruned import pruned_words
from ladder.views.presenting.spend import (
    COLUMNS,
    amounts,
    event_row,
    events_words,
    line_row,
    rung_row,
    window_row,
)
from ladder.views.spend_files import (
    EVENT_COLUMNS,
    LINE_COLUMNS,
    WINDOW_COLUMNS,
    events_file,
    head,
    lines_file,
    windows_file,
)
from ladder.views.spend_query import (
    BREAKDOWNS,
    PERIODS,
    Asked,
    asked_of,
    filter_pairs,
    period_pairs,
    query_of,
)
from ladder.views.spend_reading import (
    Overview,
    Stretch,
    happened_of,
    is_by_window,
    read_lines,
    read_overview,
    read_stretch,
    read_windows,
)
from omniroute_admin.common import clock
from omniroute_admin.common.core.screen import Glance, iso_text
from omniroute_admin.common.core.words import clock_text
from omniroute_admin.common.selectors.revision import read_view
from omniroute_admin.common.views.guard import needs
from omniroute_admin.common.zone import display_zone

PAGE_SIZE = 50
EVENTS_SIZE = 50
_ALL_WINDOWS = 500
BY_WORDS = {
    "rung": "Rung",
    "provider": "Provider",
    "connection": "Connection",
    "model": "Model",
    "rung-connection-model": "All together",
    "window": "Window",
}


def _asked(request: HttpRequest, now: datetime, zone: ZoneInfo) -> Asked:
    return asked_of(request.GET, today=now.astimezone(zone).date())


@needs("settings:read")
@never_cache
@require_safe
def spend_page(request: HttpRequest) -> HttpResponse:
    """Show each rung's money beside its budget, how it grew, where it went, and every event."""
    glance = Glance(now=clock.now(), zone=display_zone())
    asked = _asked(request, glance.now, glance.zone)
    with read_view():
        overview = read_overview(asked=asked, now=glance.now, zone=glance.zone)
        context = _breakdown(asked, overview, glance)
        context |= _events(asked, overview.stretch, glance, known=context["event_count"])
    return render(request, "ladder/spend.html", context | _frame(asked, overview, glance))


def _frame(asked: Asked, overview: Overview, glance: Glance) -> dict[str, Any]:
    """Return the period, the totals and the charts."""
    now, zone, stretch = glance.now, glance.zone, overview.stretch
    is_windows = stretch.spans is not None
    charts = [
        chart_of(one, zone=ZoneInfo(one.terms.zone) if is_windows else zone, glance=glance) for one in overview.curves
    ]
    return {
        "section": "spend",
        "asked": asked,
        "zone": glance.zone_name,
        "now_iso": iso_text(now),
        "now_clock": clock_text(at=now, now=now, zone=zone, seconds=True),
        "periods": [(name, word, query_of(Asked(period=name))) for name, word in PERIODS.items() if name != "custom"],
        "is_windows": is_windows,
        "columns": COLUMNS,
        "rows": [rung_row(one, glance=glance) for one in overview.rungs],
        "charts": charts,
        "from_clock": clock_text(at=stretch.start, now=now, zone=zone),
        "to_clock": clock_text(at=stretch.end, now=now, zone=zone),
        "rungs": [rung.word for rung in Rung],
        "period_pairs": [pair for pair in period_pairs(asked) if pair[1]],
        "filter_pairs": [pair for pair in filter_pairs(asked) if pair[1]],
        "file_query": query_of(asked, page=1, events_page=1),
        "clear_query": query_of(Asked(period=asked.period, first=asked.first, last=asked.last, by=asked.by)),
    }


def _breakdown(asked: Asked, overview: Overview, glance: Glance) -> dict[str, Any]:
    found = _windows(asked, overview, glance) if is_by_window(asked) else _lines(asked, overview.stretch, glance)
    leaf: Leaf = found["leaf"]
    return found | {
        "by_choices": [(name, word, query_of(asked, by=name, page=1)) for name, word in BY_WORDS.items()],
        "sorts": None if is_by_window(asked) else _sorts(asked),
        "previous_query": query_of(asked, page=leaf.page - 1) if leaf.page > 1 else None,
        "next_query": query_of(asked, page=leaf.page + 1) if leaf.page < leaf.pages else None,
    }


def _sorts(asked: Asked) -> dict[str, tuple[str, str]]:
    """Return by column the query that orders by it, the other way round where it does already, and how it stands."""
    names = ("rung", "provider", "connection", "model", "events", *(name for name, _ in COLUMNS))
    sorts = {}
    for name in names:
        is_text = name in BREAKDOWNS
        first, other = (name, f"-{name}") if is_text else (f"-{name}", name)
        order = other if asked.order == first else first
        way = {name: "ascending", f"-{name}": "descending"}.get(asked.order, "")
        sorts[name] = (query_of(asked, order=order, page=1), way)
    return sorts


def _lines(asked: Asked, stretch: Stretch, glance: Glance) -> dict[str, Any]:
    offset = (asked.page - 1) * PAGE_SIZE
    found = read_lines(asked=asked, stretch=stretch, now=glance.now, offset=offset, limit=PAGE_SIZE)
    leaf = leaf_of(total=found.count, page=asked.page, size=PAGE_SIZE)
    if leaf.page != asked.page:
        found = read_lines(asked=asked, stretch=stretch, now=glance.now, offset=leaf.part.start, limit=PAGE_SIZE)
    return {
        "lines": [line_row(line) for line in found.lines],
        "leaf": leaf,
        "total_amounts": amounts(found.totals),
        "total_events": events_words(found.totals),
        "event_count": found.totals.events,
    }


def _windows(asked: Asked, overview: Overview, glance: Glance) -> dict[str, Any]:
    offset = (asked.page - 1) * PAGE_SIZE
    found = read_windows(asked=asked, stretch=overview.stretch, now=glance.now, offset=offset, limit=PAGE_SIZE)
    leaf = leaf_of(total=found.count, page=asked.page, size=PAGE_SIZE)
    if leaf.page != asked.page:
        offset = leaf.part.start
        found = read_windows(asked=asked, stretch=overview.stretch, now=glance.now, offset=offset, limit=PAGE_SIZE)
    zones = {one.rung: one.terms.zone for one in overview.rungs}
    return {
        "lines": [window_row(line, zone=zones[line.rung], glance=glance) for line in found.lines],
        "leaf": leaf,
        "event_count": None,
    }


def _events(asked: Asked, stretch: Stretch, glance: Glance, *, known: int | None) -> dict[str, Any]:
    happened = happened_of(asked=asked, stretch=stretch)
    folded = find_folded(happened=happened)
    total = count_events(happened=happened) if known is None else known - (folded.count if folded else 0)
    leaf = leaf_of(total=total, page=asked.events_page, size=EVENTS_SIZE)
    rows = list_events(happened=happened, offset=leaf.part.start, limit=leaf.size)
    corrections = read_corrections(keys=[row.pk for row in rows])
    return {
        "events": [event_row(row, corrections.get(row.pk, []), glance=glance) for row in rows],
        "events_leaf": leaf,
        "folded": pruned_words(folded.pruned, glance=glance, count=folded.count) if folded else None,
        "events_previous": query_of(asked, events_page=leaf.page - 1) if leaf.page > 1 else None,
        "events_next": query_of(asked, events_page=leaf.page + 1) if leaf.page < leaf.pages else None,
    }


@needs("settings:read")
@never_cache
@require_safe
def spend_breakdown_file(request: HttpRequest) -> StreamingHttpResponse:
    """Send the breakdown that the address asks for, all of it, as CSV."""
    now, zone = clock.now(), display_zone()
    asked = _asked(request, now, zone)
    with read_view():
        stretch = read_stretch(asked=asked, now=now, zone=zone)
        if is_by_window(asked):
            lines = windows_file(_all_windows(asked, stretch, now))
            return _file("spend-windows.csv", chain([head(WINDOW_COLUMNS)], list(lines)))
        found = read_lines(asked=asked, stretch=stretch, now=now)
    return _file(f"spend-by-{asked.by}.csv", chain([head(LINE_COLUMNS)], lines_file(found.lines)))


def _all_windows(asked: Asked, stretch: Stretch, now: datetime) -> Iterator[Any]:
    offset = 0
    while True:
        found = read_windows(asked=asked, stretch=stretch, now=now, offset=offset, limit=_ALL_WINDOWS)
        yield from found.lines
        offset += _ALL_WINDOWS
        if offset >= found.count:
            return


@needs("settings:read")
@never_cache
@require_safe
def spend_events_file(request: HttpRequest) -> StreamingHttpResponse:
    """Send every row of the ledger that the address asks for, events and corrections, as CSV."""
    now, zone = clock.now(), display_zone()
    asked = _asked(request, now, zone)
    with read_view():
        stretch = read_stretch(asked=asked, now=now, zone=zone)
    rows = each_ledger_row(happened=happened_of(asked=asked, stretch=stretch))
    return _file("spend-events.csv", chain([head(EVENT_COLUMNS)], events_file(rows)))


def _file(name: str, lines: Iterable[str]) -> StreamingHttpResponse:
    response = StreamingHttpResponse(_in_pieces(lines), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def _in_pieces(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines many at once: each piece costs a server about the same."""
    piece: list[str] = []
    for line in lines:
        piece.append(line)
        if len(piece) == EVENTS_SIZE * 10:
            yield "".join(piece)
            piece = []
    yield "".join(piece)
