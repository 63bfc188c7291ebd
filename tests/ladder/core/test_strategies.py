"""The generated facts reach everything that the properties speak of; otherwise these would hold of nothing."""

from hypothesis import Phase, given, settings

from ladder.core.ids import POOL_IDS
from ladder.core.reasons import Code
from ladder.core.snapshot import Snapshot
from ladder.core.values import Grouping, Rung
from tests.ladder.core.asking import LOWEST, SPLIT, ask_of
from tests.ladder.core.strategies import PROPERTY, worlds


def test_generated_facts_reach_every_reason_code_every_rung_and_every_kind_of_validity():
    codes, rungs, ends = set(), set(), set()

    @settings(PROPERTY, max_examples=200, derandomize=True, phases=[Phase.generate])
    @given(worlds())
    def look(world):
        snapshot = Snapshot(world.facts)
        for pool_id in POOL_IDS:
            for options in (SPLIT, LOWEST):
                pool = ask_of(snapshot, world, pool_id=pool_id, options=options)
                codes.update((pool.grouping, code) for code in pool.excluded_counts)
                rungs.update((pool.grouping, entry.rung) for entry in pool.candidates)
                ends.add((pool.grouping, bool(pool.candidates), pool.valid_until is None))

    look()
    assert {code for _, code in codes} == {code.value for code in Code}
    assert {rung for grouping, rung in rungs if grouping == "thrifty"} == {rung.word for rung in Rung}
    assert {rung for grouping, rung in rungs if grouping == "subscription"} == {"subscription"}
    assert {rung for grouping, rung in rungs if grouping == "free"} == {"keyless", "free"}
    every = {
        (grouping, is_filled, is_endless) for grouping in Grouping for is_filled in (0, 1) for is_endless in (0, 1)
    }
    # Q3: a reading that carries a plan into its pool ages out, so such an answer always has an end.
    assert ends == every - {(Grouping.SUBSCRIPTION, True, True)}
