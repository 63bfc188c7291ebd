"""The fleet that is measured, as a plan: the same sizes give the same fleet, on any machine."""

import random
import uuid
from collections.abc import Iterator, Mapping

import msgspec

from omniroute_admin.bench.errors import BenchError

KINDS = ("subscription", "overage", "free", "cheap", "premium")
"""What a provider of the fleet sells: a plan that stops, a plan that bills past itself, or models of one tier."""

RESTING = "cooldowns"
MIX = {"subscription": 50, "overage": 10, "free": 10, "cheap": 15, "premium": 15, RESTING: 3}
"""Weights of the kinds, and the percentage of connections that are in a cooldown."""

WINDOWS = {
    "subscription": ("5h", "weekly"),
    "overage": ("5h", "weekly"),
    "free": ("daily",),
    "cheap": (),
    "premium": (),
}
_EVERY_EXHAUSTED = 10
_SEED = 4182


class PlannedConnection(msgspec.Struct, frozen=True):
    """One account; `percents` are what is left of each of its windows."""

    connection_id: str
    percents: tuple[int, ...]
    is_resting: bool


class PlannedProvider(msgspec.Struct, frozen=True):
    """One provider, what it sells, its models and its accounts."""

    name: str
    kind: str
    models: tuple[str, ...]
    connections: tuple[PlannedConnection, ...]


def parse_mix(text: str) -> dict[str, int]:
    """Return the mix that a text such as `subscription=60,cheap=40,cooldowns=5` means; kinds left out are none.

    Raises:
        BenchError: naming every part that means nothing.
    """
    known = (*KINDS, RESTING)
    parts = [part.partition("=") for part in text.split(",")]
    bad = [f"{name}{sign}{value}" for name, sign, value in parts if name.strip() not in known or not value.isdecimal()]
    if bad:
        raise BenchError(f"--rungs: {', '.join(bad)}: write name=number; the names are {', '.join(known)}.")
    mix = dict.fromkeys(known, 0) | {name.strip(): int(value) for name, _, value in parts}
    if not mix["subscription"]:
        raise BenchError("--rungs: give subscription a weight: plans are what is measured.")
    if mix[RESTING] > 100:  # noqa: PLR2004 - a percentage
        raise BenchError(f"--rungs: {RESTING} is a percentage, 0 to 100.")
    return mix


def plan_fleet(*, connections: int, models: int, providers: int, mix: Mapping[str, int]) -> tuple[PlannedProvider, ...]:
    """Return the providers of a fleet, each with its share of the models and connections."""
    chance = random.Random(_SEED)  # noqa: S311 - a fleet, no secret
    kinds = list(_kinds(providers, mix))
    accounts: list[list[PlannedConnection]] = [[] for _ in kinds]
    for number in range(connections):
        place = number % len(kinds)
        accounts[place].append(_connection(chance, windows=len(WINDOWS[kinds[place]]), resting=mix[RESTING]))
    return tuple(
        PlannedProvider(
            name=f"{kind}-{place:02d}",
            kind=kind,
            models=tuple(f"{kind}-model-{number:04d}" for number in range(place, models, len(kinds))),
            connections=tuple(accounts[place]),
        )
        for place, kind in enumerate(kinds)
    )


def _kinds(providers: int, mix: Mapping[str, int]) -> Iterator[str]:
    """Yield the kind of each provider: always that which lags its share most, so that every prefix is in proportion."""
    total = sum(mix[kind] for kind in KINDS)
    given = dict.fromkeys(KINDS, 0)
    for number in range(1, providers + 1):
        kind = max(KINDS, key=lambda one: mix[one] * number / total - given[one])
        given[kind] += 1
        yield kind


def _connection(chance: random.Random, *, windows: int, resting: int) -> PlannedConnection:
    percents = tuple(
        1 if chance.randrange(_EVERY_EXHAUSTED * 2) == 0 else chance.randint(20, 95) for _ in range(windows)
    )
    # Of the form that routers use.
    name = str(uuid.UUID(int=chance.getrandbits(128), version=4))
    return PlannedConnection(name, percents, chance.randrange(100) < resting)
