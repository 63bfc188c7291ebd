"""When a delivery that failed is tried again, and when it is given up."""

from datetime import datetime, timedelta
from enum import StrEnum


class DeliveryState(StrEnum):
    """How a delivery stands. The first three are under way."""

    QUEUED = "queued"
    FAILED = "failed"
    HELD = "held_for_quiet"
    SENT = "sent"
    GIVEN_UP = "given_up"
    ONLY_LOGGED = "only_logged"
    """Raised and resolved within quiet hours: nobody is told of it afterwards."""


UNDER_WAY = (DeliveryState.QUEUED, DeliveryState.FAILED, DeliveryState.HELD)

PAUSES = (
    timedelta(seconds=10),
    timedelta(minutes=1),
    timedelta(minutes=5),
    timedelta(minutes=30),
    timedelta(hours=2),
)
"""How long to wait after each attempt that failed; after one more it is given up."""

LEASE = timedelta(minutes=2)
"""How long an attempt has: one that was not heard of for longer died with its process and is made again."""


def next_attempt(*, attempts: int, is_permanent: bool, now: datetime) -> datetime | None:
    """Return when to try again after so many attempts that failed; None is "never"."""
    if is_permanent or attempts > len(PAUSES):
        return None
    return now + PAUSES[attempts - 1]
