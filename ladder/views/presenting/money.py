"""A rung's budget in words: "off", "no limit" and an amount are three different things (M1)."""

from decimal import Decimal

import msgspec

from ladder.core.occupancy import BudgetView
from ladder.core.values import Accounting
from ladder.views.presenting.values import Bar
from omniroute_admin.common.core.screen import Glance, Moment
from omniroute_admin.common.core.words import money_text

HUNDRED = Decimal(100)


class BudgetWords(msgspec.Struct, frozen=True):
    """A budget as a screen tells it.

    `kind` is `off`, `unlimited`, `spent` or `left`; `left` the amount in words; `of` the whole amount; `until` the end
    of its window, told in the budget's own zone; `notes` what is on hold and how well the spend is known; `whole` all
    of it in one line.
    """

    kind: str
    left: str
    of: str = ""
    whole: str = ""
    zone: str = ""
    until: Moment | None = None
    bar: Bar | None = None
    notes: tuple[str, ...] = ()


_KNOWN = {Accounting.COMPLETE: "", Accounting.PARTIAL: "spend partly estimated", Accounting.NONE: "no spend reported"}


def budget_words(budget: BudgetView, *, glance: Glance | None = None) -> BudgetWords:
    """Return a budget in words; without a glance the end of its window is left out."""
    if budget.amount_usd is None:
        whole = f"{_spent(budget, since=_since(budget, glance))}, no limit"
        return BudgetWords(kind="unlimited", left="no limit", whole=whole, notes=_notes(budget))
    if budget.amount_usd == 0:
        return BudgetWords(kind="off", left="off", whole="off: nothing is spent here")
    return _amount_words(budget, amount=budget.amount_usd, glance=glance)


def _notes(budget: BudgetView) -> tuple[str, ...]:
    held = f"{money_text(budget.held_usd)} on hold" if budget.held_usd else ""
    return tuple(filter(None, (held, _KNOWN[budget.accounting])))


def _spent(budget: BudgetView, *, since: str = "") -> str:
    """Return what was spent, what is on hold and how well that is known, each once."""
    spent = f"{money_text(budget.spent_usd)} spent"
    is_unknown = budget.accounting is Accounting.NONE and not budget.spent_usd
    notes = [note for note in _notes(budget) if note != _KNOWN[Accounting.NONE]]
    return ", ".join((f"{_KNOWN[Accounting.NONE] if is_unknown else spent}{since}", *notes))


def _since(budget: BudgetView, glance: Glance | None) -> str:
    if glance is None or budget.window_start is None:
        return ""
    return f" since {glance.in_zone(budget.zone).ago(budget.window_start).clock} {budget.zone}"


def _amount_words(budget: BudgetView, *, amount: Decimal, glance: Glance | None) -> BudgetWords:
    left = max(Decimal(0), budget.left_usd or Decimal(0))
    until = glance.in_zone(budget.zone).until(budget.window_end) if glance and budget.window_end else None
    end = f" until {until.clock} {budget.zone}" if until else ""
    return BudgetWords(
        kind="left" if left else "spent",
        left=f"{money_text(left)} left",
        of=money_text(amount),
        whole=f"{_spent(budget)}, {money_text(left)} of {money_text(amount)} left{end}",
        notes=_notes(budget),
        zone=budget.zone,
        until=until,
        bar=Bar(
            kind="solid",
            width=_share(left, amount),
            hold=_share(min(budget.held_usd, amount - left), amount),
            edged=True,
        ),
    )


def _share(part: Decimal, whole: Decimal) -> str:
    return f"{max(Decimal(0), min(HUNDRED, part * HUNDRED / whole)):.1f}".rstrip("0").rstrip(".")
