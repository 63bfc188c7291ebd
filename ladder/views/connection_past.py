"""What a connection did and spent: its trail and its present spend, a deleted one's too (SPEC 3; SPEC 5, 2)."""

from typing import Any
from urllib.parse import urlencode

import msgspec
from django.urls import NoReverseMatch, reverse

from ladder.core.spend.columns import SpendTotals
from ladder.core.values import PAID_RUNGS, Rung
from ladder.models import Connection
from ladder.selectors.connection_page import read_flips
from ladder.selectors.spend_windows import WindowSpend
from ladder.views.connection_query import ConnectionAsked
from ladder.views.presenting.trail import trail_lines
from ladder.views.seen import Seen
from omniroute_admin.common.core.screen import Glance
from omniroute_admin.common.core.words import money_text
from omniroute_admin.common.selectors.history import Asked, find_entries

LINES_A_PAGE = 20
LAST_PAGE = 50
"""A trail is read from its newest end: what is older than so many pages is found in the audit."""


class RungSpend(msgspec.Struct, frozen=True):
    """What was spent on one rung since its window began; amounts are words, empty where there is nothing."""

    rung: str
    rung_index: int
    since: str
    settled: str
    estimated: str
    held: str
    plan_value: str
    overage: str
    requests: int


def past_context(*, row: Connection, asked: ConnectionAsked, seen: Seen) -> dict[str, Any]:
    """Return what the regions of history and spend are drawn from."""
    return _trail(row, asked, seen.glance) | _spend(row, seen)


def _trail(row: Connection, asked: ConnectionAsked, glance: Glance) -> dict[str, Any]:
    page = min(asked.history_page, LAST_PAGE)
    start, end = (page - 1) * LINES_A_PAGE, page * LINES_A_PAGE
    flips = read_flips(connection=row, limit=end + 1)
    entries = find_entries(asked=Asked(owner=row.pk), limit=end + 1)
    lines = trail_lines(flips=flips, entries=entries, glance=glance)
    has_more = len(lines) > end and page < LAST_PAGE
    return {
        "trail": [(line, _version_address(line.version)) for line in lines[start:end]],
        "trail_page": page,
        "trail_previous": asked.query(history_page=page - 1) if page > 1 else None,
        "trail_next": asked.query(history_page=page + 1) if has_more else None,
        "audit_url": _audit_address(row),
    }


def _version_address(version: tuple[str, int] | None) -> str:
    """Return the page of a version, empty where this installation has none."""
    try:
        return reverse("history-version", args=version) if version else ""
    except NoReverseMatch:
        return ""


def _audit_address(row: Connection) -> str:
    try:
        return f"{reverse('audit')}?{urlencode({'what': str(row)})}"
    except NoReverseMatch:
        return ""


def _spend(row: Connection, seen: Seen) -> dict[str, Any]:
    lines = [_line(one, seen) for one in seen.spent.values() if one.totals != SpendTotals()]
    return {"spend": lines, "spend_url": _spend_address(row)}


def _spend_address(row: Connection) -> str:
    try:
        return f"{reverse('spend')}?{urlencode({'connection': str(row)})}"
    except NoReverseMatch:
        return ""


def _line(one: WindowSpend, seen: Seen) -> RungSpend:
    totals, is_paid = one.totals, one.rung in PAID_RUNGS
    return RungSpend(
        rung=one.rung.word,
        rung_index=int(one.rung),
        since=_since(one, seen),
        settled=money_text(totals.settled_usd) if is_paid else "",
        estimated=money_text(totals.estimated_usd) if totals.estimated_usd else "",
        held=money_text(totals.held_usd) if totals.held_usd else "",
        plan_value=money_text(totals.plan_value_usd) if not is_paid else "",
        overage=money_text(totals.overage_usd) if one.rung is Rung.SUBSCRIPTION else "",
        requests=totals.events,
    )


def _since(one: WindowSpend, seen: Seen) -> str:
    """Return since when it is counted, in the zone of the rung's window (M3)."""
    budget = seen.budgets.get(one.rung)
    zone = budget.zone if budget else "UTC"
    return f"{seen.glance.in_zone(zone).ago(one.window.counted_from).clock} {zone}"
