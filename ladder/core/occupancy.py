"""The ladder now: which connection stands on which rung, in what state, and which rung serves (SPEC 4, occupancy)."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal

import msgspec

from ladder.core.ids import POOL_IDS
from ladder.core.instants import NEVER
from ladder.core.money import held_usd, left_usd
from ladder.core.places import Place, State, build_places
from ladder.core.pool import build_pool
from ladder.core.snapshot import Snapshot
from ladder.core.values import (
    PAID_RUNGS,
    Accounting,
    Budget,
    Empty,
    Grouping,
    Pool,
    PoolOptions,
    Rung,
)


class BudgetView(msgspec.Struct, frozen=True):
    """A paid rung's budget in its present window; amount None is no limit, 0 is off (M1)."""

    amount_usd: Decimal | None
    spent_usd: Decimal
    held_usd: Decimal
    left_usd: Decimal | None
    accounting: Accounting
    window_start: datetime | None
    window_end: datetime | None
    zone: str


class RungOccupancy(msgspec.Struct, frozen=True):
    """One rung: how many places it has, how many are usable, why the others are not."""

    rung: str
    rung_index: int
    usable: int
    total: int
    by_code: dict[str, int]
    budget: BudgetView | None


class PoolLine(msgspec.Struct, frozen=True):
    """One pool's state in one line."""

    id: str
    grouping: Grouping
    category: str | None
    candidates: int
    pairs: int
    first_rung: str | None
    empty: Empty | None


class Occupancy(msgspec.Struct, frozen=True):
    """The ladder now."""

    revision: str
    evaluated_at: datetime
    valid_until: datetime | None
    serving_rung: str | None
    next_rung: str | None
    rungs: tuple[RungOccupancy, ...]
    places: tuple[Place, ...]
    pools: tuple[PoolLine, ...]


def build_occupancy(*, snapshot: Snapshot, now: datetime) -> Occupancy:
    """Build the picture of the ladder from the same judgements as the pools."""
    pools = _stored_pools(snapshot, now)
    placed = build_places(snapshot=snapshot, now=now)
    places = tuple(place for place, _ in sorted(placed, key=lambda found: found[0].rung_index))
    until = min([at for _, at in placed] + [pool.valid_until or NEVER for pool in pools.values()], default=NEVER)
    serving = _rungs_with_survivors(pools["auto/thrifty"])
    return Occupancy(
        revision=snapshot.facts.revision,
        evaluated_at=now,
        valid_until=None if until == NEVER else until,
        serving_rung=serving[0] if serving else None,
        next_rung=serving[1] if len(serving) > 1 else None,
        rungs=tuple(_rung(snapshot, rung, places, now) for rung in Rung),
        places=places,
        pools=tuple(_line(pool) for pool in pools.values()),
    )


def build_pool_lines(*, snapshot: Snapshot, now: datetime) -> tuple[PoolLine, ...]:
    """Return every pool's state in one line, as the occupancy tells it, without working out the places."""
    return tuple(_line(pool) for pool in _stored_pools(snapshot, now).values())


def _stored_pools(snapshot: Snapshot, now: datetime) -> dict[str, Pool]:
    return {
        pool_id: build_pool(snapshot=snapshot, pool_id=known, candidates=None, options=PoolOptions(), now=now)
        for pool_id, known in POOL_IDS.items()
    }


def _rungs_with_survivors(pool: Pool) -> list[str]:
    return list(dict.fromkeys(entry.rung for entry in pool.candidates))


def _line(pool: Pool) -> PoolLine:
    pairs = sum(len(entry.allowed_connection_ids or ("",)) for entry in pool.candidates)
    first = pool.candidates[0].rung if pool.candidates else None
    return PoolLine(pool.id, pool.grouping, pool.category, len(pool.candidates), pairs, first, pool.empty)


def _rung(snapshot: Snapshot, rung: Rung, places: Iterable[Place], now: datetime) -> RungOccupancy:
    here = [place for place in places if place.rung_index == rung]
    by_code: dict[str, int] = {}
    for place in here:
        if place.code is not None:
            by_code[place.code] = by_code.get(place.code, 0) + 1
    usable = sum(place.state is State.USABLE for place in here)
    budget = budget_view(budget=snapshot.facts.budgets.get(rung, Budget()), now=now) if rung in PAID_RUNGS else None
    return RungOccupancy(rung.word, int(rung), usable, len(here), by_code, budget)


def budget_view(*, budget: Budget, now: datetime) -> BudgetView:
    """Return a budget as answers and screens show it; what is left is never below zero."""
    return BudgetView(
        budget.amount_usd,
        budget.spent_usd or Decimal(0),
        held_usd(budget=budget, at=now),
        left_usd(budget=budget, at=now),
        budget.accounting,
        budget.window_start,
        budget.window_end,
        budget.zone,
    )


def with_budgets(*, occupancy: Occupancy, budgets: Mapping[Rung, Budget], now: datetime) -> Occupancy:
    """Return the picture with these budgets: spend that moves no decision need not be in the snapshot (SPEC 3)."""
    views = {rung.word: budget_view(budget=budget, now=now) for rung, budget in budgets.items()}
    rungs = tuple(msgspec.structs.replace(rung, budget=views.get(rung.rung, rung.budget)) for rung in occupancy.rungs)
    return msgspec.structs.replace(occupancy, rungs=rungs)
