"""The pool: one call that turns a prepared snapshot and candidates into the ordered answer to a router (P1 to P10)."""

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from ladder.core.ids import PoolId
from ladder.core.instants import NEVER
from ladder.core.judge import PairOutcome, Reason
from ladder.core.reasons import PRECEDENCE, Code, EmptyCode, Family
from ladder.core.snapshot import Placed, Snapshot, Split
from ladder.core.values import (
    Candidate,
    Connection,
    Empty,
    Entry,
    Exclusion,
    Grouping,
    MixedRungs,
    Pool,
    PoolOptions,
    Rung,
)
from ladder.core.words import describe, describe_emptiness

_EMPTY_CODE = {
    Grouping.SUBSCRIPTION: EmptyCode.NO_USABLE_PLAN,
    Grouping.THRIFTY: EmptyCode.ALL_EXHAUSTED,
    Grouping.FREE: EmptyCode.NO_FREE_CAPACITY,
}
_RUNGS = tuple(Rung)
_WORDS = tuple(rung.word for rung in Rung)


class Judged(msgspec.Struct, frozen=True, gc=False):
    """A candidate, where it is judged, and what became of its pairs."""

    candidate: Candidate
    placed: Placed
    split: Split


class LeftOut(msgspec.Struct, frozen=True):
    """One pair that is not in the pool; `connection_id` None is a candidate without connections."""

    candidate: Candidate
    connection_id: str | None
    rung: Rung | None
    reason: Reason


def build_pool(
    *,
    snapshot: Snapshot,
    pool_id: PoolId,
    candidates: Sequence[Candidate] | None,
    options: PoolOptions,
    now: datetime,
) -> Pool:
    """Build the pool of an id over the caller's candidates, or over the stored inventory where they are None.

    The same facts, candidates, options and `now` give the same answer; it stays the same in
    [evaluated_at, valid_until) (P9). An empty pool is an answer, never widened (P3).
    """
    snapshot.move_to(now)
    without_models: tuple[Connection, ...] = ()
    reordered_at = NEVER
    if candidates is None:
        inventory = snapshot.inventory(now=now)
        candidates, without_models, reordered_at = inventory.candidates, inventory.without_models, inventory.change_at
    judged, ends = _judge(snapshot, pool_id, candidates, now)
    buckets = _fill_rungs(judged, options.mixed_rungs)
    serving = next((rung for rung in _RUNGS if buckets[rung]), None)
    cut = _RUNGS if serving is None or not options.lowest_rung_only else (serving,)
    entries = [entry for rung in cut for entry in buckets[rung]]
    limit = serving if options.lowest_rung_only else None
    if limit is not None:
        ends = _cut_until(judged, options.mixed_rungs, limit)
    if reordered_at < ends:
        later = snapshot.later_models(after=now, before=ends)
        ends = min(ends, _order_until(judged, options.mixed_rungs, limit, later))
    left_out = None
    if options.explain or not entries:
        left_out = list(_left_out(judged, options.mixed_rungs, limit, without_models))
    return Pool(
        id=pool_id.id,
        grouping=pool_id.grouping,
        category=pool_id.category,
        revision=snapshot.facts.revision,
        evaluated_at=now,
        valid_until=None if ends == NEVER else ends,
        candidates=entries,
        excluded_counts=_count(judged, options.mixed_rungs, limit, without_models),
        excluded=[_explain(snapshot, item) for item in left_out or ()] if options.explain else msgspec.UNSET,
        empty=None if entries else _emptiness(snapshot, pool_id, left_out or []),
    )


def _judge(
    snapshot: Snapshot, pool_id: PoolId, candidates: Iterable[Candidate], now: datetime
) -> tuple[list[Judged], datetime]:
    """Judge every candidate; with it comes the first instant at which one of them changes by itself (P9)."""
    grouping, capability = pool_id.grouping, pool_id.capability
    memory = snapshot.placed_models(grouping=grouping, capability=capability)
    judged: list[Judged] = []
    until = NEVER
    for one in candidates:
        placed = memory.get((one.provider, one.model))
        if placed is None or placed.change_at <= now:
            placed = snapshot.place(
                provider=one.provider, model=one.model, grouping=grouping, capability=capability, now=now
            )
        ids = one.connection_id if one.allowed_connection_ids is None else one.allowed_connection_ids
        split = placed.scope.splits.get(ids)  # type: ignore[arg-type]
        if split is None or split.change_at <= now:
            split = snapshot.split(scope=placed.scope, ids=ids, now=now)  # type: ignore[arg-type]
        ends = split.change_at if placed.change_at == NEVER else split.holds_until(placed)
        until = min(until, ends)
        judged.append(Judged(one, placed, split))
    return judged, until


def _fill_rungs(judged: Iterable[Judged], mixed_rungs: MixedRungs) -> list[list[Entry]]:
    """Put the survivors on their rungs; within a rung the incoming order stands (P4, P5)."""
    buckets: list[list[Entry]] = [[] for _ in _RUNGS]
    is_merged = mixed_rungs is MixedRungs.MERGE
    for item in judged:
        by_rung = item.split.by_rung
        if is_merged and len(by_rung) > 1:
            by_rung = (_merged(item.split),)
        for rung, ids, may_bill in by_rung:
            buckets[rung].append(_entry(item.candidate, rung, ids, may_bill))
    return buckets


def _merged(split: Split) -> tuple[Rung, tuple[str, ...], bool]:
    """Return one entry's content on the lowest rung, with all survivors in the order given (P5)."""
    ids = tuple(outcome.connection_id for outcome in split.outcomes if outcome.reason is None)
    return split.by_rung[0][0], ids, any(may_bill for _, _, may_bill in split.by_rung)


def _entry(candidate: Candidate, rung: Rung, ids: tuple[str, ...], may_bill: bool) -> Entry:
    return Entry(
        candidate.provider,
        candidate.model,
        _WORDS[rung],
        int(rung),
        candidate.connection_id,
        None if candidate.allowed_connection_ids is None else ids,
        candidate.ref,
        may_bill,
    )


def _place_of(split: Split, outcome: PairOutcome, mixed_rungs: MixedRungs) -> Rung | None:
    """Return the rung a pair would be served on: its own, or that of its merged entry where lower (P5)."""
    if outcome.rung is None or mixed_rungs is MixedRungs.SPLIT or not split.by_rung:
        return outcome.rung
    return min(outcome.rung, split.by_rung[0][0])


def _is_above(split: Split, outcome: PairOutcome, mixed_rungs: MixedRungs, serving: Rung) -> bool:
    """Tell whether a pair is, or would be, on a rung above the one that serves."""
    place = _place_of(split, outcome, mixed_rungs)
    return place is not None and place > serving


def _cut_until(judged: Iterable[Judged], mixed_rungs: MixedRungs, serving: Rung) -> datetime:
    """Return the first instant at which an answer cut after the serving rung changes (P6, P9).

    Above that rung no return time is told, so a change of nothing else is none.
    """
    until = NEVER
    for item in judged:
        if item.split.holds_until(item.placed) >= until:
            continue
        until = min(until, item.split.placed_until(item.placed))
        for outcome in item.split.outcomes:
            is_above = _is_above(item.split, outcome, mixed_rungs, serving)
            until = min(until, outcome.recode_at if is_above else outcome.change_at)
    return until


def _order_until(
    judged: Sequence[Judged],
    mixed_rungs: MixedRungs,
    serving: Rung | None,
    later: Iterable[tuple[datetime, list[tuple[str, str]]]],
) -> datetime:
    """Return when another order of the stored models, or another set of them, first shows in the answer (P9)."""

    def shown(items: Sequence[Judged]) -> tuple[list[list[Entry]], list[LeftOut]]:
        buckets = _fill_rungs(items, mixed_rungs)
        return buckets if serving is None else [buckets[serving]], list(_left_out(items, mixed_rungs, serving, ()))

    by_model = {(item.candidate.provider, item.candidate.model): item for item in judged}
    present = shown(judged)
    for instant, models in later:
        if by_model.keys() != set(models) or shown([by_model[model] for model in models]) != present:
            return instant
    return NEVER


def _reason_in_pool(split: Split, outcome: PairOutcome, mixed_rungs: MixedRungs, serving: Rung | None) -> Reason | None:
    """Return why a pair is not in the pool, `lower_rung_serves` included (P6, P8); None where it is in.

    A pair that is out for another reason above the serving rung would not return with that reason's end alone, so its
    return is unknown.
    """
    if serving is None or not _is_above(split, outcome, mixed_rungs, serving):
        return outcome.reason
    if outcome.reason is None:
        return Reason(Code.LOWER_RUNG_SERVES)
    if outcome.reason.code.family is Family.NEVER:
        return outcome.reason
    return msgspec.structs.replace(outcome.reason, returns_at=None)


def _left_out(
    judged: Iterable[Judged], mixed_rungs: MixedRungs, serving: Rung | None, without_models: Iterable[Connection]
) -> Iterable[LeftOut]:
    """Yield every pair that is not in the pool, once (P8)."""
    for item in judged:
        if not item.split.outcomes:
            yield LeftOut(item.candidate, None, None, Reason(Code.NO_CONNECTIONS))
        for outcome in item.split.outcomes:
            reason = _reason_in_pool(item.split, outcome, mixed_rungs, serving)
            if reason is not None:
                yield LeftOut(item.candidate, outcome.connection_id, outcome.rung, reason)
    for one in without_models:
        yield LeftOut(Candidate(one.provider, ""), one.connection_id, None, Reason(Code.NO_MODELS))


def _count(
    judged: Iterable[Judged], mixed_rungs: MixedRungs, serving: Rung | None, without_models: Sequence[Connection]
) -> dict[str, int]:
    """Count the pairs that are not in the pool by code, in the order of precedence."""
    counts: dict[Code, int] = {}
    if serving is not None:
        for left in _left_out(judged, mixed_rungs, serving, without_models):
            counts[left.reason.code] = counts.get(left.reason.code, 0) + 1
        return _in_order(counts)
    for item in judged:
        if not item.split.outcomes:
            counts[Code.NO_CONNECTIONS] = counts.get(Code.NO_CONNECTIONS, 0) + 1
        for code, count in item.split.counts:
            counts[code] = counts.get(code, 0) + count
    if without_models:
        counts[Code.NO_MODELS] = len(without_models)
    return _in_order(counts)


def _in_order(counts: dict[Code, int]) -> dict[str, int]:
    return {code.value: counts[code] for code in Code if code in counts}


def _explain(snapshot: Snapshot, left: LeftOut) -> Exclusion:
    candidate, reason = left.candidate, left.reason
    return Exclusion(
        provider=candidate.provider,
        model=candidate.model or None,
        connection_id=left.connection_id,
        ref=candidate.ref,
        rung=None if left.rung is None else left.rung.word,
        code=reason.code.value,
        family=reason.code.family.value,
        window=reason.window,
        detail=describe(
            snapshot=snapshot, provider=candidate.provider, connection_id=left.connection_id, reason=reason
        ),
        returns_at=reason.returns_at,
    )


def _emptiness(snapshot: Snapshot, pool_id: PoolId, left_out: Sequence[LeftOut]) -> Empty:
    """Say why the pool is empty; it may be filled at the earliest return, unless one is unknown (SPEC 4)."""
    code = _EMPTY_CODE[pool_id.grouping] if left_out else EmptyCode.NO_CANDIDATES
    for_now = [left.reason.returns_at for left in left_out if left.reason.code.family is Family.FOR_NOW]
    known = [at for at in for_now if at is not None]
    returns_at = min(known) if known and len(known) == len(for_now) else None
    first = min(left_out, key=lambda left: _urgency(left.reason), default=None)
    why = None if first is None or first.reason.code is Code.NO_CONNECTIONS else _name_reason(snapshot, first)
    return Empty(code.value, describe_emptiness(code=code, why=why, is_anything_listed=bool(left_out)), returns_at)


def _name_reason(snapshot: Snapshot, left: LeftOut) -> str:
    """Return the sentence of a pair's reason, with the pair's name in it."""
    name, detail = f"{left.candidate.provider}/{left.connection_id}", _explain(snapshot, left).detail
    return detail if name in detail else f"{name}: {detail}"


def _urgency(reason: Reason) -> tuple[bool, int]:
    """Order reasons so that the one an operator can mend soonest is told first: for now before never."""
    return reason.code.family is Family.NEVER, PRECEDENCE[reason.code]
