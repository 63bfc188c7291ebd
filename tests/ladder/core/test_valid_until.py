"""P9: in [evaluated_at, valid_until) the answer is the same, at valid_until it is another. It is exact."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from ladder.core.ids import POOL_IDS
from ladder.core.snapshot import Snapshot
from tests.ladder.core.asking import OPTIONS, TICK, World, ask, ask_of, instants_in, without_times
from tests.ladder.core.strategies import PROPERTY, moments, worlds

FAR = datetime(9990, 1, 1, tzinfo=UTC)
questions = st.tuples(st.sampled_from(sorted(POOL_IDS)), st.sampled_from(sorted(OPTIONS)))


def _within(world: World, start: datetime, end: datetime) -> list[datetime]:
    named = {at + shift for at in instants_in(world.facts) for shift in (-TICK, timedelta(0), TICK)}
    return sorted(at for at in {*named, start + TICK, end - TICK} if start <= at < end)


@PROPERTY
@given(worlds(), st.lists(questions, min_size=1, max_size=6, unique=True))
def test_an_answer_stays_the_same_until_valid_until_and_not_beyond(world, asked):
    for pool_id, mode in asked:
        now = ask(world, pool_id=pool_id, options=OPTIONS[mode])
        end = now.valid_until
        for at in _within(world, world.now, end or FAR):
            later = ask(world, pool_id=pool_id, options=OPTIONS[mode], at=at)
            assert without_times(later) == without_times(now), (pool_id, mode, at)
            assert later.valid_until == end, (pool_id, mode, at)
        if end is not None:
            changed = ask(world, pool_id=pool_id, options=OPTIONS[mode], at=end)
            assert without_times(changed) != without_times(now), (pool_id, mode, end)


@PROPERTY
@given(worlds(), st.lists(st.tuples(questions, moments), min_size=2, max_size=12))
def test_a_snapshot_asked_before_answers_as_a_fresh_one(world, asked):
    kept = Snapshot(world.facts)
    for (pool_id, mode), at in asked:
        fresh = ask(world, pool_id=pool_id, options=OPTIONS[mode], at=at)
        assert ask_of(kept, world, pool_id=pool_id, options=OPTIONS[mode], at=at) == fresh, (pool_id, mode, at)
