"""What a change would move: places on the ladder and pairs in the pools, before and after it (SPEC 5, 3). Pure."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from billing_catalog.core.values import CatalogRow, Thresholds, TierRule
from ladder.core.ids import POOL_IDS, PoolId
from ladder.core.occupancy import Occupancy
from ladder.core.places import Place
from ladder.core.pool import build_pool
from ladder.core.snapshot import Snapshot
from ladder.core.values import Connection, Facts, LadderSettings, PoolOptions
from ladder.core.whatif import Key

_Model = tuple[str, str]
_Pair = tuple[str, str, str]
_Entries = tuple[tuple[int, tuple[str, ...]], ...]


class CatalogEdit(msgspec.Struct, frozen=True):
    """One entry of the catalogue edited: `old` None adds `new`, `new` None deletes `old` (provider, auth type)."""

    old: tuple[str, str | None] | None
    new: CatalogRow | None


class TierEdit(msgspec.Struct, frozen=True):
    """One tier override edited: `old` None adds `new` as the last made, `new` None deletes `old` (T)."""

    old: TierRule | None
    new: TierRule | None


class Edits(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody is about to change of the facts; None and empty are "stays as it is".

    `free_providers` says for each provider whether it is one. `connections` gives the fields of `Connection` that
    change, None for a connection that is deleted; one that is not stored is added.
    """

    settings: LadderSettings | None = None
    thresholds: Thresholds | None = None
    catalog: tuple[CatalogEdit, ...] = ()
    tier_rules: tuple[TierEdit, ...] = ()
    free_providers: Mapping[str, bool] = {}
    connections: Mapping[Key, Mapping[str, Any] | None] = {}


class Move(msgspec.Struct, frozen=True):
    """A place that stands elsewhere, or otherwise, after a change; None is "no such place there"."""

    provider: str
    connection_id: str
    before: Place | None
    after: Place | None


class Tally(msgspec.Struct, frozen=True):
    """How many pairs of one connection."""

    provider: str
    connection_id: str
    pairs: int


class PoolMove(msgspec.Struct, frozen=True):
    """One pool before and after: its pairs, and whose come in, go out, or stay in on another rung."""

    id: str
    before: int
    after: int
    came: tuple[Tally, ...]
    went: tuple[Tally, ...]
    shifted: tuple[Tally, ...]

    @property
    def is_changed(self) -> bool:
        """Tell whether a router would get another answer of this pool."""
        return bool(self.came or self.went or self.shifted)


def apply_edits(*, facts: Facts, edits: Edits) -> Facts:
    """Return the facts as they would be; where settings differ, the held state has to be derived anew before (Q5)."""
    return msgspec.structs.replace(
        facts,
        settings=edits.settings or facts.settings,
        thresholds=edits.thresholds or facts.thresholds,
        catalog=_edit_catalog(facts.catalog, edits.catalog),
        tier_rules=_edit_rules(facts.tier_rules, edits.tier_rules),
        free_providers=_edit_free(facts.free_providers, edits.free_providers),
        connections=_edit_connections(facts.connections, edits.connections),
    )


def _edit_catalog(rows: Iterable[CatalogRow], edits: Sequence[CatalogEdit]) -> tuple[CatalogRow, ...]:
    made = [edit.new for edit in edits if edit.new is not None]
    # Of two rows that speak of the same connections, the one that an edit makes is meant.
    gone = {edit.old for edit in edits} | {(row.provider, row.auth_type) for row in made}
    return (*(row for row in rows if (row.provider, row.auth_type) not in gone), *made)


def _edit_rules(rules: Sequence[TierRule], edits: Sequence[TierEdit]) -> tuple[TierRule, ...]:
    """Return the rules in the order they were made in: an edited one keeps its place (T)."""
    edited: list[TierRule | None] = list(rules)
    for edit in edits:
        if edit.old is None:
            edited.append(edit.new)
        elif edit.old in edited:
            edited[edited.index(edit.old)] = edit.new
    return tuple(rule for rule in edited if rule is not None)


def _edit_free(providers: frozenset[str], edits: Mapping[str, bool]) -> frozenset[str]:
    added = {provider for provider, is_free in edits.items() if is_free}
    return frozenset((providers - edits.keys()) | added)


def _edit_connections(
    connections: Sequence[Connection], edits: Mapping[Key, Mapping[str, Any] | None]
) -> tuple[Connection, ...]:
    known = {(one.provider, one.connection_id) for one in connections}
    edited: list[Connection] = []
    for one in connections:
        fields = edits.get((one.provider, one.connection_id), {})
        if fields is not None:
            edited.append(msgspec.structs.replace(one, **fields) if fields else one)
    new = ((key, fields) for key, fields in edits.items() if key not in known and fields is not None)
    return (*edited, *(Connection(connection_id, provider, **fields) for (provider, connection_id), fields in new))


def find_moves(*, before: Occupancy, after: Occupancy) -> tuple[Move, ...]:
    """Return every place whose rung, state, code or mark "may bill past the plan" differs, lowest rung first.

    A connection that leaves one rung and appears on another has moved from the one to the other.
    """
    old, new = _by_connection(before.places), _by_connection(after.places)
    moves = [
        Move(provider, connection_id, was, becomes)
        for provider, connection_id in dict.fromkeys([*old, *new])
        for was, becomes in _match(old.get((provider, connection_id), {}), new.get((provider, connection_id), {}))
        if was is None or becomes is None or _standing(was) != _standing(becomes)
    ]
    return tuple(sorted(moves, key=_order))


def _by_connection(places: Iterable[Place]) -> dict[Key, dict[int, Place]]:
    found: dict[Key, dict[int, Place]] = {}
    for place in places:
        found.setdefault((place.provider, place.connection_id), {})[place.rung_index] = place
    return found


def _match(old: dict[int, Place], new: dict[int, Place]) -> list[tuple[Place | None, Place | None]]:
    """Return the places of one connection in pairs: the same rung, then those left over in their order."""
    same = [(old[rung], new[rung]) for rung in old if rung in new]
    left = [old[rung] for rung in sorted(old) if rung not in new]
    come = [new[rung] for rung in sorted(new) if rung not in old]
    longest = max(len(left), len(come))
    padded = zip(_pad(left, longest), _pad(come, longest), strict=True)
    return [*same, *padded]


def _pad(places: list[Place], length: int) -> list[Place | None]:
    return [*places, *[None] * (length - len(places))]


def _standing(place: Place) -> tuple[int, str, str | None, bool]:
    return place.rung_index, place.state, place.code, place.may_bill_past_plan


def _order(move: Move) -> tuple[int, str, str]:
    place = move.before or move.after
    return (place.rung_index if place else 0), move.provider, move.connection_id


def find_pool_moves(*, before: Snapshot, after: Snapshot, now: datetime) -> tuple[PoolMove, ...]:
    """Return all thirteen pools over the stored inventory, in the order of the ids (I)."""
    return tuple(
        _pool_move(pool_id, _entries(before, pool_id, now), _entries(after, pool_id, now))
        for pool_id in POOL_IDS.values()
    )


def _entries(snapshot: Snapshot, pool_id: PoolId, now: datetime) -> dict[_Model, _Entries]:
    """Return the survivors of each model, rung by rung, as a router gets them (P5)."""
    pool = build_pool(snapshot=snapshot, pool_id=pool_id, candidates=None, options=PoolOptions(), now=now)
    found: dict[_Model, _Entries] = {}
    for entry in pool.candidates:
        model = entry.provider, entry.model
        found[model] = (*found.get(model, ()), (entry.rung_index, entry.allowed_connection_ids or ()))
    return found


def _pool_move(pool_id: PoolId, old: dict[_Model, _Entries], new: dict[_Model, _Entries]) -> PoolMove:
    """Compare two pools; models whose survivors are the same are not looked at pair by pair."""
    differing = [model for model in dict.fromkeys([*old, *new]) if old.get(model) != new.get(model)]
    was, becomes = _rungs_of(differing, old), _rungs_of(differing, new)
    return PoolMove(
        pool_id.id,
        _count(old),
        _count(new),
        _tally(pair for pair in becomes if pair not in was),
        _tally(pair for pair in was if pair not in becomes),
        _tally(pair for pair in was if pair in becomes and was[pair] != becomes[pair]),
    )


def _rungs_of(models: Iterable[_Model], entries: dict[_Model, _Entries]) -> dict[_Pair, int]:
    return {
        (provider, model, connection_id): rung
        for provider, model in models
        for rung, ids in entries.get((provider, model), ())
        for connection_id in ids
    }


def _count(entries: dict[_Model, _Entries]) -> int:
    return sum(len(ids) for by_rung in entries.values() for _, ids in by_rung)


def _tally(pairs: Iterable[_Pair]) -> tuple[Tally, ...]:
    counts: dict[Key, int] = {}
    for provider, _, connection_id in pairs:
        counts[provider, connection_id] = counts.get((provider, connection_id), 0) + 1
    return tuple(Tally(provider, connection_id, count) for (provider, connection_id), count in counts.items())
