"""Spend and holds, always derived from the rows of the ledger (M2, M4)."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from ladder.core.money import BudgetWindow
from ladder.core.spend.ledger import Spend
from ladder.core.values import PAID_RUNGS, Budget, Hold, Rung
from ladder.mapping import rung_named, to_budget, window_at
from ladder.models import RungBudget, SpendHold
from ladder.selectors.drawn import Stand, read_drawn
from ladder.selectors.settings import BudgetSettings
from omniroute_admin.common.selectors.compiled import Compiled

MOST_WINDOWS = 40
"""How many windows back a budget is read; what is longer ago is passed over."""


def read_budgets(
    *,
    now: datetime,
    rungs: Collection[Rung] = PAID_RUNGS,
    instead: Mapping[Rung, BudgetSettings] | None = None,
    stand: Stand | None = None,
) -> dict[Rung, Budget]:
    """Read the budgets of paid rungs in their present windows, with spend and active holds.

    A budget in `instead` is read as if it were set so: another window has the usage that happened in it (M4). `stand`
    is as for `read_drawn`.
    """
    words = [rung.word for rung in rungs]
    rows = RungBudget.objects.filter(rung__in=words)
    return budgets_of(rows=rows, now=now, instead=instead, stand=stand)


def budgets_of(
    *,
    rows: Iterable[RungBudget],
    now: datetime,
    instead: Mapping[Rung, BudgetSettings] | None = None,
    stand: Stand | None = None,
) -> dict[Rung, Budget]:
    """Return the budgets of these rows as `read_budgets` does; one query for the holds, and those of `read_drawn`."""
    found = {rung_named(row.rung): row for row in rows}
    wanted = {rung: _as_set(row, instead[rung]) if instead and rung in instead else row for rung, row in found.items()}
    windows = {rung: window_at(row, at=now) for rung, row in wanted.items()}
    holds = read_active_holds(now=now, rungs=found)
    spends = _read_spends(windows, stand)
    return {
        rung: to_budget(row, window=windows[rung], spend=spends[rung], holds=holds.get(rung, ()))
        for rung, row in wanted.items()
    }


def _read_spends(windows: Mapping[Rung, BudgetWindow], stand: Stand | None) -> dict[Rung, Spend]:
    """Sum what drew on each rung's budget in its window."""
    spans = {rung: (window.counted_from, window.end) for rung, window in windows.items()}
    return dict.fromkeys(windows, Spend()) | read_drawn(spans=spans, stand=stand)


def read_budget_windows(
    *, row: RungBudget, start: datetime, now: datetime, stand: Stand | None = None
) -> tuple[Budget, ...]:
    """Read a budget in its windows from `start` to `now`, one after the other; two queries for each.

    Every window is as the rows say now, with the holds that were active when it began, or at `start`. `stand` is as
    for `read_drawn`.
    """
    rung, at, found = rung_named(row.rung), start, list[Budget]()
    while True:
        window = window_at(row, at=at)
        spend = read_spend(rung=rung, start=window.counted_from, end=window.end, stand=stand)
        holds = read_active_holds(now=at, rungs=[rung])
        found.append(to_budget(row, window=window, spend=spend, holds=holds.get(rung, ())))
        if window.end > now:
            return tuple(found)
        at = window.end if len(found) < MOST_WINDOWS else now


def _as_set(row: RungBudget, wanted: BudgetSettings) -> RungBudget:
    """Return a row, never to be saved, as if its budget were set so; a reset stays in force (M9)."""
    return RungBudget(
        rung=row.rung,
        amount_usd=wanted.amount_usd,
        period=wanted.period.value,
        week_starts_on=wanted.week_starts_on.value,
        zone=wanted.zone,
        counted_from=row.counted_from,
    )


def read_spend(*, rung: Rung, start: datetime, end: datetime, stand: Stand | None = None) -> Spend:
    """Sum what drew on a rung's budget in [start, end), by when it happened (M4); `stand` is as for `read_drawn`."""
    return read_drawn(spans={rung: (start, end)}, stand=stand).get(rung, Spend())


def read_active_holds(*, now: datetime, rungs: Collection[Rung] = PAID_RUNGS) -> dict[Rung, tuple[Hold, ...]]:
    """Read the holds that act at `now`: neither settled, nor released, nor over (M2); one query."""
    found: dict[Rung, list[Hold]] = {}
    for word, amount, expires_at in _ACTIVE_HOLDS.rows_at([rung.word for rung in rungs], [now]):
        found.setdefault(rung_named(word), []).append(Hold(amount, expires_at))
    return {rung: tuple(holds) for rung, holds in found.items()}


def _holds_of(words: Sequence[str], instants: Sequence[datetime]) -> QuerySet[Any, Any]:
    (now,) = instants
    rows = SpendHold.objects.filter(rung__in=words, released_at=None, settled_by=None, expires_at__gt=now)
    return rows.order_by("id").values_list("rung", "amount_usd", "expires_at")


# It stands on the way of every write that spends, and of every decision after one.
_ACTIVE_HOLDS = Compiled(_holds_of)
