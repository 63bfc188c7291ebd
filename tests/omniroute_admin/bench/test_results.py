"""What a row says: its numbers, its ratio, whether its target was met."""

import pytest

from omniroute_admin.bench.results import Result, Timing, line_of, percentile, table_of, timing_of

FAST, SLOW = Timing(10, 0.001, 0.002, 0.006, 0.009), Timing(10, 0.003, 0.004, 0.010, 0.020)


def test_a_timing_has_the_median_and_the_nearest_ranks() -> None:
    samples = [number / 1000 for number in range(100, 0, -1)]
    assert timing_of(samples) == Timing(100, 0.001, 0.0505, 0.095, 0.099)


@pytest.mark.parametrize(("percent", "expected"), [(0, 1), (50, 2), (75, 3), (76, 4), (99, 4), (100, 4)])
def test_a_percentile_is_a_sample_that_enough_of_them_do_not_exceed(percent: float, expected: float) -> None:
    assert percentile([1, 2, 3, 4], percent) == expected


def test_nothing_is_said_of_no_sample() -> None:
    with pytest.raises(ValueError, match="no sample"):
        timing_of([])


def test_a_ratio_is_that_of_the_medians_unless_the_row_asks_for_its_p95() -> None:
    assert Result(name="row", measured=SLOW, floor=FAST).ratio == pytest.approx(2)
    assert Result(name="row", measured=SLOW, floor=FAST, by="p95").ratio == pytest.approx(5)
    assert Result(name="row", measured=SLOW).ratio is None


def test_a_ratio_at_best_is_that_of_the_fastest_samples() -> None:
    assert Result(name="row", measured=SLOW, floor=FAST).ratio_at_best == pytest.approx(3)
    assert Result(name="row", measured=SLOW, floor=FAST, by="p95").ratio_at_best is None
    assert Result(name="row", measured=SLOW).ratio_at_best is None


@pytest.mark.parametrize(("target", "is_met"), [(None, None), (1.99, False), (2.0, True), (3.0, True)])
def test_a_target_is_the_most_a_ratio_may_be(target: float | None, is_met: bool | None) -> None:
    assert Result(name="row", measured=SLOW, floor=FAST, target=target).is_met is is_met


@pytest.mark.parametrize(("count", "is_met"), [(0, True), (1, False)])
def test_a_count_has_a_target_of_its_own(count: int, is_met: bool) -> None:
    assert Result(name="row", count=count, target=0).is_met is is_met


def test_what_could_not_be_measured_missed_its_target() -> None:
    assert Result(name="row", failure="broken", target=2).is_met is False


def test_a_line_has_milliseconds_and_what_else_the_row_tells() -> None:
    line = line_of(Result(name="row", measured=SLOW, floor=FAST, target=1.5, more={"bytes": 7}))
    told = {"median_ms": 4.0, "p95_ms": 10.0, "p99_ms": 20.0, "n": 10, "floor_median_ms": 2.0, "ratio": 2.0}
    assert told.items() <= line.items()
    assert (line["is_met"], line["target"], line["bytes"], line["failure"]) == (False, 1.5, 7, None)


def test_the_table_has_a_line_for_each_row() -> None:
    rows = [
        Result(name="slow", measured=SLOW, floor=FAST, target=1.5),
        Result(name="late", measured=SLOW, floor=FAST, by="p95"),
        Result(name="old", count=0, unit="of 15", target=0),
        Result(name="gone", failure="broken", target=2),
    ]
    heads, _, *lines = (line.split() for line in table_of(rows).splitlines())
    assert heads == ["name", "median", "p95", "floor", "ratio", "at", "best", "target", "met"]
    assert lines == [
        ["slow", "4.000", "ms", "10.000", "ms", "2.000", "ms", "2.00", "3.00", "1.5", "no"],
        ["late", "4.000", "ms", "10.000", "ms", "2.000", "ms", "5.00", "p95"],
        ["old", "0", "of", "15", "0", "yes"],
        ["gone", "failed", "2", "no"],
    ]
