"""A snapshot renewed for what changed decides as one made anew, and leaves the one it came from as it was (SPEC 3)."""

from datetime import datetime, timedelta

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from ladder.core.ids import POOL_IDS
from ladder.core.occupancy import Occupancy, build_occupancy
from ladder.core.pool import build_pool
from ladder.core.snapshot import Snapshot
from ladder.core.values import Connection, Facts, Pool, PoolOptions
from tests.ladder.core.asking import OPTIONS, World, ask_of
from tests.ladder.core.strategies import PROPERTY, connections, moments, worlds

BRIEF = {name: msgspec.structs.replace(one, explain=False) for name, one in OPTIONS.items()}
ASKED = (*OPTIONS.values(), *BRIEF.values())


def changed_facts(draw: st.DrawFn, facts: Facts) -> tuple[Facts, list[Connection]]:
    """Draw another state of some of the connections: their windows, cooldowns, exclusions, overrides and all."""
    changed = [draw(connections(one.connection_id, one.provider)) for one in facts.connections if draw(st.booleans())]
    changed = [
        msgspec.structs.replace(one, auth_type=before.auth_type, is_implied=before.is_implied)
        for one in changed
        for before in facts.connections
        if (before.provider, before.connection_id) == (one.provider, one.connection_id)
    ]
    by_key = {(one.provider, one.connection_id): one for one in changed}
    listed = tuple(by_key.get((one.provider, one.connection_id), one) for one in facts.connections)
    return msgspec.structs.replace(facts, connections=listed, revision="8"), changed


def answers(snapshot: Snapshot, world: World) -> list[Pool]:
    return [ask_of(snapshot, world, pool_id=pool_id, options=options) for pool_id in POOL_IDS for options in ASKED]


def stored(snapshot: Snapshot, world: World) -> tuple[list[Pool], Occupancy]:
    """Return all that stands on the stored inventory: what a snapshot keeps provider by provider."""
    of_inventory = msgspec.structs.replace(world, candidates=None)
    return answers(snapshot, of_inventory), build_occupancy(snapshot=snapshot, now=world.now)


@given(world=worlds(), data=st.data())
@PROPERTY
def test_a_renewed_snapshot_answers_as_one_made_anew_p1_to_p10(world: World, data: st.DataObject) -> None:
    snapshot = Snapshot(world.facts)
    before = answers(snapshot, world), stored(snapshot, world)
    facts, changed = data.draw(st.composite(changed_facts)(world.facts))
    renewed = snapshot.with_connections(facts=facts, changed=changed)
    then = msgspec.structs.replace(world, facts=facts, now=data.draw(moments))
    assert answers(renewed, then) == answers(Snapshot(facts), then)
    assert stored(renewed, then) == stored(Snapshot(facts), then)
    assert (answers(snapshot, world), stored(snapshot, world)) == before


@given(world=worlds(), data=st.data())
@PROPERTY
def test_renewed_time_and_again_it_still_answers_as_one_made_anew(world: World, data: st.DataObject) -> None:
    renewed = Snapshot(world.facts)
    for number in range(3):
        answers(renewed, world)
        stored(renewed, world)
        facts, changed = data.draw(st.composite(changed_facts)(world.facts))
        renewed = renewed.with_connections(facts=facts, changed=changed)
        world = World(facts, world.candidates, world.now + timedelta(seconds=number))
        assert answers(renewed, world) == answers(Snapshot(facts), world)
        assert stored(renewed, world) == stored(Snapshot(facts), world)


@given(world=worlds(), later=st.lists(moments, min_size=1, max_size=4))
@PROPERTY
def test_what_is_kept_of_the_inventory_is_told_only_while_it_stands_p9(world: World, later: list[datetime]) -> None:
    snapshot = Snapshot(world.facts)
    for now in (world.now, *later):
        then = msgspec.structs.replace(world, now=now)
        assert stored(snapshot, then) == stored(Snapshot(world.facts), then)


@given(world=worlds(), ranks=st.lists(st.integers(1, 5) | st.none(), min_size=1, max_size=8))
@PROPERTY
def test_stored_models_keep_their_order_where_providers_stand_mixed_p4(world: World, ranks: list[int | None]) -> None:
    prices = tuple(
        msgspec.structs.replace(price, rank=ranks[place % len(ranks)]) for place, price in enumerate(world.facts.prices)
    )
    facts = msgspec.structs.replace(world.facts, prices=prices)
    snapshot = Snapshot(facts)
    listed = snapshot.inventory(now=world.now).candidates
    for pool_id in POOL_IDS.values():
        asked = {"snapshot": snapshot, "pool_id": pool_id, "options": PoolOptions(), "now": world.now}
        from_store, from_list = build_pool(candidates=None, **asked), build_pool(candidates=listed, **asked)
        assert from_store.candidates == from_list.candidates
