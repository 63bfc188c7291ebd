"""SPEC 3, the timeline: what time changes is told at its instant, the same however often one looks."""

from datetime import timedelta
from decimal import Decimal

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from billing_catalog.core.values import Price
from ladder.core.instants import NEVER
from ladder.core.occupancy import build_occupancy
from ladder.core.snapshot import Snapshot
from ladder.core.timeline import NOT_THERE, STEPS_AT_MOST, Stage, find_flips, picture_of, walk
from ladder.core.timeline_causes import Cause, prints_of
from ladder.core.values import Budget, Connection, Facts, Hold, Rung, Window
from tests.ladder.core.asking import NOW, TICK, instants_in
from tests.ladder.core.small_facts import CATALOG, OLD, key, plan
from tests.ladder.core.strategies import PROPERTY, moments, worlds

HOUR = timedelta(hours=1)
END = NOW + timedelta(days=40)


def keys_of(facts):
    return {(one.provider, one.connection_id): number for number, one in enumerate(facts.connections, start=1)}


def look(facts, picture, *, start, now, stages=None):
    """Return the flips between two instants and the picture at the later one."""
    keys = keys_of(facts)
    prints = prints_of(facts=facts, keys=keys, acts={}, at=now)
    steps = walk(stages=stages or [Stage(Snapshot(facts), NEVER)], keys=keys, start=start, now=now).steps
    before = steps[0].picture if picture is None else picture
    flips = find_flips(picture=before, before=prints, after=prints, steps=steps, keys=keys, now=now)
    return flips, steps[-1].picture


def fresh(facts, at):
    return picture_of(occupancy=build_occupancy(snapshot=Snapshot(facts), now=at), keys=keys_of(facts))


@PROPERTY
@given(worlds(inventory=True), st.lists(moments, max_size=4))
def test_one_late_look_tells_what_many_looks_tell(world, instants):
    looks = sorted({at for at in instants if at > world.now} | {END})
    whole, _ = look(world.facts, None, start=world.now, now=END)
    told, picture, start = [], fresh(world.facts, world.now), world.now
    for at in looks:
        flips, picture = look(world.facts, picture, start=start, now=at)
        told, start = told + flips, at
    assert told == whole


@PROPERTY
@given(worlds(inventory=True))
def test_the_flips_lead_from_picture_to_picture_and_stand_where_something_ends(world):
    picture = dict(fresh(world.facts, world.now))
    flips, _ = look(world.facts, None, start=world.now, now=END)
    assert {flip.at for flip in flips} <= set(instants_in(world.facts))
    for number, flip in enumerate(flips):
        spot = (flip.connection or 0, flip.rung)
        assert picture.get(spot, NOT_THERE).state == flip.from_state
        picture[spot] = msgspec.structs.replace(NOT_THERE, state=flip.to_state, code=flip.code)
        if flip is flips[-1] or flips[number + 1].at > flip.at:
            there = {spot: standing for spot, standing in picture.items() if standing != NOT_THERE}
            assert there == fresh(world.facts, flip.at)


def paid(budget):
    price = Price("claude", "opus-4", OLD, None, Decimal("0.5"), Decimal(1))
    return Facts(connections=(key(),), catalog=CATALOG, prices=(price,), budgets={Rung.CHEAP: budget})


def told(flips):
    return [(flip.at - NOW, flip.connection, f"{flip.from_state}>{flip.to_state}", flip.cause) for flip in flips]


def test_a_budget_window_that_turns_opens_the_rung_at_its_instant_m2_m3():
    spent = Budget(Decimal(5), Decimal(5), window_end=NOW + HOUR, zone="Europe/Berlin")
    later = Budget(Decimal(5), Decimal(1), window_start=NOW + HOUR, window_end=NOW + 25 * HOUR)
    facts = paid(spent)
    stages = [Stage(Snapshot(facts), NOW + HOUR), Stage(Snapshot(paid(later)), NOW + 25 * HOUR)]
    flips, _ = look(facts, None, start=NOW, now=NOW + 2 * HOUR, stages=stages)
    assert told(flips) == [(HOUR, 1, "exhausted>usable", "budget"), (HOUR, None, "idle>serving", "budget")]


def test_a_budget_spent_again_since_its_window_turned_stays_as_it_was_m4():
    facts = paid(Budget(Decimal(5), Decimal(5), window_end=NOW + HOUR))
    again = paid(Budget(Decimal(5), Decimal(6), window_end=NOW + 25 * HOUR))
    stages = [Stage(Snapshot(facts), NOW + HOUR), Stage(Snapshot(again), NOW + 25 * HOUR)]
    assert look(facts, None, start=NOW, now=NOW + 2 * HOUR, stages=stages)[0] == []


def test_a_hold_that_ends_opens_the_rung_at_its_instant_m2():
    held = Budget(Decimal(5), Decimal(1), holds=(Hold(Decimal(4), NOW + HOUR),), window_end=NOW + 9 * HOUR)
    flips, _ = look(paid(held), None, start=NOW, now=NOW + 2 * HOUR)
    assert told(flips)[0] == (HOUR, 1, "exhausted>usable", "budget")


def test_the_cause_is_the_instant_that_passed_and_not_one_before_it_that_changed_nothing():
    muted = Window("muted", observed_at=NOW, remaining_percent=Decimal(1), reset_at=NOW + TICK, is_muted=True)
    seen = Window("5h", observed_at=NOW, remaining_percent=Decimal(50))
    facts = Facts(connections=(plan("plan", muted, seen),), catalog=CATALOG, prices=paid(Budget()).prices)
    flips, _ = look(facts, None, start=NOW, now=NOW + HOUR)
    assert told(flips) == [(timedelta(seconds=180) + TICK, 1, "usable>stale", "time")]


def test_beyond_the_most_steps_the_rest_is_told_at_the_look():
    windows = [
        Window("5h", NOW, Decimal(50), reset_at=NOW + (number + 1) * TICK) for number in range(STEPS_AT_MOST + 9)
    ]
    rows = tuple(Connection(f"c{number}", "claude", "oauth", windows=(one,)) for number, one in enumerate(windows))
    facts = Facts(connections=rows, catalog=CATALOG, prices=paid(Budget()).prices)
    flips, picture = look(facts, None, start=NOW, now=NOW + HOUR)
    assert picture == fresh(facts, NOW + HOUR)
    assert {flip.cause for flip in flips} == {Cause.RESET}
    assert [flip.at for flip in flips if flip.connection] == [
        NOW + (number + 1) * TICK if number + 1 < STEPS_AT_MOST else NOW + HOUR for number in range(len(rows))
    ]
