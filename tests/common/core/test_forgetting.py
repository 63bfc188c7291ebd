"""M6: whatever is forgotten of a row's versions, what it said at any later instant is still told."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing_catalog.core.versions import Version, spans_of, standing_at
from omniroute_admin.common.core.forgetting import PastVersion, forgettable_versions
from tests.ladder.core.strategies import PROPERTY

AT = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
BEFORE = AT + 10 * DAY


def versions(*said):
    """Return versions of (day, what it speaks of); None is a deletion, of the thing before."""
    last, found = None, []
    for number, (day, key) in enumerate(said):
        last = key or last
        found.append(PastVersion(number, AT + day * DAY, key is None, last))
    return found


@pytest.mark.parametrize(
    ("said", "gone"),
    [
        ([], []),
        ([(1, "a")], []),
        ([(11, "a"), (12, "a")], []),
        ([(1, "a"), (2, "a"), (3, "a"), (12, "a")], [1, 0]),
        ([(1, "a"), (10, "a")], [0]),
        ([(1, "a"), (2, "a"), (3, None)], [0]),
        ([(1, "a"), (2, "b"), (3, "c"), (4, "c")], [2]),
        ([(1, "a"), (2, "a"), (2, "b"), (3, "b")], [2, 1]),
        ([(1, "a"), (5, "a"), (4, "a"), (6, "a")], []),
        ([(1, "a"), (2, "a"), (15, "a"), (16, "a"), (3, "a")], []),
    ],
    ids=[
        "nothing", "one", "all later", "the last of the old", "held at the horizon", "deleted", "spoke of others",
        "two of one instant", "a clock went back", "a clock was ahead",
    ],
)  # fmt: skip
def test_the_version_that_held_stays_and_the_last_that_spoke_of_each_thing(said, gone):
    assert forgettable_versions(versions=versions(*said), before=BEFORE) == gone


one_row = st.lists(st.tuples(st.integers(0, 20), st.sampled_from(["a", "b", "c", None])), min_size=1, max_size=6)


@PROPERTY
@given(rows=st.lists(one_row, min_size=1, max_size=4), order=st.booleans())
def test_what_stood_at_any_instant_from_the_horizon_on_is_the_same_m6(rows, order):
    written, kept = [], []
    for row, said in enumerate(rows):
        told = versions(*(sorted(said, key=lambda one: one[0]) if order else said))
        forgotten = set(forgettable_versions(versions=told, before=BEFORE))
        for one in told:
            value = None if one.is_deletion else (one.key, one.history_id)
            version = Version(row, one.at, value)
            written.append(version)
            kept += [version] if one.history_id not in forgotten else []
    for hours in range(0, 24 * 12, 12):
        at = BEFORE + timedelta(hours=hours)
        before, after = (
            standing_at(spans=spans_of(versions=some, key=lambda value: value[0]), at=at) for some in (written, kept)
        )
        assert after == before
