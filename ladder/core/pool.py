"""The pool: one call that turns a prepared snapshot and candidates into the ordered answer to a router (P1 to P10)."""

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from ladder.core.ids import PoolId
from ladder.core.instants import NEVER
from ladder.core.judge import Reason
from ladder.core.left_out import LeftOut, count_codes, cut_until, find_left_out, judge
from ladder.core.reasons import PRECEDENCE, Code, EmptyCode, Family
from ladder.core.snapshot import Snapshot
from ladder.core.sweep import RUNGS, Sweep, sweep, sweep_stored
from ladder.core.values import (
    Candidate,
    Connection,
    Empty,
    Entry,
    Exclusion,
    Grouping,
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


class _Asked(msgspec.Struct, frozen=True):
    """What one pool is built from and over; `without_models` and `reordered_at` are the stored inventory's."""

    snapshot: Snapshot
    pool_id: PoolId
    options: PoolOptions
    now: datetime
    candidates: Sequence[Candidate]
    is_stored: bool = False
    without_models: tuple[Connection, ...] = ()
    reordered_at: datetime = NEVER

    def swept(self) -> Sweep:
        """Return one pass over the candidates."""
        if not self.is_stored:
            return self.swept_over(self.candidates)
        return sweep_stored(
            snapshot=self.snapshot, pool_id=self.pool_id, mixed_rungs=self.options.mixed_rungs, now=self.now
        )

    def swept_over(self, candidates: Sequence[Candidate]) -> Sweep:
        """Return one pass over other candidates."""
        return sweep(
            snapshot=self.snapshot,
            pool_id=self.pool_id,
            candidates=candidates,
            mixed_rungs=self.options.mixed_rungs,
            now=self.now,
        )


class _Detail(msgspec.Struct, frozen=True):
    """What is left out, pair by pair, and until when an answer that is cut stands."""

    left_out: list[LeftOut]
    until: datetime


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
    asked = _ask(snapshot, pool_id, candidates, options, now)
    swept = asked.swept()
    serving = next((rung for rung in RUNGS if swept.buckets[rung]), None)
    limit = serving if options.lowest_rung_only else None
    entries = _shown(swept, limit)
    is_told = options.explain or not entries or limit is not None
    detail = _detail(asked, limit, swept) if is_told else None
    ends = _until(asked, swept.until if detail is None else detail.until, entries, limit)
    return Pool(
        id=pool_id.id,
        grouping=pool_id.grouping,
        category=pool_id.category,
        revision=snapshot.facts.revision,
        evaluated_at=now,
        valid_until=None if ends == NEVER else ends,
        candidates=entries,
        excluded_counts=_in_order(_counts(asked, swept) if detail is None else count_codes(detail.left_out)),
        excluded=[_explain(snapshot, item) for item in detail.left_out]
        if options.explain and detail is not None
        else msgspec.UNSET,
        empty=_emptiness(snapshot, pool_id, detail.left_out) if detail is not None and not entries else None,
    )


def _ask(
    snapshot: Snapshot,
    pool_id: PoolId,
    candidates: Sequence[Candidate] | None,
    options: PoolOptions,
    now: datetime,
) -> _Asked:
    if candidates is not None:
        return _Asked(snapshot, pool_id, options, now, candidates)
    stored = snapshot.inventory(now=now)
    return _Asked(snapshot, pool_id, options, now, stored.candidates, True, stored.without_models, stored.change_at)


def _shown(swept: Sweep, limit: Rung | None) -> list[Entry]:
    """Return the entries in order of escalation; those of one rung only where the answer is cut there (P6)."""
    shown = RUNGS if limit is None else (limit,)
    return [entry for rung in shown for entry in swept.buckets[rung]]


def _detail(asked: _Asked, limit: Rung | None, swept: Sweep) -> _Detail:
    mixed_rungs, snapshot, now = asked.options.mixed_rungs, asked.snapshot, asked.now
    judged = judge(snapshot=snapshot, pool_id=asked.pool_id, candidates=asked.candidates, now=now)
    left_out = find_left_out(judged=judged, mixed_rungs=mixed_rungs, serving=limit, without_models=asked.without_models)
    until = swept.until
    if limit is not None:
        until = cut_until(snapshot=snapshot, judged=judged, mixed_rungs=mixed_rungs, serving=limit, now=now)
    return _Detail(list(left_out), until)


def _counts(asked: _Asked, swept: Sweep) -> Mapping[Code, int]:
    without = len(asked.without_models)
    return {**swept.counts, Code.NO_MODELS: without} if without else swept.counts


def _until(asked: _Asked, until: datetime, entries: list[Entry], limit: Rung | None) -> datetime:
    """Return when the answer first changes; another order or set of stored models counts only where it shows (P9)."""
    if asked.reordered_at >= until:
        return until
    by_model = {(one.provider, one.model): one for one in asked.candidates}
    present = entries, _left_out_now(asked, asked.candidates, limit)
    for instant, models in asked.snapshot.later_models(after=asked.now, before=until):
        if by_model.keys() != set(models):
            return instant
        later = [by_model[model] for model in models]
        if (_shown(asked.swept_over(later), limit), _left_out_now(asked, later, limit)) != present:
            return instant
    return until


def _left_out_now(asked: _Asked, candidates: Sequence[Candidate], limit: Rung | None) -> list[LeftOut]:
    judged = judge(snapshot=asked.snapshot, pool_id=asked.pool_id, candidates=candidates, now=asked.now)
    return list(find_left_out(judged=judged, mixed_rungs=asked.options.mixed_rungs, serving=limit))


def _in_order(counts: Mapping[Code, int]) -> dict[str, int]:
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
