"""The pace of a quota window (SPEC 5, 2)."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ladder.core.readings.pace import (
    Basis,
    Life,
    Pace,
    Point,
    even_left,
    life_of,
    pace_of,
    points_within,
    share_of_life,
    start_by_name,
    thin_points,
    ticks_of,
)

RESET = datetime(2026, 8, 31, 7, tzinfo=UTC)
HOUR = timedelta(hours=1)
WEEK = Life(RESET - timedelta(days=7), RESET, Basis.NAME)
DAY = Life(RESET - timedelta(days=1), RESET, Basis.NAME)


@pytest.mark.parametrize(
    ("window", "span"),
    [
        ("5h", timedelta(hours=5)),
        ("5H", timedelta(hours=5)),
        ("30min", timedelta(minutes=30)),
        ("90m", timedelta(minutes=90)),
        ("7d", timedelta(days=7)),
        ("2w", timedelta(days=14)),
        ("24 hours", timedelta(days=1)),
        ("hourly", timedelta(hours=1)),
        ("daily", timedelta(days=1)),
        ("weekly", timedelta(days=7)),
        ("weekly:opus", timedelta(days=7)),
        ("5h:sonnet", timedelta(hours=5)),
    ],
)
def test_a_name_tells_the_length_of_its_window(window: str, span: timedelta) -> None:
    assert start_by_name(window=window, reset_at=RESET) == RESET - span


@pytest.mark.parametrize("window", ["", "acu", "billing_cycle", "0h", "5x", "h5", "weekly-opus", "99999h", "premium"])
def test_a_name_without_a_length_tells_none(window: str) -> None:
    assert start_by_name(window=window, reset_at=RESET) is None


@pytest.mark.parametrize(
    ("reset", "start"),
    [
        ("2026-08-31", "2026-07-31"),
        ("2026-03-31", "2026-02-28"),
        ("2028-03-30", "2028-02-29"),
        ("2026-01-15", "2025-12-15"),
    ],
)
def test_a_monthly_window_began_a_calendar_month_before(reset: str, start: str) -> None:
    at = datetime.fromisoformat(f"{reset}T07:00:00+00:00")
    assert start_by_name(window="monthly", reset_at=at) == datetime.fromisoformat(f"{start}T07:00:00+00:00")


def test_a_length_beyond_the_calendar_is_none() -> None:
    assert start_by_name(window="9999w", reset_at=datetime(2, 1, 1, tzinfo=UTC)) is None
    assert start_by_name(window="monthly", reset_at=datetime(1, 1, 1, tzinfo=UTC)) is None


def test_a_life_is_told_by_the_name_before_the_readings() -> None:
    assert life_of(window="5h", reset_at=RESET, earlier_reset_at=RESET - 9 * HOUR) == Life(
        RESET - 5 * HOUR, RESET, Basis.NAME
    )
    assert life_of(window="acu", reset_at=RESET, earlier_reset_at=RESET - 9 * HOUR) == Life(
        RESET - 9 * HOUR, RESET, Basis.READINGS
    )


@pytest.mark.parametrize(("reset_at", "earlier"), [(None, None), (None, RESET), (RESET, None), (RESET, RESET)])
def test_a_life_of_unknown_length_is_none(reset_at: datetime | None, earlier: datetime | None) -> None:
    assert life_of(window="acu", reset_at=reset_at, earlier_reset_at=earlier) is None


def test_only_the_readings_of_this_life_are_drawn_in_order() -> None:
    inside = [Point(RESET - timedelta(days=days), Decimal(50)) for days in (7, 3, 1)]
    outside = [Point(RESET - timedelta(days=8), Decimal(3)), Point(RESET - HOUR, Decimal(1))]
    now = RESET - 2 * HOUR
    assert points_within(points=[outside[1], *reversed(inside), outside[0]], life=WEEK, now=now) == inside


@pytest.mark.parametrize(("hours", "left"), [(-1, 100), (0, 100), (6, 75), (12, 50), (24, 0), (25, 0)])
def test_even_pace_runs_straight_from_all_to_nothing(hours: int, left: int) -> None:
    assert even_left(life=DAY, at=DAY.started_at + hours * HOUR) == left
    assert share_of_life(life=DAY, at=DAY.started_at + hours * HOUR) == 1 - Decimal(left) / 100


CUTOFF = Decimal(2)


@pytest.mark.parametrize(
    ("hours", "left", "pace"),
    [
        # On even pace: the cutoff comes 2 % of the day before the reset.
        (
            12,
            "50",
            Pace(Decimal(50), Decimal(0), DAY.started_at + timedelta(hours=23, minutes=31, seconds=12), Decimal(0)),
        ),
        # Twice as fast: 1 % takes 7.2 minutes.
        (6, "50", Pace(Decimal(75), Decimal(25), DAY.started_at + timedelta(minutes=98 * 7.2), Decimal(0))),
        # Half as fast: half of it is left at the reset.
        (12, "75", Pace(Decimal(50), Decimal(-25), None, Decimal(50))),
        # Nothing used yet.
        (12, "100", Pace(Decimal(50), Decimal(-50), None, Decimal(100))),
        # At and below the cutoff there is no way to it.
        (12, "2", Pace(Decimal(50), Decimal(48), None, Decimal(0))),
        (12, "0", Pace(Decimal(50), Decimal(50), None, Decimal(0))),
    ],
)
def test_the_pace_so_far_leads_on_in_a_straight_line(hours: int, left: str, pace: Pace) -> None:
    newest = Point(DAY.started_at + hours * HOUR, Decimal(left))
    assert pace_of(life=DAY, newest=newest, cutoff=CUTOFF, now=newest.at) == pace


def test_a_cutoff_of_ones_own_is_reached_earlier() -> None:
    newest = Point(DAY.started_at + 12 * HOUR, Decimal(50))
    pace = pace_of(life=DAY, newest=newest, cutoff=Decimal(25), now=newest.at)
    assert pace is not None
    assert pace.cutoff_at == DAY.started_at + 18 * HOUR


@pytest.mark.parametrize(
    ("at", "now"),
    [
        (DAY.started_at, DAY.started_at + HOUR),
        (DAY.started_at - HOUR, DAY.started_at + HOUR),
        (RESET, RESET - HOUR),
        (RESET - HOUR, RESET),
    ],
)
def test_a_reading_of_another_life_or_a_reset_that_passed_has_no_pace(at: datetime, now: datetime) -> None:
    assert pace_of(life=DAY, newest=Point(at, Decimal(50)), cutoff=CUTOFF, now=now) is None


@given(
    micros=st.integers(1, 86_400_000_000 - 1),
    left=st.decimals(0, 100, places=8),
    cutoff=st.decimals(0, 100, places=8),
)
def test_the_cutoff_is_reached_on_the_line_and_within_the_life(micros: int, left: Decimal, cutoff: Decimal) -> None:
    newest = Point(DAY.started_at + timedelta(microseconds=micros), left)
    pace = pace_of(life=DAY, newest=newest, cutoff=cutoff, now=newest.at)
    assert pace is not None
    if pace.cutoff_at is None:
        assert left == 100 or left <= cutoff or pace.left_at_reset >= cutoff - Decimal("0.0001")
        return
    assert newest.at < pace.cutoff_at < RESET
    passed = Decimal((pace.cutoff_at - DAY.started_at) // timedelta(microseconds=1))
    line = 100 - (100 - left) * passed / micros
    assert line <= cutoff
    assert line + (100 - left) / micros >= cutoff - Decimal("0.0001")


def test_ticks_cut_a_life_into_even_parts_up_to_the_last_instant() -> None:
    until = DAY.started_at + 4 * HOUR
    assert ticks_of(life=DAY, until=until, count=4) == [DAY.started_at + number * HOUR for number in (1, 2, 3, 4)]
    assert ticks_of(life=DAY, until=RESET + HOUR, count=1) == [RESET]
    assert ticks_of(life=DAY, until=DAY.started_at, count=4) == []


def test_thinned_points_keep_the_first_and_the_last() -> None:
    points = [Point(DAY.started_at + number * HOUR, Decimal(number)) for number in range(20)]
    thinned = thin_points(points=points, at_most=5)
    assert [int(one.left) for one in thinned] == [0, 4, 9, 14, 19]
    assert thin_points(points=points[:3], at_most=5) == points[:3]
