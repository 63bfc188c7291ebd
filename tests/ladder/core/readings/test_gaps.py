"""How often readings arrive (SPEC 2, Settings)."""

from datetime import timedelta

import pytest

from ladder.core.readings.gaps import usual_gap
from tests.ladder.core.asking import NOW


def read(*seconds):
    return [NOW - timedelta(seconds=each) for each in seconds]


@pytest.mark.parametrize(
    ("windows", "gap"),
    [
        ([], None),
        ([read(0)], None),
        ([read(0, 60, 120)], None),
        ([read(0, 60, 120, 180)], 60),
        ([read(180, 0, 120, 60)], 60),
        ([read(0, 60, 120), read(0, 60), read(5)], 60),
        ([read(0, 60, 120, 7200)], 60),
        ([read(0, 300), read(0, 300), read(0, 300), read(0, 10)], 300),
    ],
)
def test_the_usual_gap_is_the_median_of_enough_gaps(windows, gap):
    assert usual_gap(windows) == (None if gap is None else timedelta(seconds=gap))
