"""What a screen of money tells, in columns that never mix (M5, M7, M8)."""

from collections.abc import Iterable
from decimal import Decimal

import msgspec

from ladder.core.values import Accounting

_NOTHING = Decimal(0)


class SpendTotals(msgspec.Struct, frozen=True, kw_only=True):
    """USD and counts of some events and holds; no dollar stands in two columns.

    `settled_usd` and `estimated_usd` drew on budgets (rungs 3 and 4): with a known cost, and with one that is only
    estimated (M7). `held_usd` is reserved and not spent (M8). `overage_usd` was billed past a plan, `plan_value_usd` is
    the list price of what a plan, a keyless path or a free model served; neither draws on a budget (M5). `events`
    counts what happened: a correction is none of its own. `estimated_events` are those whose cost, of whatever kind, is
    estimated.
    """

    settled_usd: Decimal = _NOTHING
    estimated_usd: Decimal = _NOTHING
    held_usd: Decimal = _NOTHING
    overage_usd: Decimal = _NOTHING
    plan_value_usd: Decimal = _NOTHING
    events: int = 0
    estimated_events: int = 0

    @property
    def spent_usd(self) -> Decimal:
        """Return what drew on budgets, known and estimated: what the ledger counts against them (M2)."""
        return self.settled_usd + self.estimated_usd

    @property
    def accounting(self) -> Accounting:
        """Return how well it is known: nothing happened, partly estimated, or exact."""
        if not self.events:
            return Accounting.NONE
        return Accounting.PARTIAL if self.estimated_events else Accounting.COMPLETE

    def __add__(self, other: "SpendTotals") -> "SpendTotals":
        """Return both together."""
        names = self.__struct_fields__
        return SpendTotals(**{name: getattr(self, name) + getattr(other, name) for name in names})


def total_of(parts: Iterable[SpendTotals]) -> SpendTotals:
    """Return all parts together."""
    return sum(parts, SpendTotals())
