"""SPEC 4: the ladder now, told by a snapshot that was asked before as by a fresh one."""

from datetime import timedelta
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from billing_catalog.core.values import Price
from ladder.core.occupancy import build_occupancy
from ladder.core.snapshot import Snapshot
from ladder.core.values import Facts
from tests.ladder.core.asking import NOW
from tests.ladder.core.small_facts import CATALOG, plan
from tests.ladder.core.strategies import PROPERTY, moments, worlds

MINUTE = timedelta(minutes=1)


@PROPERTY
@given(worlds(inventory=True), st.lists(moments, min_size=2, max_size=6))
def test_a_snapshot_asked_before_tells_the_ladder_as_a_fresh_one(world, instants):
    kept = Snapshot(world.facts)
    for at in instants:
        assert build_occupancy(snapshot=kept, now=at) == build_occupancy(snapshot=Snapshot(world.facts), now=at), at


def test_a_place_is_off_before_its_first_model_and_after_its_last():
    price = Price("claude", "opus-4", NOW, NOW + MINUTE, None, Decimal(1))
    kept = Snapshot(Facts(connections=(plan(),), catalog=CATALOG, prices=(price,)))
    codes = [build_occupancy(snapshot=kept, now=NOW + minute * MINUTE).places[0].code for minute in (-1, 0, 1)]
    assert codes == ["no_models", None, "no_models"]
