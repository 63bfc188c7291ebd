"""Why one connection is where it is: its verdict, and where each pool puts it (SPEC 4, explain)."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from ladder.core.ids import POOL_IDS
from ladder.core.judge import Account
from ladder.core.pool import build_pool
from ladder.core.quota import QuotaJudgement, judge_windows
from ladder.core.snapshot import Snapshot
from ladder.core.values import Candidate, PoolOptions


class PoolPlace(msgspec.Struct, frozen=True, rename={"is_in": "in"}):
    """Where a pool puts the connection for one model; `code` is None where it is in."""

    id: str
    model: str | None
    is_in: bool
    rung: str | None
    code: str | None


def judge_connection(*, account: Account, snapshot: Snapshot, now: datetime) -> QuotaJudgement:
    """Judge the windows that speak of every model; where each speaks of some models only, all of them (Q6, Q8)."""
    counting = [window for window in account.connection.windows if window.is_reported and not window.is_muted]
    wide = [window for window in counting if window.model is None]
    return judge_windows(windows=wide or counting, settings=snapshot.facts.settings, now=now)


def pool_places(*, account: Account, models: Sequence[str], snapshot: Snapshot, now: datetime) -> list[PoolPlace]:
    """Return where each of the pools puts the connection, model by model."""
    one = account.connection
    candidates = [Candidate(one.provider, model, one.connection_id) for model in models]
    places = []
    for pool_id in POOL_IDS.values():
        pool = build_pool(
            snapshot=snapshot, pool_id=pool_id, candidates=candidates, options=PoolOptions(explain=True), now=now
        )
        places += [PoolPlace(pool.id, entry.model, True, entry.rung, None) for entry in pool.candidates]
        places += [PoolPlace(pool.id, left.model, False, left.rung, left.code) for left in pool.excluded or ()]
    order = {model: place for place, model in enumerate(models)}
    return sorted(places, key=lambda place: order.get(place.model or "", 0))
