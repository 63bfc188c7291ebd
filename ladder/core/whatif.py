"""Evaluate: the stored facts with what a caller says instead, and what the two differ in (SPEC 4).

A list replaces the stored one whole; settings, tiers, capabilities and spend merge key by key.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal

import msgspec

from billing_catalog.core.values import CatalogRow, Tier
from ladder.core.ids import PoolId
from ladder.core.pool import build_pool
from ladder.core.snapshot import Snapshot
from ladder.core.values import (
    PAID_RUNGS,
    Budget,
    Candidate,
    Connection,
    Cooldown,
    Facts,
    LadderSettings,
    Pool,
    PoolOptions,
    Rung,
    Window,
)
from omniroute_admin.common.core.names import NOAUTH

Key = tuple[str, str]
"""(provider, connection id)."""


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """What the caller says instead of what is stored; None is "nothing said".

    `windows` and `cooldowns` are by connection. In `budget_usd` and `spend_usd` a rung that is there with None is no
    limit, and no accounting.
    """

    settings: LadderSettings | None = None
    catalog: tuple[CatalogRow, ...] | None = None
    connections: tuple[Connection, ...] | None = None
    windows: Mapping[Key, tuple[Window, ...]] | None = None
    cooldowns: Mapping[Key, tuple[Cooldown, ...]] | None = None
    breakers: Mapping[str, datetime] | None = None
    budget_usd: Mapping[Rung, Decimal | None] = {}
    spend_usd: Mapping[Rung, Decimal | None] = {}
    tiers: Mapping[tuple[str, str], Tier] = {}
    capabilities: Mapping[tuple[str, str], frozenset[str]] = {}


class Standing(msgspec.Struct, frozen=True, rename={"is_in": "in"}):
    """Where a pair is: in the pool on a rung, or out with a code."""

    is_in: bool
    rung: str | None
    code: str | None


class Change(msgspec.Struct, frozen=True):
    """A pair that stands elsewhere than by the stored state; None is "no such pair there"."""

    provider: str
    model: str | None
    connection_id: str | None
    ref: str | None
    before: Standing | None
    after: Standing | None


def apply_given(*, stored: Facts, given: Given) -> Facts:
    """Return the facts with everything given in place of what is stored."""
    return msgspec.structs.replace(
        stored,
        settings=given.settings or stored.settings,
        catalog=stored.catalog if given.catalog is None else given.catalog,
        connections=_connections(stored, given),
        breakers=stored.breakers if given.breakers is None else given.breakers,
        budgets={rung: _budget(stored, given, rung) for rung in PAID_RUNGS},
        tiers={**stored.tiers, **given.tiers},
        capabilities={**stored.capabilities, **given.capabilities},
    )


def _budget(stored: Facts, given: Given, rung: Rung) -> Budget:
    budget = stored.budgets.get(rung, Budget())
    amount = given.budget_usd.get(rung, budget.amount_usd)
    return msgspec.structs.replace(budget, amount_usd=amount, spent_usd=given.spend_usd.get(rung, budget.spent_usd))


def _connections(stored: Facts, given: Given) -> tuple[Connection, ...]:
    """Return the connections, each with the windows and cooldowns given for it, else with the stored ones."""
    windows = _stored_windows(stored) if given.windows is None else given.windows
    cooldowns = _stored_cooldowns(stored) if given.cooldowns is None else given.cooldowns
    listed = stored.connections if given.connections is None else given.connections
    known = {(one.provider, one.connection_id) for one in listed}
    return tuple(
        msgspec.structs.replace(
            one,
            windows=windows.get((one.provider, one.connection_id), ()),
            cooldowns=cooldowns.get((one.provider, one.connection_id), ()),
        )
        for one in (*listed, *_implied(known, [*windows, *cooldowns]))
    )


def _implied(known: set[Key], named: Iterable[Key]) -> list[Connection]:
    """Return the keyless paths of which something is said although nobody lists them: they are always known."""
    providers = {provider for provider, connection_id in named if connection_id == NOAUTH}
    missing = sorted(provider for provider in providers if (provider, NOAUTH) not in known)
    return [Connection(NOAUTH, provider, "none", is_implied=True) for provider in missing]


def _stored_windows(stored: Facts) -> dict[Key, tuple[Window, ...]]:
    return {(one.provider, one.connection_id): one.windows for one in stored.connections}


def _stored_cooldowns(stored: Facts) -> dict[Key, tuple[Cooldown, ...]]:
    return {(one.provider, one.connection_id): one.cooldowns for one in stored.connections}


def uses_stored(*, given: Given, candidates: Sequence[Candidate] | None, pool_id: PoolId, full: bool) -> bool:
    """Tell whether an answer rests on anything stored; `full` says that every setting was given."""
    lists = (given.settings, given.catalog, given.connections, given.windows, given.cooldowns, given.breakers)
    if candidates is None or not full or any(item is None for item in lists):
        return True
    if any(rung not in given.budget_usd or rung not in given.spend_usd for rung in PAID_RUNGS):
        return True
    models = {(one.provider, one.model) for one in candidates}
    is_filtered = pool_id.capability is not None
    return not models <= set(given.tiers) or (is_filtered and not models <= set(given.capabilities))


def find_changes(
    *,
    before: Snapshot,
    after: Snapshot,
    pool_id: PoolId,
    candidates: Sequence[Candidate] | None,
    options: PoolOptions,
    now: datetime,
) -> list[Change]:
    """Return every pair that stands elsewhere in the second snapshot than in the first."""
    asked = PoolOptions(options.mixed_rungs, options.lowest_rung_only, explain=True)
    old, new = (
        _standings(build_pool(snapshot=snapshot, pool_id=pool_id, candidates=candidates, options=asked, now=now))
        for snapshot in (before, after)
    )
    places = dict.fromkeys([*old, *new])
    return [
        Change(provider, model, connection_id, ref, old.get(place), new.get(place))
        for place in places
        for provider, model, connection_id, ref, _ in [place]
        if old.get(place) != new.get(place)
    ]


def _standings(pool: Pool) -> dict[tuple[str, str | None, str | None, str | None, int], Standing]:
    """Return where each pair is; pairs that a caller names twice are told apart by a count."""
    found: dict[tuple[str, str | None, str | None, str | None, int], Standing] = {}
    times: dict[tuple[str, str | None, str | None, str | None], int] = {}

    def add(provider: str, model: str | None, connection_id: str | None, ref: str | None, where: Standing) -> None:
        pair = provider, model, connection_id, ref
        times[pair] = times.get(pair, 0) + 1
        found[*pair, times[pair]] = where

    for entry in pool.candidates:
        for connection_id in entry.allowed_connection_ids or (entry.connection_id,):
            add(entry.provider, entry.model, connection_id, entry.ref, Standing(True, entry.rung, None))
    for left in pool.excluded or ():
        add(left.provider, left.model, left.connection_id, left.ref, Standing(False, left.rung, left.code))
    return found
