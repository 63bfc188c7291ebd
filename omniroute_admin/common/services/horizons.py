"""Move the horizons: each only ever forward."""

from datetime import datetime

from django.db.models import F
from django.db.models.functions import Greatest

from omniroute_admin.common.models import Horizon


def move_horizon(*, name: str, before: datetime, now: datetime) -> datetime:
    """Move a horizon to `before`, unless it is further already, and return where it stands.

    Call it no later than in the transaction that removes.
    """
    row, is_new = Horizon.objects.get_or_create(pk=name, defaults={"before": before, "moved_at": now})
    if not is_new:
        Horizon.objects.filter(pk=name, before__lt=before).update(before=before, moved_at=now)
    return max(row.before, before)


def note_removed(*, name: str, count: int, now: datetime) -> None:
    """Count rows that were removed behind a horizon, in the transaction that removed them."""
    if count:
        moved = Greatest(F("moved_at"), now)
        Horizon.objects.filter(pk=name).update(removed=F("removed") + count, moved_at=moved)
