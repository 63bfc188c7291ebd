"""The pools over the stored inventory, kept as the bytes they go out as for as long as they hold (SPEC 4, P9)."""

from datetime import datetime

import msgspec

from ladder.api.answers import Fragments, Told, tell_by_entries
from ladder.core.ids import PoolId
from ladder.core.instants import NEVER
from ladder.core.pool import build_pool
from ladder.core.snapshot import Snapshot
from ladder.core.values import PoolOptions


class _Ready(msgspec.Struct, frozen=True):
    """One answer, and the span in which it is the answer: [since, until)."""

    told: Told
    since: datetime
    until: datetime


_Asked = tuple[str, PoolOptions]
_Kept = tuple[Snapshot, dict[_Asked, _Ready]]
_kept: _Kept | None = None
_fragments: dict[_Asked, Fragments] = {}
"""What the entries of each pool went out as last: most of them are the same at the next revision."""


def ready_pool(*, snapshot: Snapshot, pool_id: PoolId, options: PoolOptions, now: datetime) -> Told:
    """Return the pool of an id over the stored inventory, built only where it is not at hand.

    An answer belongs to its snapshot, so it is as current as that is: its revision was read for this very call.
    """
    ready = _of(snapshot)
    known = ready.get((pool_id.id, options))
    if known is None or not known.since <= now < known.until:
        pool = build_pool(snapshot=snapshot, pool_id=pool_id, candidates=None, options=options, now=now)
        asked = pool_id.id, options
        told, _fragments[asked] = tell_by_entries(pool, _fragments.get(asked, {}))
        known = ready[asked] = _Ready(told, now, pool.valid_until or NEVER)
    return known.told


def _of(snapshot: Snapshot) -> dict[_Asked, _Ready]:
    global _kept  # noqa: PLW0603 - one set of answers per process, of one snapshot
    kept = _kept
    if kept is None or kept[0] is not snapshot:
        kept = _kept = (snapshot, {})
    return kept[1]
