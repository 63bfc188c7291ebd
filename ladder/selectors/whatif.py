"""What would move: the ladder and the pools as they would be after a change, by the deciding code (SPEC 5, 3)."""

from collections.abc import Collection, Mapping
from datetime import datetime
from decimal import Decimal

import msgspec

from ladder.core.moves import Edits, Move, PoolMove, apply_edits, find_moves, find_pool_moves
from ladder.core.occupancy import Occupancy, build_occupancy
from ladder.core.snapshot import Snapshot
from ladder.core.values import Budget, Facts, LadderSettings, Rung
from ladder.selectors.ledger import read_budgets
from ladder.selectors.settings import BudgetSettings
from ladder.selectors.state import read_facts
from omniroute_admin.common.selectors.revision import read_snapshot


class WhatIf(msgspec.Struct, frozen=True):
    """The ladder as it is and as it would be, what moves on it, and all thirteen pools in both.

    When the ladder as it would be changes by itself is not worked out: its `valid_until` says nothing.

    `revision` is that of the facts which the second was worked out from: where it is not the first's, somebody wrote in
    between, and the two are better compared again.
    """

    before: Occupancy
    after: Occupancy
    moves: tuple[Move, ...]
    pools: tuple[PoolMove, ...]
    budgets: Mapping[Rung, Budget]
    settings: LadderSettings
    revision: str


def work_out(
    *,
    stored: Snapshot,
    occupancy: Occupancy,
    edits: Edits,
    budgets: Mapping[Rung, BudgetSettings] | None = None,
    resets: Collection[Rung] = (),
    now: datetime,
) -> WhatIf:
    """Return what a change would move; nothing is stored.

    `occupancy` is that of `stored` at `now`. `budgets` are those that would be set otherwise, `resets` the rungs whose
    count would start again at `now` (M9).
    """
    facts = _facts_after(stored=stored.facts, edits=edits, budgets=budgets or {}, now=now)
    facts = msgspec.structs.replace(facts, budgets=_reset(facts.budgets, resets, now))
    after = Snapshot(apply_edits(facts=facts, edits=edits), is_momentary=True)
    becomes = build_occupancy(snapshot=after, now=now)
    return WhatIf(
        before=occupancy,
        after=becomes,
        moves=find_moves(before=occupancy, after=becomes),
        pools=find_pool_moves(before=stored, after=after, now=now),
        budgets=after.facts.budgets,
        settings=after.facts.settings,
        revision=after.facts.revision,
    )


def _facts_after(*, stored: Facts, edits: Edits, budgets: Mapping[Rung, BudgetSettings], now: datetime) -> Facts:
    """Return the stored facts with what is derived from rows derived anew: the held state where the band differs (Q5).

    Spend is always read again, since the stored snapshot's need only be exact for the budgets it has (SPEC 3).
    """
    settings = edits.settings or stored.settings
    with read_snapshot() as revision:
        if _band(settings) != _band(stored.settings):
            return read_facts(revision=revision, now=now, settings=settings, budgets=budgets)
        read = read_budgets(now=now, instead=budgets)
    return msgspec.structs.replace(stored, budgets=read, revision=str(revision))


def _band(settings: LadderSettings) -> tuple[Decimal, Decimal]:
    return settings.exit_cutoff_percent, settings.reentry_min_remaining_percent


def _reset(budgets: Mapping[Rung, Budget], rungs: Collection[Rung], now: datetime) -> dict[Rung, Budget]:
    """Return the budgets with the count of some started again; holds stay, and the window ends when it did (M9)."""
    return {
        rung: msgspec.structs.replace(budget, spent_usd=Decimal(0), window_start=now) if rung in rungs else budget
        for rung, budget in budgets.items()
    }
