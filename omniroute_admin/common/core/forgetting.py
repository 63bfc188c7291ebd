"""Which versions of a row can go, so that what it said at any later instant is still known. Pure."""

from collections.abc import Hashable, Sequence
from datetime import datetime

import msgspec


class PastVersion(msgspec.Struct, frozen=True):
    """A version of a row: from when on it held, whether it is a deletion, and what it speaks of."""

    history_id: int
    at: datetime
    is_deletion: bool
    key: Hashable = None


def forgettable_versions(*, versions: Sequence[PastVersion], before: datetime) -> list[int]:
    """Return the ids of those that can go, given all versions of one row in the order in which they were written.

    Kept are the one that held at `before` and all that follow. Of what came earlier the last that spoke of each thing
    (`key`) is kept: that it was spoken of already tells that another row was not the first to do so (M6). So is the
    last before a deletion. Where a clock went back in between, all stay.
    """
    held = sum(version.at <= before for version in versions) - 1
    past = versions[: held + 1]
    went_back = any(one.at > following.at for one, following in zip(past, versions[1:], strict=False))
    if held < 1 or went_back or past[-1].at > before:
        return []
    spoken = set() if past[-1].is_deletion else {past[-1].key}
    gone = []
    for one, following in zip(past[-2::-1], past[:0:-1], strict=True):
        held_for_a_while = not one.is_deletion and one.at < following.at
        if held_for_a_while and one.key not in spoken:
            spoken.add(one.key)
        else:
            gone.append(one.history_id)
    return gone
