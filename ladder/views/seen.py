"""The ladder at one instant, as every page of it is drawn from: one reading of the clock, one snapshot (SPEC 3)."""

from datetime import datetime
from zoneinfo import ZoneInfo

import msgspec
from django.conf import settings

from ladder.core.ids import POOL_IDS
from ladder.core.occupancy import Occupancy, build_occupancy
from ladder.core.pool import build_pool
from ladder.core.snapshot import Snapshot
from ladder.core.values import Pool
from ladder.selectors.screen import ActingCooldown, read_acting_cooldowns
from ladder.selectors.state import get_snapshot
from ladder.views.filters import Asked
from ladder.views.picture import Picture, micros
from omniroute_admin.common.core.screen import Glance


class Seen(msgspec.Struct, frozen=True):
    """What was seen: the prepared facts, where everybody stands, when and in which zone."""

    snapshot: Snapshot
    occupancy: Occupancy
    glance: Glance
    cooldowns: dict[tuple[str, str], ActingCooldown]

    @property
    def picture(self) -> Picture:
        """Return what the picture drawn from this holds on."""
        return Picture(
            revision=int(self.occupancy.revision),
            evaluated_at=micros(self.glance.now),
            valid_until=micros(self._holds_until()),
        )

    def _holds_until(self) -> datetime | None:
        """Return when the picture changes by itself: with a decision, or where a budget window on it ends."""
        ends = [rung.budget.window_end for rung in self.occupancy.rungs if rung.budget]
        return min((at for at in (self.occupancy.valid_until, *ends) if at), default=None)

    def pool(self, asked: Asked) -> Pool:
        """Return the pool that is asked for, exactly as the API answers it over the stored inventory (SPEC 4)."""
        return build_pool(
            snapshot=self.snapshot,
            pool_id=POOL_IDS[asked.pool_id],
            candidates=None,
            options=asked.options,
            now=self.glance.now,
        )


def display_zone() -> ZoneInfo:
    """Return the zone that screens tell times in."""
    return ZoneInfo(str(settings.TIME_ZONE_DISPLAY))


def see(*, now: datetime) -> Seen:
    """Return the ladder at `now`."""
    snapshot = get_snapshot(now=now)
    occupancy = build_occupancy(snapshot=snapshot, now=now)
    return Seen(
        snapshot=snapshot,
        occupancy=occupancy,
        glance=Glance(now=now, zone=display_zone()),
        cooldowns=read_acting_cooldowns(now=now),
    )
