"""Which rung served when (SPEC 5, 6), from samples and flips."""

from datetime import UTC, datetime, timedelta

import pytest

from ladder.core.timeline.stretches import (
    MINUTE,
    REACH,
    THINNED_REACH,
    Sample,
    Stretch,
    Turn,
    coarsen,
    find_stretches,
    served_for,
)

T = datetime(2026, 8, 22, 12, 0, tzinfo=UTC)
LONG_AGO = T - timedelta(days=30)
HOUR = timedelta(hours=1)


def at(minutes, seconds=0):
    return T + timedelta(minutes=minutes, seconds=seconds)


def samples(first, last, serving):
    return [Sample(at(minute), serving) for minute in range(first, last)]


def moved(when, ceases, begins, cause="reading"):
    turns = [] if ceases is None else [Turn(when, ceases, False, cause)]
    return turns if begins is None else [*turns, Turn(when, begins, True, cause)]


def found(seen, turns=(), *, start=T, end=None, thinned_before=LONG_AGO):
    end = end or at(60)
    stretches = find_stretches(
        samples=list(seen), turns=list(turns), start=start, end=end, thinned_before=thinned_before
    )
    assert stretches[0].start == start
    assert stretches[-1].end == end
    assert [one.end for one in stretches[:-1]] == [one.start for one in stretches[1:]]
    return [
        ((one.start - T) / MINUTE, (one.end - T) / MINUTE, one.rung if one.is_known else "?", one.cause)
        for one in stretches
    ]


def test_a_range_that_starts_inside_a_stretch_begins_with_what_served_then():
    assert found(samples(-30, 60, "free")) == [(0, 60, "free", "")]


def test_serving_moves_at_the_flips_own_instant_and_not_at_the_sample():
    seen = [*samples(-1, 20, "subscription"), *samples(20, 60, "free")]
    assert found(seen, moved(at(19, 30), "subscription", "free", "reset")) == [
        (0, 19.5, "subscription", ""),
        (19.5, 60, "free", "reset"),
    ]


def test_a_sample_that_was_taken_after_a_flip_of_its_minute_does_not_move_it():
    seen = [*samples(-1, 10, "subscription"), *samples(10, 60, "free")]
    assert found(seen, moved(at(10, 20), "subscription", "free"))[0] == (0, 10 + 1 / 3, "subscription", "")


def test_a_first_sample_that_was_taken_after_a_flip_tells_what_served_before_it():
    assert found(samples(0, 60, "free"), moved(at(0, 30), "subscription", "free", "reading")) == [
        (0, 0.5, "subscription", ""),
        (0.5, 60, "free", "reading"),
    ]


def test_two_rungs_that_turn_in_one_instant_are_one_move_in_whatever_order_they_are_kept():
    seen = [*samples(-1, 10, "subscription"), *samples(10, 60, "cheap")]
    turns = moved(at(9, 30), "subscription", "cheap", "budget")
    assert (
        found(seen, turns) == found(seen, turns[::-1]) == [(0, 9.5, "subscription", ""), (9.5, 60, "cheap", "budget")]
    )


def test_a_rung_that_ceases_alone_leaves_none():
    seen = [*samples(-1, 10, "premium"), *samples(10, 60, None)]
    assert found(seen, moved(at(9, 30), "premium", None, "budget")) == [
        (0, 9.5, "premium", ""),
        (9.5, 60, None, "budget"),
    ]


def test_a_stretch_shorter_than_a_minute_is_told():
    turns = [*moved(at(5, 10), "free", "cheap"), *moved(at(5, 40), "cheap", "free")]
    assert [row[2] for row in found(samples(-1, 60, "free"), turns)] == ["free", "cheap", "free"]


def test_where_nobody_looked_there_is_a_gap_and_no_flat_line():
    """SPEC 5, 6: a worker that was down noted nothing."""
    reach = REACH / MINUTE
    assert found([*samples(-1, 20, "free"), *samples(40, 60, "free")]) == [
        (0, 19 + reach, "free", ""),
        (19 + reach, 40, "?", ""),
        (40, 60, "free", ""),
    ]


def test_one_sample_that_is_missing_is_no_gap():
    seen = [*samples(-1, 20, "free"), *samples(22, 60, "free")]
    assert found(seen) == [(0, 60, "free", "")]


def test_a_flip_that_a_late_look_dated_into_a_gap_draws_nothing_there():
    seen = [*samples(-1, 10, "free"), *samples(40, 60, "cheap")]
    assert [row[2] for row in found(seen, moved(at(25), "free", "cheap"))] == ["free", "?", "cheap"]


def test_the_time_before_the_first_sample_and_after_the_last_is_not_known():
    assert [row[2] for row in found(samples(20, 30, "free"))] == ["?", "free", "?"]


def test_nothing_at_all_is_one_gap():
    assert found([]) == [(0, 60, "?", "")]


def test_a_change_that_no_flip_tells_of_is_taken_from_the_sample():
    seen = [*samples(-1, 30, "free"), *samples(30, 60, "cheap")]
    assert found(seen) == [(0, 30, "free", ""), (30, 60, "cheap", "")]


def test_a_sample_before_a_late_looks_flip_moves_it_and_the_flip_changes_nothing_more():
    seen = [*samples(-1, 30, "free"), *samples(30, 60, "cheap")]
    assert found(seen, moved(at(31, 5), "free", "cheap")) == [(0, 30, "free", ""), (30, 60, "cheap", "")]


def test_a_clock_that_went_back_gives_the_same_in_any_order_of_rows():
    """SPEC 6: what is kept is in the order of writing, not of instants."""
    seen = [*samples(-1, 20, "free"), *samples(20, 60, "cheap")]
    turns = [*moved(at(19, 30), "free", "cheap"), *moved(at(10), "cheap", "free")]
    assert found(seen[::-1], turns[::-1]) == found(seen, turns)


def test_thinned_samples_speak_for_an_hour_and_more():
    seen = [Sample(T + HOUR * number, "free") for number in range(-1, 5)]
    reach = THINNED_REACH / MINUTE
    assert found(seen, end=at(60 * 8), thinned_before=T + 9 * HOUR) == [
        (0, 240 + reach, "free", ""),
        (240 + reach, 480, "?", ""),
    ]


def test_lengths_add_up_to_what_is_known():
    seen = [*samples(-1, 20, "free"), *samples(30, 60, None)]
    stretches = find_stretches(samples=seen, turns=[], start=T, end=at(60), thinned_before=LONG_AGO)
    assert served_for(stretches) == {"free": at(22) - T, None: at(60) - at(30)}


@pytest.mark.parametrize("most", [10, 25])
def test_a_coarser_chart_tells_the_dearest_of_each_piece_and_hides_no_short_climb(most):
    rungs = ["subscription"] * 60
    rungs[31] = "premium"
    stretches = [
        Stretch(at(n), at(n + 1), "free" if n % 2 and rung == "subscription" else rung) for n, rung in enumerate(rungs)
    ]
    coarse = coarsen(stretches=stretches, most=most)
    assert len(coarse) <= most
    assert (coarse[0].start, coarse[-1].end) == (T, at(60))
    assert [one.rung for one in coarse if one.start <= at(31) < one.end] == ["premium"]
    assert coarsen(stretches=stretches, most=60) == tuple(stretches)


def test_a_coarser_chart_keeps_a_gap_that_fills_a_piece():
    stretches = [Stretch(at(0), at(30), None, is_known=False)] + [
        Stretch(at(30 + n), at(31 + n), "free" if n % 2 else "cheap") for n in range(30)
    ]
    assert not coarsen(stretches=stretches, most=6)[0].is_known
