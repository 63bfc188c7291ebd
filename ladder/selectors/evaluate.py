"""Evaluate: the answer over what is given in place of what is stored, and what it would move (SPEC 4)."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from ladder.core.ids import PoolId
from ladder.core.pool import build_pool
from ladder.core.snapshot import Snapshot
from ladder.core.values import Candidate, Facts, LadderSettings, Pool, PoolOptions
from ladder.core.whatif import Change, Given, apply_given, find_changes, uses_stored
from ladder.selectors.ledger import read_budgets
from ladder.selectors.state import get_snapshot, read_facts
from omniroute_admin.common.selectors.revision import read_snapshot


def read_stored(*, at: datetime | None, now: datetime) -> Snapshot:
    """Return the stored state as a decision at `at` sees it: another instant than now has other prices and windows."""
    if at is None:
        return get_snapshot(now=now)
    with read_snapshot() as revision:
        return Snapshot(read_facts(revision=revision, now=at))


def evaluate(
    *,
    stored: Snapshot,
    given: Given,
    is_full: bool,
    pool_id: PoolId,
    candidates: Sequence[Candidate] | None,
    options: PoolOptions,
    now: datetime,
) -> tuple[Pool, list[Change] | None]:
    """Return the pool with everything given in place, and the changes where anything stored was used.

    `is_full` says that every setting was given. Nothing is stored.
    """
    facts = apply_given(stored=_with_settings(stored.facts, given, now), given=given)
    snapshot = Snapshot(facts)
    pool = build_pool(snapshot=snapshot, pool_id=pool_id, candidates=candidates, options=options, now=now)
    if not uses_stored(given=given, candidates=candidates, pool_id=pool_id, full=is_full):
        return pool, None
    changes = find_changes(
        before=stored, after=snapshot, pool_id=pool_id, candidates=candidates, options=options, now=now
    )
    return pool, changes


def _with_settings(stored: Facts, given: Given, now: datetime) -> Facts:
    """Return the stored facts with what is derived from rows derived anew where settings other than theirs meet it.

    That is the held state of the stored windows (Q5), and spend and holds under another budget: the snapshot's need
    only be exact for the budget it has (SPEC 3).
    """
    settings = given.settings or stored.settings
    is_band_same = given.windows is not None or _same_band(settings, stored.settings)
    if is_band_same and not given.budget_usd and not given.spend_usd:
        return stored
    with read_snapshot() as revision:
        if is_band_same:
            return msgspec.structs.replace(stored, budgets=read_budgets(now=now))
        return read_facts(revision=revision, now=now, settings=settings)


def _same_band(first: LadderSettings, second: LadderSettings) -> bool:
    return (first.exit_cutoff_percent, first.reentry_min_remaining_percent) == (
        second.exit_cutoff_percent,
        second.reentry_min_remaining_percent,
    )
