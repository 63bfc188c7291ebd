"""The metrics' count of connections is the occupancy's, whatever the facts, and however much of it is remembered."""

from datetime import timedelta

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from ladder.core.head_count import HeadCount
from ladder.core.occupancy import build_occupancy
from ladder.core.snapshot import Snapshot
from tests.ladder.core.strategies import PROPERTY, connections, instants, worlds


def counted(head_count, snapshot, now):
    heads = head_count.count(snapshot=snapshot, now=now)
    return {
        rung.word: (counts.get(None, 0), sum(counts.values()), {code.value: n for code, n in counts.items() if code})
        for rung, counts in heads.items()
    }


def told(snapshot, now):
    occupancy = build_occupancy(snapshot=snapshot, now=now)
    return {one.rung: (one.usable, one.total, one.by_code) for one in occupancy.rungs}


@PROPERTY
@given(worlds(inventory=True), st.lists(instants, max_size=3))
def test_it_counts_what_the_occupancy_shows_at_every_instant_also_where_the_clock_goes_back(world, later):
    snapshot, head_count = Snapshot(world.facts), HeadCount()
    for now in (world.now, *later):
        assert counted(head_count, snapshot, now) == told(Snapshot(world.facts), now)


@PROPERTY
@given(worlds(inventory=True), st.data())
def test_it_sees_what_was_renewed_of_a_snapshot(world, data):
    snapshot, head_count = Snapshot(world.facts), HeadCount()
    counted(head_count, snapshot, world.now)
    if not world.facts.connections:
        return
    place = data.draw(st.integers(0, len(world.facts.connections) - 1))
    old = world.facts.connections[place]
    new = msgspec.structs.replace(
        data.draw(connections(old.connection_id, old.provider)),
        auth_type=old.auth_type,
        is_enabled=old.is_enabled,
        is_implied=old.is_implied,
        overage_override=old.overage_override,
        excluded_models=old.excluded_models,
    )
    listed = (*world.facts.connections[:place], new, *world.facts.connections[place + 1 :])
    facts = msgspec.structs.replace(world.facts, connections=listed)
    renewed = snapshot.with_connections(facts=facts, changed=[new])
    now = world.now + timedelta(microseconds=1)
    assert counted(head_count, renewed, now) == told(Snapshot(facts), now)


def test_what_stands_is_not_worked_out_again():
    from ladder.core import head_count as module
    from tests.ladder.core.small_facts import NOW, facts, plan

    known, head_count, asked = Snapshot(facts(plan())), HeadCount(), []
    stand = module._stand
    module._stand = lambda *args: asked.append(args) or stand(*args)
    try:
        counts = [head_count.count(snapshot=known, now=NOW) for _ in range(3)]
    finally:
        module._stand = stand
    assert counts[0] == counts[1] == counts[2]
    assert len(asked) == sum(sum(by_code.values()) for by_code in counts[0].values()) > 0
