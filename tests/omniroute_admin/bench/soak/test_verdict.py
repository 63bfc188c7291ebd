"""When memory is flat, and how samples are told."""

import pytest

from omniroute_admin.bench.soak.verdict import TOLERANCE, Call, Sample, growth_of, tenths_of

MEGA = 1024 * 1024
HALF_AN_HOUR = 1_800.0


def growing(*, start: int, per_minute: float, length: float = HALF_AN_HOUR, every: float = 10.0) -> list[Sample]:
    looks = int(length / every) + 1
    return [Sample(turn * every, round(start + per_minute * turn * every / 60)) for turn in range(looks)]


@pytest.mark.parametrize(
    ("start_mb", "per_minute_kb", "is_flat"),
    [
        (100, 0, True),
        (100, -500, True),
        # 1 % in ten minutes and 4 MB once: 6 MB of 100 in the last twenty minutes.
        (100, 290, True),
        (100, 330, False),
        (1_000, 1_100, True),
        (1_000, 1_400, False),
    ],
)
def test_memory_is_flat_below_a_percent_in_ten_minutes_and_what_an_allocator_keeps(
    start_mb: int, per_minute_kb: int, is_flat: bool
) -> None:
    samples = growing(start=start_mb * MEGA, per_minute=per_minute_kb * 1024)
    assert growth_of(samples, length=HALF_AN_HOUR).is_flat is is_flat


def test_what_a_process_takes_while_it_settles_does_not_count() -> None:
    settling = [Sample(float(at), at * MEGA) for at in range(0, 600, 10)]
    settled = [Sample(float(at), 600 * MEGA) for at in range(600, 1_800, 10)]
    growth = growth_of([*settling, *settled], length=HALF_AN_HOUR)
    assert (growth.per_span, growth.is_flat, growth.first, growth.last) == (0, True, 600 * MEGA, 600 * MEGA)


def test_growth_is_told_for_ten_minutes_whatever_the_length() -> None:
    for length in (600.0, HALF_AN_HOUR):
        samples = growing(start=100 * MEGA, per_minute=MEGA, length=length)
        assert growth_of(samples, length=length).per_span == pytest.approx(10 * MEGA, rel=0.01)


def test_one_sample_grows_by_nothing_and_none_is_no_process() -> None:
    growth = growth_of([Sample(0.5, MEGA)], length=1.0)
    assert (growth.seemed, growth.allowed, growth.is_flat) == (0, TOLERANCE, True)
    with pytest.raises(ValueError, match="no sample"):
        growth_of([], length=1.0)


def test_a_tenth_has_the_calls_that_were_due_in_it() -> None:
    calls = [Call(due, 0.001 * due) for due in (0.0, 9.9, 10.0, 99.9, 100.0)]
    tenths = list(tenths_of(calls, length=100.0))
    assert [None if one is None else one.n for one in tenths] == [2, 1, *[None] * 7, 2]
