"""Spend and holds, always derived from the rows of the ledger (M2, M4)."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db.models import Count, Q, QuerySet, Sum

from ladder.core.money import BudgetWindow, Span
from ladder.core.spend.ledger import Spend
from ladder.core.values import PAID_RUNGS, Budget, Hold, MoneyKind, Rung
from ladder.mapping import rung_named, to_budget, window_at
from ladder.models import LedgerSum, RungBudget, SpendHold, UsageEvent
from ladder.selectors.settings import BudgetSettings
from omniroute_admin.common.selectors.compiled import Compiled

MOST_WINDOWS = 40
"""How many windows back a budget is read; what is longer ago is passed over."""


def read_budgets(
    *, now: datetime, rungs: Collection[Rung] = PAID_RUNGS, instead: Mapping[Rung, BudgetSettings] | None = None
) -> dict[Rung, Budget]:
    """Read the budgets of paid rungs in their present windows, with spend and active holds; three queries for both.

    A budget in `instead` is read as if it were set so: another window has the usage that happened in it (M4).
    """
    words = [rung.word for rung in rungs]
    rows = RungBudget.objects.filter(rung__in=words)
    return budgets_of(rows=rows, now=now, instead=instead)


def budgets_of(
    *, rows: Iterable[RungBudget], now: datetime, instead: Mapping[Rung, BudgetSettings] | None = None
) -> dict[Rung, Budget]:
    """Return the budgets of these rows as `read_budgets` does; one query for the holds, and one for the spend."""
    found = {rung_named(row.rung): row for row in rows}
    wanted = {rung: _as_set(row, instead[rung]) if instead and rung in instead else row for rung, row in found.items()}
    windows = {rung: window_at(row, at=now) for rung, row in wanted.items()}
    holds = read_active_holds(now=now, rungs=found)
    spends = _read_spends(windows)
    return {
        rung: to_budget(row, window=windows[rung], spend=spends[rung], holds=holds.get(rung, ()))
        for rung, row in wanted.items()
    }


def _read_spends(windows: Mapping[Rung, BudgetWindow]) -> dict[Rung, Spend]:
    """Sum what drew on each rung's budget in its window; one query, each part from the index."""
    spans = {rung: (window.counted_from, window.end) for rung, window in windows.items()}
    return dict.fromkeys(windows, Spend()) | _summed(spans)


def read_budget_windows(*, row: RungBudget, start: datetime, now: datetime) -> tuple[Budget, ...]:
    """Read a budget in its windows from `start` to `now`, one after the other; two queries for each.

    Every window is as the rows say now, with the holds that were active when it began, or at `start`.
    """
    rung, at, found = rung_named(row.rung), start, list[Budget]()
    while True:
        window = window_at(row, at=at)
        spend = read_spend(rung=rung, start=window.counted_from, end=window.end)
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


def read_spend(*, rung: Rung, start: datetime, end: datetime) -> Spend:
    """Sum what drew on a rung's budget in [start, end), by when it happened (M4); one query that an index answers."""
    return _summed({rung: (start, end)}).get(rung, Spend())


_SPENT = {"usd": Sum("booked_usd"), "rows": Count("*"), "estimated": Sum("estimated_change")}
_FOLDED = {"usd": Sum("booked_usd"), "rows": Sum("folded_rows"), "estimated": Sum("folded_estimates")}
"""The same of old rows that are kept as sums."""


def _summed(spans: Mapping[Rung, Span]) -> dict[Rung, Spend]:
    found: dict[Rung, Spend] = {}
    instants = [instant for span in spans.values() for instant in span]
    for word, usd, rows, estimated in _DRAWN.rows_at([rung.word for rung in spans], instants):
        rung = rung_named(word)
        found[rung] = found.get(rung, Spend()).plus(Spend(usd or Decimal(0), int(rows), int(estimated or 0)))
    return found


def _drawn_of(words: Sequence[str], instants: Sequence[datetime]) -> QuerySet[Any, Any]:
    """Return the query of what drew on each rung's budget in its span: two instants for each word, start and end."""
    parts = [part for place, word in enumerate(words) for part in _drawn(word, *instants[2 * place : 2 * place + 2])]
    return parts[0].union(*parts[1:], all=True)


def _drawn(word: str, start: datetime, end: datetime) -> Iterator[QuerySet[Any, Any]]:
    """Yield the query of the rows that drew on a budget in [start, end), and that of the sums of old ones."""
    drawn = Q(money_kind=MoneyKind.BUDGET.value, rung=word, booked_at__gte=start, booked_at__lt=end)
    for model, sums in ((UsageEvent, _SPENT), (LedgerSum, _FOLDED)):
        rows = model._default_manager.filter(drawn).order_by()
        yield rows.values("rung").annotate(**sums).values_list("rung", *sums)


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


# Both stand on the way of every write that spends, and of every decision after one.
_DRAWN = Compiled(_drawn_of)
_ACTIVE_HOLDS = Compiled(_holds_of)
