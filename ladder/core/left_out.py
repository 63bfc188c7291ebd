"""The pairs that are not in a pool, one by one: why, and when that changes (P6, P8, P9). Asked only where told."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

import msgspec

from ladder.core.ids import PoolId
from ladder.core.instants import NEVER
from ladder.core.judge import PairOutcome, Reason
from ladder.core.reasons import Code, Family
from ladder.core.snapshot import Placed, Snapshot
from ladder.core.values import Candidate, Connection, MixedRungs, Rung


class Judged(msgspec.Struct, frozen=True, gc=False):
    """A candidate, where it is judged, and what became of its pairs in turn."""

    candidate: Candidate
    placed: Placed
    outcomes: tuple[PairOutcome, ...]

    @property
    def lowest(self) -> Rung | None:
        """Return the lowest rung that a pair of it survives on."""
        rungs = [one.rung for one in self.outcomes if one.reason is None and one.rung is not None]
        return min(rungs, default=None)


class LeftOut(msgspec.Struct, frozen=True):
    """One pair that is not in the pool; `connection_id` None is a candidate without connections."""

    candidate: Candidate
    connection_id: str | None
    rung: Rung | None
    reason: Reason


def ids_of(candidate: Candidate) -> tuple[str, ...]:
    """Return the connections of a candidate, one or a list."""
    listed = candidate.allowed_connection_ids
    return listed if listed is not None else (candidate.connection_id or "",)


def judge(*, snapshot: Snapshot, pool_id: PoolId, candidates: Iterable[Candidate], now: datetime) -> list[Judged]:
    """Return every candidate with what became of its pairs."""
    grouping, capability = pool_id.grouping, pool_id.capability
    judged = []
    for one in candidates:
        placed = snapshot.placed(
            provider=one.provider, model=one.model, grouping=grouping, capability=capability, now=now
        )
        judged.append(Judged(one, placed, snapshot.outcomes(scope=placed.scope, ids=ids_of(one), now=now)))
    return judged


def find_left_out(
    *,
    judged: Iterable[Judged],
    mixed_rungs: MixedRungs,
    serving: Rung | None,
    without_models: Iterable[Connection] = (),
) -> Iterator[LeftOut]:
    """Yield every pair that is not in the pool, once (P8); `serving` is the rung after which the answer is cut (P6)."""
    for item in judged:
        if not item.outcomes:
            yield LeftOut(item.candidate, None, None, Reason(Code.NO_CONNECTIONS))
        lowest = item.lowest if mixed_rungs is MixedRungs.MERGE else None
        for outcome in item.outcomes:
            reason = _reason_in_pool(outcome, lowest, serving)
            if reason is not None:
                yield LeftOut(item.candidate, outcome.connection_id, outcome.rung, reason)
    for one in without_models:
        yield LeftOut(Candidate(one.provider, ""), one.connection_id, None, Reason(Code.NO_MODELS))


def _reason_in_pool(outcome: PairOutcome, lowest: Rung | None, serving: Rung | None) -> Reason | None:
    """Return why a pair is not in the pool, `lower_rung_serves` included (P6, P8); None where it is in.

    A pair that is out for another reason above the serving rung would not return with that reason's end alone, so its
    return is unknown.
    """
    if serving is None or not _is_above(outcome, lowest, serving):
        return outcome.reason
    if outcome.reason is None:
        return Reason(Code.LOWER_RUNG_SERVES)
    if outcome.reason.code.family is Family.NEVER:
        return outcome.reason
    return msgspec.structs.replace(outcome.reason, returns_at=None)


def _is_above(outcome: PairOutcome, lowest: Rung | None, serving: Rung) -> bool:
    """Tell whether a pair is, or would be, on a rung above the serving one; `lowest` is its merged entry's (P5)."""
    rung = outcome.rung
    return rung is not None and (rung if lowest is None else min(rung, lowest)) > serving


def cut_until(
    *, snapshot: Snapshot, judged: Iterable[Judged], mixed_rungs: MixedRungs, serving: Rung, now: datetime
) -> datetime:
    """Return the first instant at which an answer cut after the serving rung changes (P6, P9).

    Above that rung no return time is told, so a change of nothing else is none.
    """
    until = NEVER
    for item in judged:
        ids = ids_of(item.candidate)
        if item.placed.change_at < until:
            until = min(until, snapshot.placed_until(placed=item.placed, ids=ids, now=now))
        lowest = item.lowest if mixed_rungs is MixedRungs.MERGE else None
        for outcome in item.outcomes:
            is_above = _is_above(outcome, lowest, serving)
            until = min(until, outcome.recode_at if is_above else outcome.change_at)
    return until


def count_codes(left_out: Sequence[LeftOut]) -> dict[Code, int]:
    """Count pairs by code."""
    counts: dict[Code, int] = {}
    for left in left_out:
        counts[left.reason.code] = counts.get(left.reason.code, 0) + 1
    return counts
