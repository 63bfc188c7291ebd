"""A snapshot renewed for what changed decides as one made anew, and leaves the one it came from as it was (SPEC 3)."""

from datetime import timedelta

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from ladder.core.ids import POOL_IDS
from ladder.core.occupancy import build_occupancy
from ladder.core.snapshot import Snapshot
from ladder.core.values import Connection, Facts, Pool
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


@given(world=worlds(), data=st.data())
@PROPERTY
def test_a_renewed_snapshot_answers_as_one_made_anew_p1_to_p10(world: World, data: st.DataObject) -> None:
    snapshot = Snapshot(world.facts)
    before = answers(snapshot, world)
    facts, changed = data.draw(st.composite(changed_facts)(world.facts))
    renewed = snapshot.with_connections(facts=facts, changed=changed)
    then = msgspec.structs.replace(world, facts=facts, now=data.draw(moments))
    assert answers(renewed, then) == answers(Snapshot(facts), then)
    assert build_occupancy(snapshot=renewed, now=then.now) == build_occupancy(snapshot=Snapshot(facts), now=then.now)
    assert answers(snapshot, world) == before


@given(world=worlds(), data=st.data())
@PROPERTY
def test_renewed_time_and_again_it_still_answers_as_one_made_anew(world: World, data: st.DataObject) -> None:
    renewed = Snapshot(world.facts)
    for number in range(3):
        answers(renewed, world)
        facts, changed = data.draw(st.composite(changed_facts)(world.facts))
        renewed = renewed.with_connections(facts=facts, changed=changed)
        world = World(facts, world.candidates, world.now + timedelta(seconds=number))
        assert answers(renewed, world) == answers(Snapshot(facts), world)
