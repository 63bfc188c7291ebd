"""What a page tells of what is no longer kept one by one, or at all."""

import msgspec

from omniroute_admin.common.core.screen import Glance, Moment
from omniroute_admin.common.selectors.horizons import Pruned


class PrunedWords(msgspec.Struct, frozen=True):
    """What is older than `before` was removed, last at `moved`; `count` are what is told of in this list."""

    before: Moment
    moved: Moment
    count: int = 0


def pruned_words(pruned: Pruned | None, *, glance: Glance, count: int = 0) -> PrunedWords | None:
    """Return what was pruned, for people; None where nothing was."""
    if pruned is None:
        return None
    return PrunedWords(glance.ago(pruned.before), glance.ago(pruned.moved_at), count)
