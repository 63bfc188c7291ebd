"""What holds of every pool, whatever the facts, the candidates and the instant."""

import msgspec
from hypothesis import assume, given
from hypothesis import strategies as st

from billing_catalog.core.values import Billing, Overage
from ladder.core.ids import POOL_IDS
from ladder.core.snapshot import Snapshot
from ladder.core.values import Facts, Grouping
from tests.ladder.core import oracle
from tests.ladder.core.asking import LOWEST, MERGE, OPTIONS, SPLIT, World, ask, ask_of, pairs_in, without_times
from tests.ladder.core.strategies import PROPERTY, percents, worlds

PLAN_IDS = [name for name, known in POOL_IDS.items() if known.grouping is Grouping.SUBSCRIPTION]


def _asked(world: World):
    if world.candidates is not None:
        return list(world.candidates)
    return oracle.stored_candidates(world.facts, world.now)[0]


def _is_good_plan(world: World, provider: str, model: str, connection_id: str) -> bool:
    """Tell by a plain reading whether a pair may be in a pool of the subscription kind (P2)."""
    facts, now = world.facts, world.now
    found = [o for o in facts.connections if (o.provider, o.connection_id) == (provider, connection_id)]
    if not found or connection_id == "noauth":
        return False
    one = found[0]
    billing, overage = oracle.billing_of(facts, provider, connection_id, one.auth_type)
    is_resting = any(
        rest.model in (None, model) and (rest.effective_until is None or rest.effective_until > now)
        for rest in one.cooldowns
    )
    return (
        billing is Billing.SUBSCRIPTION
        and (one.overage_override or overage) is Overage.HARD_STOP
        and not is_resting
        and not facts.breakers.get(provider, now) > now
        and oracle.judge_quota(facts, one, model, now)[0] == "usable"
    )


@PROPERTY
@given(worlds())
def test_p2_no_pool_of_the_subscription_kind_ever_lists_what_is_no_verified_plan_that_stops_hard(world):
    assert len(PLAN_IDS) == 6
    snapshot = Snapshot(world.facts)
    for pool_id in PLAN_IDS:
        for options in OPTIONS.values():
            for entry in ask_of(snapshot, world, pool_id=pool_id, options=options).candidates:
                assert entry.rung == "subscription"
                assert not entry.may_bill_past_plan
                for connection_id in entry.allowed_connection_ids or (entry.connection_id,):
                    assert _is_good_plan(world, entry.provider, entry.model, connection_id)


@PROPERTY
@given(worlds())
def test_p8_every_pair_comes_back_exactly_once_in_the_pool_or_with_one_code(world):
    expected = sorted(
        (one.ref or "", one.model, connection_id or "")
        for one in _asked(world)
        for connection_id in one.allowed_connection_ids or (one.connection_id,)
    )
    if world.candidates is None:
        bare = oracle.stored_candidates(world.facts, world.now)[1]
        expected = sorted([*expected, *(("", "", fate.connection_id or "") for fate in bare)])
    snapshot = Snapshot(world.facts)
    for pool_id in POOL_IDS:
        for mode, options in OPTIONS.items():
            pool = ask_of(snapshot, world, pool_id=pool_id, options=options)
            found = [
                (entry.ref or "", entry.model, connection_id or "")
                for entry in pool.candidates
                for connection_id in entry.allowed_connection_ids or (entry.connection_id,)
            ]
            found += [(out.ref or "", out.model or "", out.connection_id or "") for out in pool.excluded]
            assert sorted(found) == expected, (pool_id, mode)


@PROPERTY
@given(worlds())
def test_p4_and_p5_rungs_rise_and_the_order_within_a_rung_and_a_list_is_the_one_given(world):
    asked = _asked(world)
    named = [(one.provider, one.model, one.ref) for one in asked]
    snapshot = Snapshot(world.facts)
    for pool_id in POOL_IDS:
        for options in OPTIONS.values():
            pool = ask_of(snapshot, world, pool_id=pool_id, options=options)
            places = [
                (entry.rung_index, named.index((entry.provider, entry.model, entry.ref))) for entry in pool.candidates
            ]
            assert places == sorted(set(places))
            for (_, place), entry in zip(places, pool.candidates, strict=True):
                given_ids = asked[place].allowed_connection_ids
                assert (given_ids is None) == (entry.allowed_connection_ids is None)
                kept = set(entry.allowed_connection_ids or ())
                assert entry.allowed_connection_ids is None or tuple(o for o in given_ids if o in kept) == (
                    entry.allowed_connection_ids
                )


@PROPERTY
@given(worlds())
def test_p5_split_and_merge_hold_the_same_pairs(world):
    snapshot = Snapshot(world.facts)
    for pool_id in POOL_IDS:
        split = ask_of(snapshot, world, pool_id=pool_id, options=SPLIT)
        merge = ask_of(snapshot, world, pool_id=pool_id, options=MERGE)
        assert sorted(pair[:3] for pair in pairs_in(split)) == sorted(pair[:3] for pair in pairs_in(merge))
        assert split.excluded == merge.excluded
        assert split.valid_until == merge.valid_until
        named = [(entry.provider, entry.model, entry.ref) for entry in merge.candidates]
        assert len(named) == len(set(named))


@PROPERTY
@given(worlds())
def test_p6_lowest_rung_only_is_the_first_rung_of_the_whole_pool(world):
    snapshot = Snapshot(world.facts)
    for pool_id in POOL_IDS:
        whole = ask_of(snapshot, world, pool_id=pool_id, options=SPLIT).candidates
        lowest = ask_of(snapshot, world, pool_id=pool_id, options=LOWEST).candidates
        assert lowest == whole[: len(lowest)]
        assert lowest == [entry for entry in whole if entry.rung == whole[0].rung]


@PROPERTY
@given(worlds())
def test_asking_for_the_reasons_changes_nothing_else_and_the_counts_are_those_of_the_reasons(world):
    snapshot = Snapshot(world.facts)
    for pool_id in POOL_IDS:
        for options in OPTIONS.values():
            told = ask_of(snapshot, world, pool_id=pool_id, options=options)
            brief = ask_of(snapshot, world, pool_id=pool_id, options=msgspec.structs.replace(options, explain=False))
            assert brief.excluded is msgspec.UNSET
            assert msgspec.structs.replace(told, excluded=msgspec.UNSET) == brief
            codes = [out.code for out in told.excluded]
            assert told.excluded_counts == {code: codes.count(code) for code in oracle.PRECEDENCE if code in codes}
            assert (told.empty is None) == bool(told.candidates)


@PROPERTY
@given(worlds())
def test_the_same_question_twice_gives_the_same_answer(world):
    snapshot = Snapshot(world.facts)
    for pool_id in POOL_IDS:
        first = ask_of(snapshot, world, pool_id=pool_id)
        assert ask_of(snapshot, world, pool_id=pool_id) == first == ask(world, pool_id=pool_id)


def _with_reading(facts: Facts, place: int, name: str, **said) -> Facts:
    """Return the facts with something else read of one window."""
    fleet = list(facts.connections)
    windows = [
        msgspec.structs.replace(window, **said) if window.window == name else window for window in fleet[place].windows
    ]
    fleet[place] = msgspec.structs.replace(fleet[place], windows=tuple(windows))
    return msgspec.structs.replace(facts, connections=tuple(fleet))


def _numbers(facts: Facts):
    return [
        (place, window)
        for place, one in enumerate(facts.connections)
        for window in one.windows
        if window.remaining_percent is not None and window.observed_at is not None and not window.unlimited
    ]


@PROPERTY
@given(worlds(), st.data(), percents)
def test_q_more_quota_never_removes_a_connection(world, data, more):
    known = _numbers(world.facts)
    assume(known)
    place, window = data.draw(st.sampled_from(known))
    assume(more > window.remaining_percent)
    richer = _with_reading(world.facts, place, window.window, remaining_percent=more)
    for pool_id in POOL_IDS:
        before = set(pairs_in(ask(world, pool_id=pool_id)))
        assert before <= set(pairs_in(ask(World(richer, world.candidates, world.now), pool_id=pool_id)))


@PROPERTY
@given(worlds(), st.data(), percents)
def test_q_a_later_and_higher_reading_never_removes_a_plan_that_was_verified(world, data, more):
    known = _numbers(world.facts)
    assume(known)
    place, window = data.draw(st.sampled_from(known))
    assume(more > window.remaining_percent and window.observed_at <= world.now)
    richer = _with_reading(world.facts, place, window.window, remaining_percent=more, observed_at=world.now)
    for pool_id in PLAN_IDS:
        before = set(pairs_in(ask(world, pool_id=pool_id)))
        assert before <= set(pairs_in(ask(World(richer, world.candidates, world.now), pool_id=pool_id)))


@PROPERTY
@given(worlds())
def test_p1_a_pair_comes_to_the_same_whatever_stands_beside_it(world):
    asked = _asked(world)
    for pool_id in ("auto/subscription", "auto/thrifty", "auto/best-free"):
        whole = without_times(ask(world, pool_id=pool_id))
        alone = [ask(World(world.facts, (one,), world.now), pool_id=pool_id) for one in asked]
        kept = [pair for pool in alone for pair in pairs_in(pool)]
        assert sorted(pairs_in(whole), key=str) == sorted(kept, key=str)
        left = [out for pool in alone for out in pool.excluded]
        assert [out for out in whole.excluded if out.model is not None] == left
