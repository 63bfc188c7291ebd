"""Budgets of the paid rungs: their locks, what a decision takes from them, and counting anew (M2, M8, M9)."""

from collections.abc import Callable, Collection, Mapping
from datetime import datetime

from django.db import connection as database

from ladder.core.money import Span, closed_spans
from ladder.core.values import PAID_RUNGS, Budget, Rung
from ladder.models import RungBudget
from ladder.selectors.drawn import Stand
from ladder.selectors.ledger import read_budget_windows, read_budgets
from ladder.selectors.trail import told_up_to
from ladder.services.trail import remember_budgets
from omniroute_admin.common.errors import NotFound
from omniroute_admin.common.history import Actor, stamp
from omniroute_admin.common.services.revision import deciding_write

Gates = dict[Rung, tuple[Span, ...]]
Past = dict[Rung, tuple[Budget, ...]]
"""Budgets as they were, window after window, before a write changes them."""


def lock_budgets(*, rungs: Collection[Rung]) -> dict[Rung, RungBudget]:
    """Return the budgets of paid rungs, locked in the fixed order to the end of the transaction.

    Whoever adds spend or grants, settles or releases a hold takes this lock after those of connections: then spend and
    holds of a rung only change one after the other (M8).
    """
    words = {rung.word: rung for rung in rungs if rung in PAID_RUNGS}
    if not words:
        return {}
    rows = RungBudget.objects.filter(rung__in=words).order_by("rung")
    if database.features.has_select_for_no_key_update:
        rows = rows.select_for_update(no_key=True)
    return {words[row.rung]: row for row in rows}


def read_past(*, rows: Mapping[Rung, RungBudget], now: datetime) -> Past:
    """Read locked budgets in their windows since the timeline was last told of them; the last is the present one."""
    told = told_up_to() if rows else None
    found = {}
    for rung, row in rows.items():
        since = max((at for at in (told, row.traced_at) if at is not None and at <= now), default=now)
        found[rung] = read_budget_windows(row=row, start=since, now=now, stand=Stand.STILL)
    return found


def gates_of(*, past: Past, now: datetime) -> Gates:
    """Return when these rungs are closed, as `read_gates` does."""
    return {rung: closed_spans(budget=windows[-1], now=now) for rung, windows in past.items()}


def keep_past(*, past: Past, gates: Gates, now: datetime) -> None:
    """Remember for the timeline those budgets of which spend or holds made another one.

    It is another one where the rung closes or opens at another time, `gates` being those after the write; and where
    time has changed something since the timeline was told, which with other spend would look as if it had not.
    """
    before = gates_of(past=past, now=now)
    changed = {
        rung: windows for rung, windows in past.items() if before[rung] != gates[rung] or _has_moved(windows, now)
    }
    if changed:
        remember_budgets(budgets=changed, now=now)


def _has_moved(windows: tuple[Budget, ...], now: datetime) -> bool:
    return len(windows) > 1 or any(hold.expires_at <= now for hold in windows[0].holds)


def read_gates(*, rungs: Collection[Rung], now: datetime) -> Gates:
    """Read when each of these rungs is closed by spend and holds: all that a decision takes from them.

    It is read under their locks, behind what this transaction booked.
    """
    paid = [rung for rung in rungs if rung in PAID_RUNGS]
    budgets = read_budgets(now=now, rungs=paid, stand=Stand.WITH_MINE) if paid else {}
    return {rung: closed_spans(budget=budget, now=now) for rung, budget in budgets.items()}


def reset_budget(
    *, rung: str, actor: Actor, reason: str, now: datetime, check: Callable[[RungBudget], None] | None = None
) -> Budget:
    """Start the count of a rung's budget again at `now` and return its state then (M9).

    Every row of the ledger stays, and no later window moves. `check` sees the row under the lock and may refuse.

    Raises:
        NotFound: no rung of that name has a budget.
    """
    with deciding_write():
        paid = next((one for one in PAID_RUNGS if one.word == rung), None)
        if paid is None:
            raise NotFound(f"No budget belongs to {rung!r}: {', '.join(one.word for one in PAID_RUNGS)} have one.")
        rows = lock_budgets(rungs=[paid])
        row = rows[paid]
        if check is not None:
            check(row)
        remember_budgets(budgets=read_past(rows=rows, now=now), now=now)
        row.counted_from = now
        stamp(instance=row, actor=actor, reason=reason, now=now)
        row.save()
        return read_budgets(now=now, rungs=[paid])[paid]
