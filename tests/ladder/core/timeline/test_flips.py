"""SPEC 3, the timeline: what time and writes change is told at its instant, the same however often one looks."""

from datetime import timedelta
from decimal import Decimal
from itertools import pairwise

import msgspec
from hypothesis import assume, given
from hypothesis import strategies as st

from billing_catalog.core.values import Price
from ladder.core.occupancy import build_occupancy
from ladder.core.snapshot import Snapshot
from ladder.core.timeline.causes import Cause
from ladder.core.timeline.flips import NOT_THERE, picture_of
from ladder.core.timeline.teller import tell
from ladder.core.timeline.trail import (
    AccountImage,
    BreakerImage,
    BudgetImage,
    CatalogueImage,
    Image,
    Moment,
    SettingsImage,
    Write,
    catalogue_of,
    undo,
)
from ladder.core.values import Budget, Facts, Hold, Rung, Window
from tests.ladder.core.asking import NOW, TICK, instants_in
from tests.ladder.core.small_facts import CATALOG, OLD, key, plan
from tests.ladder.core.strategies import PROPERTY, moments, worlds

HOUR = timedelta(hours=1)
END = NOW + timedelta(days=40)


def moment_of(facts, windows=None):
    return Moment(
        accounts=dict(enumerate(facts.connections, start=1)),
        settings=facts.settings,
        breakers=dict(facts.breakers),
        budgets={rung: (budget,) for rung, budget in facts.budgets.items()} | (windows or {}),
        catalogue=catalogue_of(facts),
    )


def look(facts, seen, *, start, now, writes=(), told=(), windows=None):
    return tell(moment=moment_of(facts, windows), writes=writes, seen=seen, told=dict(told), start=start, now=now)


def fresh(facts, at, keys=None):
    named = keys or {(one.provider, one.connection_id): key for key, one in enumerate(facts.connections, start=1)}
    return picture_of(occupancy=build_occupancy(snapshot=Snapshot(facts), now=at), keys=named)


def stored(facts):
    """Return facts that rows can hold: nothing in them is only what a caller says."""
    return msgspec.structs.replace(facts, tiers={}, capabilities={}, aliases={}, revision="")


@PROPERTY
@given(worlds(inventory=True), st.lists(moments, max_size=4))
def test_one_late_look_tells_what_many_looks_tell(world, instants):
    facts = stored(world.facts)
    looks = sorted({at for at in instants if at > world.now} | {END})
    whole = look(facts, None, start=world.now, now=END)
    flips, picture, start = [], fresh(facts, world.now), world.now
    for at in looks:
        telling = look(facts, picture, start=start, now=at)
        assert telling.unexplained == frozenset()
        assert telling.picture == fresh(facts, at)
        flips, picture, start = flips + list(telling.flips), telling.picture, at
    assert tuple(flips) == whole.flips


@PROPERTY
@given(worlds(inventory=True))
def test_the_flips_lead_from_picture_to_picture_and_stand_where_something_ends(world):
    facts = stored(world.facts)
    picture = dict(fresh(facts, world.now))
    flips = look(facts, None, start=world.now, now=END).flips
    assert {flip.at for flip in flips} <= set(instants_in(facts))
    for number, flip in enumerate(flips):
        spot = (flip.connection or 0, flip.rung)
        assert picture.get(spot, NOT_THERE).state == flip.from_state
        picture[spot] = msgspec.structs.replace(NOT_THERE, state=flip.to_state, code=flip.code)
        if flip is flips[-1] or flips[number + 1].at > flip.at:
            there = {spot: standing for spot, standing in picture.items() if standing != NOT_THERE}
            assert there == fresh(facts, flip.at)


@PROPERTY
@given(worlds(inventory=True), moments)
def test_the_picture_stands_until_the_instant_it_says_p9(world, at):
    facts = stored(world.facts)
    assume(at >= world.now)
    telling = look(facts, None, start=world.now, now=at)
    assert telling.valid_until > at
    before = min(telling.valid_until - TICK, END)
    assert look(facts, telling.picture, start=at, now=before).flips == ()


def images_between(before, after):
    """Return the images of what differs, as they were before."""
    first, second = moment_of(before), moment_of(after)
    images: list[Image] = [
        AccountImage(key, first.accounts.get(key), (Cause.OPERATOR,))
        for key in first.accounts.keys() | second.accounts.keys()
    ]
    images += [BreakerImage(name, first.breakers.get(name)) for name in {*first.breakers, *second.breakers}]
    images += [BudgetImage(rung, first.budgets.get(rung, (Budget(),))) for rung in {*first.budgets, *second.budgets}]
    said = first.catalogue
    images.append(CatalogueImage(**{name: getattr(said, name) for name in said.__struct_fields__}))
    return (*images, SettingsImage(first.settings, second.accounts))


@PROPERTY
@given(st.lists(worlds(inventory=True), min_size=2, max_size=4))
def test_undone_and_redone_writes_lead_through_every_picture_there_was(several):
    """Whole worlds follow each other; one look at the end tells what a look after each tells."""
    first, *others = [stored(world.facts) for world in several]
    instants = [NOW + number * HOUR for number in range(len(several) + 1)]
    steps = list(pairwise([first, *others]))
    writes = [Write(at, 0, images_between(*step)) for at, step in zip(instants[1:], steps, strict=False)]
    moment = moment_of(others[-1])
    redone = undo(moment=moment, writes=reversed(writes), keep=len(writes))
    assert moment.accounts == moment_of(first).accounts
    whole = tell(moment=moment, writes=redone, seen=None, told={}, start=NOW, now=instants[-1])
    assert whole.picture == fresh(others[-1], instants[-1])
    flips, picture, told, start = [], None, {}, NOW
    for number, write in enumerate(redone):
        facts = [first, *others][number]
        telling = look(facts, picture, start=start, now=write.at, writes=[write], told=told)
        assert telling.unexplained == frozenset()
        assert telling.picture == fresh([first, *others][number + 1], write.at)
        flips += telling.flips
        told |= {(flip.connection or 0, flip.rung): flip.at for flip in telling.flips}
        picture, start = telling.picture, write.at
    flips += look(others[-1], picture, start=start, now=instants[-1]).flips
    assert tuple(flips) == whole.flips


def paid(budget):
    price = Price("claude", "opus-4", OLD, None, Decimal("0.5"), Decimal(1))
    return Facts(connections=(key(),), catalog=CATALOG, prices=(price,), budgets={Rung.CHEAP: budget})


def told(telling):
    return [
        (flip.at - NOW, flip.connection, f"{flip.from_state}>{flip.to_state}", flip.cause) for flip in telling.flips
    ]


def test_a_budget_window_that_turns_opens_the_rung_at_its_instant_m2_m3():
    spent = Budget(Decimal(5), Decimal(5), window_end=NOW + HOUR, zone="Europe/Berlin")
    later = Budget(Decimal(5), Decimal(1), window_start=NOW + HOUR, window_end=NOW + 25 * HOUR)
    telling = look(paid(spent), None, start=NOW, now=NOW + 2 * HOUR, windows={Rung.CHEAP: (spent, later)})
    assert told(telling) == [(HOUR, 1, "exhausted>usable", "budget"), (HOUR, None, "idle>serving", "budget")]


def test_a_rung_that_has_no_budget_any_more_opens_m1():
    spent = Budget(Decimal(5), Decimal(5))
    moment = moment_of(msgspec.structs.replace(paid(spent), budgets={}))
    write = Write(NOW + HOUR, 0, (BudgetImage(Rung.CHEAP, (spent,)),))
    redone = undo(moment=moment, writes=[write], keep=1)
    telling = tell(moment=moment, writes=redone, seen=None, told={}, start=NOW, now=NOW + 2 * HOUR)
    assert told(telling) == [(HOUR, 1, "exhausted>usable", "budget"), (HOUR, None, "idle>serving", "budget")]


def test_a_budget_spent_again_since_its_window_turned_stays_as_it_was_m4():
    spent = Budget(Decimal(5), Decimal(5), window_end=NOW + HOUR)
    again = Budget(Decimal(5), Decimal(6), window_end=NOW + 25 * HOUR)
    telling = look(paid(spent), None, start=NOW, now=NOW + 2 * HOUR, windows={Rung.CHEAP: (spent, again)})
    assert telling.flips == ()


def test_a_hold_that_ends_opens_the_rung_at_its_instant_m2():
    held = Budget(Decimal(5), Decimal(1), holds=(Hold(Decimal(4), NOW + HOUR),), window_end=NOW + 9 * HOUR)
    assert told(look(paid(held), None, start=NOW, now=NOW + 2 * HOUR))[0] == (HOUR, 1, "exhausted>usable", "budget")


def test_the_cause_is_the_instant_that_passed_and_not_one_before_it_that_changed_nothing():
    muted = Window("muted", observed_at=NOW, remaining_percent=Decimal(1), reset_at=NOW + TICK, is_muted=True)
    seen = Window("5h", observed_at=NOW, remaining_percent=Decimal(50))
    facts = Facts(connections=(plan("plan", muted, seen),), catalog=CATALOG, prices=paid(Budget()).prices)
    telling = look(facts, None, start=NOW, now=NOW + HOUR)
    assert told(telling) == [(timedelta(seconds=180) + TICK, 1, "usable>stale", "time")]


def paused(at, *, was):
    return Write(at, 7, (AccountImage(1, key(is_enabled=was), (Cause.OPERATOR,)),))


def test_two_writes_of_one_instant_are_told_a_microsecond_apart_in_their_order():
    writes = [paused(NOW + HOUR, was=False), paused(NOW + HOUR, was=True)]
    telling = look(paid(Budget()), None, start=NOW, now=NOW + 2 * HOUR, writes=writes)
    assert [one for one in told(telling) if one[1]] == [
        (HOUR, 1, "usable>off", "operator"),
        (HOUR + TICK, 1, "off>usable", "operator"),
    ]
    assert {flip.revision for flip in telling.flips} == {7}


def test_a_write_that_was_committed_after_the_look_past_its_instant_keeps_its_instant():
    telling = look(paid(Budget()), None, start=NOW, now=NOW + HOUR, writes=[paused(NOW - TICK, was=False)])
    assert told(telling)[0] == (-TICK, 1, "usable>off", "operator")


def test_but_not_where_a_later_flip_of_the_same_is_noted_already():
    noted = {(1, "cheap"): NOW}
    telling = look(paid(Budget()), None, start=NOW, now=NOW + HOUR, writes=[paused(NOW - TICK, was=False)], told=noted)
    assert told(telling)[0] == (TICK, 1, "usable>off", "operator")


def test_a_write_of_a_clock_that_is_ahead_is_told_at_the_look():
    telling = look(paid(Budget()), None, start=NOW, now=NOW + HOUR, writes=[paused(NOW + 2 * HOUR, was=False)])
    assert told(telling)[0] == (HOUR, 1, "usable>off", "operator")


def test_of_a_spot_that_is_not_what_was_seen_no_flip_is_told():
    facts = paid(Budget())
    seen = {**fresh(facts, NOW), (1, "cheap"): NOT_THERE}
    telling = look(facts, seen, start=NOW, now=NOW + HOUR, writes=[paused(NOW + TICK, was=False)])
    assert telling.unexplained == {(1, "cheap")}
    assert [flip.connection for flip in telling.flips] == [None]
