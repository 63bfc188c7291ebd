"""A question to the decision as a value, and how the tests put it."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import msgspec

from ladder.core.ids import POOL_IDS
from ladder.core.pool import build_pool
from ladder.core.snapshot import Snapshot
from ladder.core.values import (
    Candidate,
    Facts,
    MixedRungs,
    Pool,
    PoolOptions,
)

NOW = datetime(2026, 8, 22, 12, 0, tzinfo=UTC)
TICK = timedelta(microseconds=1)

SPLIT = PoolOptions(explain=True)
MERGE = PoolOptions(mixed_rungs=MixedRungs.MERGE, explain=True)
LOWEST = PoolOptions(lowest_rung_only=True, explain=True)
LOWEST_MERGE = PoolOptions(MixedRungs.MERGE, lowest_rung_only=True, explain=True)
OPTIONS = {"split": SPLIT, "merge": MERGE, "lowest": LOWEST, "lowest merge": LOWEST_MERGE}


class World(msgspec.Struct, frozen=True):
    """Facts, the candidates a caller names (None: the stored inventory), and an instant."""

    facts: Facts
    candidates: tuple[Candidate, ...] | None
    now: datetime


def instants_in(facts: Facts) -> Iterator[datetime]:
    """Yield every instant that the facts name, and those at which a reading ages out."""
    age = timedelta(seconds=facts.settings.max_reading_age_seconds)
    for one in facts.connections:
        yield from (item.effective_until for item in one.cooldowns if item.effective_until)
        yield from (window.reset_at for window in one.windows if window.reset_at)
        yield from (window.observed_at + age + TICK for window in one.windows if window.observed_at)
    yield from facts.breakers.values()
    for budget in facts.budgets.values():
        yield from (hold.expires_at for hold in budget.holds)
        yield from [budget.window_end] if budget.window_end else []
    for price in facts.prices:
        yield price.effective_from
        yield from [price.effective_to] if price.effective_to else []


def ask(world: World, *, pool_id: str, options: PoolOptions = SPLIT, at: datetime | None = None) -> Pool:
    """Build a pool from a fresh snapshot, at the world's instant or another."""
    return ask_of(Snapshot(world.facts), world, pool_id=pool_id, options=options, at=at)


def ask_of(
    snapshot: Snapshot, world: World, *, pool_id: str, options: PoolOptions = SPLIT, at: datetime | None = None
) -> Pool:
    """Build a pool from a snapshot that may have been asked before."""
    return build_pool(
        snapshot=snapshot,
        pool_id=POOL_IDS[pool_id],
        candidates=world.candidates,
        options=options,
        now=world.now if at is None else at,
    )


def without_times(pool: Pool) -> Pool:
    """Return the answer without the two instants that say when it was made and how long it holds."""
    return msgspec.structs.replace(pool, evaluated_at=NOW, valid_until=None)


def pairs_in(pool: Pool) -> list[tuple[str | None, str, str | None, str]]:
    """Return the pairs of a pool as (ref, model, connection id, rung), in order."""
    return [
        (entry.ref, f"{entry.provider}/{entry.model}", connection_id, entry.rung)
        for entry in pool.candidates
        for connection_id in (entry.allowed_connection_ids or (entry.connection_id,))
    ]
