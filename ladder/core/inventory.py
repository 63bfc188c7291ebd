"""The stored inventory: one candidate per current price row, with all connections of its provider (SPEC 4)."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import pairwise

import msgspec

from ladder.core.values import Candidate, Connection

Model = tuple[str, str]
"""Provider and model."""


class Inventory(msgspec.Struct, frozen=True):
    """The stored candidates in their order, and the connections whose provider has no model.

    `by_provider` holds the same candidates; `places` tells where each stands where providers stand mixed, else None.
    """

    candidates: tuple[Candidate, ...]
    by_provider: Mapping[str, tuple[Candidate, ...]]
    places: Mapping[Model, int] | None
    without_models: tuple[Connection, ...]
    change_at: datetime


def build_inventory(*, models: Sequence[Model], connections: Iterable[Connection], change_at: datetime) -> Inventory:
    """Return the inventory of these models in their order; it holds up to `change_at`. Implied rows are not in it."""
    stored = sorted((one for one in connections if not one.is_implied), key=_name)
    ids: dict[str, list[str]] = {}
    for one in stored:
        ids.setdefault(one.provider, []).append(one.connection_id)
    lists = {provider: tuple(names) for provider, names in ids.items()}
    candidates = tuple(Candidate(provider, model, None, lists.get(provider, ())) for provider, model in models)
    by_provider: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        by_provider.setdefault(candidate.provider, []).append(candidate)
    return Inventory(
        candidates,
        {provider: tuple(some) for provider, some in by_provider.items()},
        {model: place for place, model in enumerate(models)} if _is_mixed(models, len(by_provider)) else None,
        tuple(one for one in stored if one.provider not in by_provider),
        change_at,
    )


def _name(one: Connection) -> tuple[str, str]:
    return one.provider, one.connection_id


def _is_mixed(models: Sequence[Model], providers: int) -> bool:
    """Tell whether the models of some provider do not stand together."""
    turns = sum(1 for before, after in pairwise(models) if before[0] != after[0])
    return turns >= providers > 0
