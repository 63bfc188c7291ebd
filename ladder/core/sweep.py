"""One pass over the candidates: survivors on their rungs, the others counted, until when it stands (P1 to P5, P9).

This loop is what a pool costs, so it reads what is remembered, and makes nothing that the answer does not hold.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import cast

import msgspec

from ladder.core.ids import PoolId
from ladder.core.instants import NEVER
from ladder.core.reasons import Code
from ladder.core.scope import Listed, Shape, mark_of, survivors_of
from ladder.core.snapshot import Placed, Snapshot
from ladder.core.values import Candidate, Entry, MixedRungs, Rung

RUNGS = tuple(Rung)
Models = dict[str, Placed]


class Sweep(msgspec.Struct, frozen=True):
    """Entries by rung in the order given, pairs that are out by code, and the first instant at which that changes."""

    buckets: tuple[list[Entry], ...]
    counts: dict[Code, int]
    until: datetime


def sweep(
    *, snapshot: Snapshot, pool_id: PoolId, candidates: Iterable[Candidate], mixed_rungs: MixedRungs, now: datetime
) -> Sweep:
    """Judge every candidate and put its survivors on their rungs; within a rung the incoming order stands (P4, P5)."""
    grouping, capability = pool_id.grouping, pool_id.capability
    known, nowhere = snapshot.placed_models(grouping=grouping, capability=capability).get, cast("Models", {})
    buckets: tuple[list[Entry], ...] = tuple([] for _ in RUNGS)
    left: list[dict[Code, int]] = []
    until, is_split = NEVER, mixed_rungs is MixedRungs.SPLIT
    for one in candidates:
        provider, model, several = one.provider, one.model, one.allowed_connection_ids
        placed = known(provider, nowhere).get(model)
        if placed is None or placed.change_at <= now:
            placed = snapshot.place(provider=provider, model=model, grouping=grouping, capability=capability, now=now)
        scope = placed.scope
        if scope.until <= now:
            scope.drop_past(now)
        ids: tuple[str, ...] = (one.connection_id,) if several is None else several  # type: ignore[assignment]
        listed = scope.lists.get(ids) or _read(snapshot, placed, ids, now)
        is_ready = type(listed) is Listed
        ends = listed.until if is_ready else scope.until  # type: ignore[union-attr]
        if ends < until:
            until = ends if is_ready else min(until, scope.until_of(ids))
        if placed.change_at is not NEVER and placed.change_at < until:
            until = min(until, snapshot.placed_until(placed=placed, ids=ids, now=now))
        for rung, word, who, may_bill in listed.by_rung if is_split else listed.merged:
            survivors = who if is_ready else survivors_of(ids, who)  # type: ignore[arg-type]
            told = None if several is None else survivors
            buckets[rung].append(Entry(provider, model, word, rung, one.connection_id, told, one.ref, may_bill))  # type: ignore[arg-type]
        if listed.counts:
            left.append(listed.counts)
    return Sweep(buckets, _counts(left), until)


def sweep_stored(*, snapshot: Snapshot, pool_id: PoolId, mixed_rungs: MixedRungs, now: datetime) -> Sweep:
    """Return what `sweep` does over the stored inventory; what a provider's models came to is kept while it stands."""
    inventory, kind = snapshot.inventory(now=now), ("sweep", pool_id.grouping, pool_id.capability, mixed_rungs)
    known, parts = snapshot.kept_of(kind), []
    for provider, candidates in inventory.by_provider.items():
        part = known.get(provider)
        if part is None or part.until <= now:
            part = known[provider] = sweep(
                snapshot=snapshot, pool_id=pool_id, candidates=candidates, mixed_rungs=mixed_rungs, now=now
            )
        parts.append(part)
    return _joined(parts, inventory.places)


def _joined(parts: list[Sweep], places: Mapping[tuple[str, str], int] | None) -> Sweep:
    """Return several passes as one, their entries in the order of `places`."""
    buckets: tuple[list[Entry], ...] = tuple([one for part in parts for one in part.buckets[rung]] for rung in RUNGS)
    if places is not None:
        for bucket in buckets:
            bucket.sort(key=lambda one: places[one.provider, one.model])
    return Sweep(buckets, _counts(part.counts for part in parts), min((part.until for part in parts), default=NEVER))


def _read(snapshot: Snapshot, placed: Placed, ids: tuple[str, ...], now: datetime) -> Listed | Shape:
    """Return what a list comes to that is not remembered, judging whom nobody asked for yet."""
    marks = (*map(placed.scope.marks.get, ids),)
    if None in marks:
        marks = (*map(mark_of, snapshot.outcomes(scope=placed.scope, ids=ids, now=now)),)
    return placed.scope.listed(ids, marks)  # type: ignore[arg-type]


def _counts(left: Iterable[dict[Code, int]]) -> dict[Code, int]:
    counts: dict[Code, int] = {}
    for some in left:
        for code, count in some.items():
            counts[code] = counts.get(code, 0) + count
    return counts
