"""Pool and code of every pair, against a slow and plain reading of SPEC part 2 (all of its rules at once)."""

from hypothesis import given

from ladder.core.ids import POOL_IDS
from ladder.core.reasons import Code
from ladder.core.snapshot import Snapshot
from ladder.core.values import Pool
from tests.ladder.core import oracle
from tests.ladder.core.asking import OPTIONS, World, ask_of
from tests.ladder.core.strategies import PROPERTY, worlds


def test_the_order_of_the_codes_is_that_of_p8():
    assert [code.value for code in Code] == oracle.PRECEDENCE


def _reading(world: World, pool_id: str, mode: str):
    known = POOL_IDS[pool_id]
    asked = None if world.candidates is None else list(world.candidates)
    return oracle.answer(
        world.facts,
        known.grouping,
        known.category,
        asked,
        world.now,
        merge="merge" in mode,
        lowest="lowest" in mode,
    )


def _pool(pool: Pool, places: dict[tuple[str, str, str | None], int]):
    return [
        (
            places[entry.provider, entry.model, entry.ref],
            entry.rung_index,
            list(entry.allowed_connection_ids or (entry.connection_id,)),
        )
        for entry in pool.candidates
    ]


def _left(pool: Pool, places: dict[tuple[str, str, str | None], int]):
    return sorted(
        (
            -1 if out.model is None else places[out.provider, out.model, out.ref],
            out.connection_id or "",
            out.code,
            str(out.returns_at),
        )
        for out in pool.excluded
    )


@PROPERTY
@given(worlds())
def test_every_pool_is_what_a_plain_reading_of_the_rules_says(world):
    asked = world.candidates
    if asked is None:
        asked, _ = oracle.stored_candidates(world.facts, world.now)
    places = {(one.provider, one.model, one.ref): place for place, one in enumerate(asked)}
    snapshot = Snapshot(world.facts)
    for pool_id in POOL_IDS:
        for mode, options in OPTIONS.items():
            pool = ask_of(snapshot, world, pool_id=pool_id, options=options)
            expected, left = _reading(world, pool_id, mode)
            assert _pool(pool, places) == expected, (pool_id, mode)
            wanted = sorted((place, one or "", code, str(at)) for place, one, code, at in left)
            assert _left(pool, places) == wanted, (pool_id, mode)
