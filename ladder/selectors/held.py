"""Which windows are held (Q5)."""

from collections.abc import Collection

from ladder.core.values import LadderSettings


def held_windows(*, settings: LadderSettings, window_ids: Collection[int] | None) -> set[int]:
    """Return the ids of the held windows; none until readings are recorded."""
    return set()
