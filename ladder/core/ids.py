"""Pool ids (I): three flat ids and ten pairs; any other is unknown."""

import msgspec

from ladder.core.values import Grouping

CATEGORIES = ("coding", "reasoning", "vision", "chat", "multimodal")

# `coding` and `chat` filter nothing; of the others each model must be known to be able (unknown is not yes).
_CAPABILITY = {"vision": "vision", "multimodal": "vision", "reasoning": "reasoning"}


class PoolId(msgspec.Struct, frozen=True):
    """A parsed id; `capability` is what each model of the pool must have, if any."""

    id: str
    grouping: Grouping
    category: str | None = None

    @property
    def capability(self) -> str | None:
        """Return the capability that the category needs, or None."""
        return _CAPABILITY.get(self.category or "")


FLAT_IDS = (
    PoolId("auto/subscription", Grouping.SUBSCRIPTION),
    PoolId("auto/thrifty", Grouping.THRIFTY),
    PoolId("auto/best-free", Grouping.FREE),
)
PAIR_IDS = tuple(
    PoolId(f"auto/{category}:{grouping}", grouping, category)
    for category in CATEGORIES
    for grouping in (Grouping.SUBSCRIPTION, Grouping.THRIFTY)
)
POOL_IDS = {pool_id.id: pool_id for pool_id in (*FLAT_IDS, *PAIR_IDS)}


def find_pool_id(text: str) -> PoolId | None:
    """Return the id that `text` spells exactly, or None; nothing is guessed, no case is folded (I)."""
    return POOL_IDS.get(text)
