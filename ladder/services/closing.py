"""What time has ended: holds, and the windows of budgets. Tidying and checking only; no decision depends on it."""

import logging
from datetime import datetime, timedelta

import msgspec
from django.db import transaction
from django.db.models import F

from ladder.core.instants import TICK
from ladder.core.money import BudgetWindow
from ladder.core.values import Rung
from ladder.mapping import rung_named, window_at
from ladder.models import RungBudget, SpendHold
from ladder.selectors.ledger_faults import LedgerSpan, check_ledger
from ladder.selectors.timeline import SKEW
from ladder.selectors.trail import told_up_to
from ladder.services.timeline import note_flips
from omniroute_admin.common.selectors.revision import read_snapshot

LOOK_BACK = timedelta(days=1)
"""How long after its end a budget window is checked, so that what routers report late is looked at too."""

_BATCH = 500
_log = logging.getLogger(__name__)


class ClosedWindow(msgspec.Struct, frozen=True):
    """A budget window that ended, and what in it contradicts the rules of the ledger, each in a sentence."""

    rung: Rung
    window: BudgetWindow
    faults: tuple[str, ...]


def expire_holds(*, now: datetime) -> int:
    """Mark holds that ended by time as released at their end, and return how many were marked.

    A hold acts by its instants alone (M2); the mark only keeps the index of holds that may still act small. The
    revision stays. One that ended within the tolerated skew is left for later: to a process whose clock is behind it
    still acts (SPEC 6), and so is one that the timeline has yet to look at, which works out from these rows what a
    hold's end opened. Said twice, the second marks nothing.
    """
    note_flips(now=now)
    marked, told = 0, told_up_to()
    while count := _expire_some(ended_by=min(now - SKEW, told or now)):
        marked += count
    return marked


def _expire_some(*, ended_by: datetime) -> int:
    with transaction.atomic():
        ended = SpendHold.objects.filter(released_at=None, settled_by=None, expires_at__lte=ended_by).order_by("pk")
        # Whoever is settling one of them now need not wait for this, nor this for that.
        keys = list(ended.select_for_update(skip_locked=True).values_list("pk", flat=True)[:_BATCH])
        return SpendHold.objects.filter(pk__in=keys).update(released_at=F("expires_at"))


def close_budget_windows(*, now: datetime) -> list[ClosedWindow]:
    """Look at the budget windows that ended within the last day, and log an error for each that does not add up.

    A window closes by itself: what is enforced is worked out from its instants and the rows of the ledger (M2, M4).
    This tells the timeline that a rung opened, and checks the closed window's rows. Nothing is kept of it, so that it
    can be said at any time and any number of times; a window that ended while nobody looked for a day is left to
    `manage.py check_ledger`.
    """
    note_flips(now=now)
    with read_snapshot():
        closed = [_check(row, last) for row, last in _ended_windows(now)]
    for one in closed:
        for fault in one.faults:
            _log.error("The budget window of %s that ended %s: %s", one.rung.word, one.window.end.isoformat(), fault)
    return closed


def _ended_windows(now: datetime) -> list[tuple[RungBudget, BudgetWindow]]:
    """Return the last ended window of each budget, where it ended within the last day."""
    rows = [(row, window_at(row, at=now).start) for row in RungBudget.objects.order_by("rung")]
    return [(row, window_at(row, at=end - TICK)) for row, end in rows if now - end < LOOK_BACK]


def _check(row: RungBudget, window: BudgetWindow) -> ClosedWindow:
    # From its start, whatever a reset counted from: every row of it stays in the books (M9).
    span = LedgerSpan(row.rung, window.start, window.end)
    return ClosedWindow(rung_named(row.rung), window, check_ledger(span=span).faults)
