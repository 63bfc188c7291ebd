"""The ladder at one instant, as every page of it is drawn from: one reading of the clock, one snapshot (SPEC 3)."""

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from ladder.core.ids import POOL_IDS
from ladder.core.money import money_instants
from ladder.core.occupancy import Occupancy, build_occupancy, with_budgets
from ladder.core.pool import build_pool
from ladder.core.snapshot import Snapshot
from ladder.core.values import Budget, Pool, Rung
from ladder.models import RungBudget
from ladder.selectors.screen import ActingCooldown, read_acting_cooldowns, read_labels
from ladder.selectors.spend import SpendFilter
from ladder.selectors.spend_windows import WindowSpend, read_present_spend
from ladder.selectors.state import get_present_with
from ladder.views.filters import Asked
from ladder.views.picture import Picture, micros
from ladder.views.presenting.names import own_labels
from omniroute_admin.common import clock
from omniroute_admin.common.core.screen import Glance
from omniroute_admin.common.selectors.heartbeat import PeriodicState, PeriodicWork, periodic_work
from omniroute_admin.common.zone import display_zone


class Seen(msgspec.Struct, frozen=True):
    """What was seen: the prepared facts, where everybody stands, the money as it is, when and in which zone."""

    snapshot: Snapshot
    occupancy: Occupancy
    budgets: Mapping[Rung, Budget]
    shown: int
    glance: Glance
    cooldowns: dict[tuple[str, str], tuple[ActingCooldown, ...]]
    labels: dict[tuple[str, str], str]
    work: PeriodicWork
    spent: Mapping[Rung, WindowSpend]

    @property
    def picture(self) -> Picture:
        """Return what the picture drawn from this holds on."""
        return Picture(
            revision=int(self.occupancy.revision),
            shown=self.shown,
            evaluated_at=micros(self.glance.now),
            valid_until=micros(holds_until(occupancy=self.occupancy, budgets=self.budgets, also=self.work.late_at)),
        )

    def pool(self, asked: Asked) -> Pool:
        """Return the pool that is asked for, exactly as the API answers it over the stored inventory (SPEC 4)."""
        return build_pool(
            snapshot=self.snapshot,
            pool_id=POOL_IDS[asked.pool_id],
            candidates=None,
            options=asked.options,
            now=self.glance.now,
        )


def holds_until(
    *, occupancy: Occupancy, budgets: Mapping[Rung, Budget], also: datetime | None = None
) -> datetime | None:
    """Return when the picture changes by itself: with a decision (P9), where money or `also` ends."""
    ends = [at for budget in budgets.values() for at in money_instants(budget)]
    coming = [at for at in (occupancy.valid_until, also, *ends) if at and at > occupancy.evaluated_at]
    return min(coming, default=None)


class _Kept(msgspec.Struct, frozen=True):
    """The occupancy that was worked out last; every page open on the same state is drawn from it."""

    snapshot: Snapshot
    occupancy: Occupancy
    until: datetime | None

    def serves(self, *, snapshot: Snapshot, now: datetime) -> bool:
        """Tell whether it would come out the same now."""
        is_inside = self.occupancy.evaluated_at <= now and (self.until is None or now < self.until)
        return self.snapshot is snapshot and is_inside


_kept: _Kept | None = None


def _occupancy(*, snapshot: Snapshot, now: datetime) -> Occupancy:
    global _kept  # noqa: PLW0603 - one per process; it names the snapshot it is of, so it is never another's
    kept = _kept
    if kept is None or not kept.serves(snapshot=snapshot, now=now):
        made = build_occupancy(snapshot=snapshot, now=now)
        kept = _kept = _Kept(snapshot, made, made.valid_until)
    return kept.occupancy


def see_bare(*, now: datetime, spent_by: SpendFilter | None = None) -> Seen:
    """Return the ladder at `now` without what only its own page tells: cooldowns, labels, whether a worker lives.

    `spent` is what is named by `spent_by`, read in the same view; nothing where that is None.
    """
    work = PeriodicWork(None, PeriodicState.RUNNING, None)
    return _seen(now=now, cooldowns={}, labels={}, work=work, spent_by=spent_by)


def see(*, now: datetime) -> Seen:
    """Return the ladder at `now`."""
    return _seen(
        now=now,
        cooldowns=read_acting_cooldowns(now=now),
        labels=own_labels(read_labels()),
        work=periodic_work(now=now, started_at=clock.STARTED_AT),
    )


def _seen(
    *,
    now: datetime,
    cooldowns: dict[tuple[str, str], tuple[ActingCooldown, ...]],
    labels: dict[tuple[str, str], str],
    work: PeriodicWork,
    spent_by: SpendFilter | None = None,
) -> Seen:
    def also(rows: Sequence[RungBudget]) -> Mapping[Rung, WindowSpend]:
        return {} if spent_by is None else read_present_spend(now=now, among=spent_by, rows=rows)

    snapshot, budgets, shown, spent = get_present_with(now=now, also=also)
    drawn = _occupancy(snapshot=snapshot, now=now)
    return Seen(
        snapshot=snapshot,
        occupancy=with_budgets(occupancy=drawn, budgets=budgets, now=now),
        budgets=budgets,
        shown=shown,
        glance=Glance(now=now, zone=display_zone()),
        cooldowns=cooldowns,
        labels=labels,
        work=work,
        spent=spent,
    )
