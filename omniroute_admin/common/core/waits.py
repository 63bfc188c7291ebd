"""How long a caller is told to wait."""

from datetime import datetime


def seconds_until(*, instant: datetime, now: datetime) -> int:
    """Return whole seconds, rounded up, at least 1: what `Retry-After` says."""
    return max(1, -int((now - instant).total_seconds() // 1))
