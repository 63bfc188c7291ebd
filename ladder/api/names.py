"""Resolving providers' names on the way in, with the aliases that the snapshot at hand was read with (SPEC 1)."""

from collections.abc import Callable, Mapping

from omniroute_admin.common.core.names import canonical_provider


def resolver(aliases: Mapping[str, str]) -> Callable[[str], str]:
    """Return the function that makes a provider's name canonical; what it has resolved it remembers for its call."""
    known: dict[str, str] = {}

    def resolve(raw: str) -> str:
        name = known.get(raw)
        if name is None:
            name = known[raw] = canonical_provider(raw=raw, aliases=aliases)
        return name

    return resolve
