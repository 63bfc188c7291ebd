"""How spend grew from window to window, and where it came to the budget (M2, M4, M9). Exact to the last place."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from ladder.core.spend.curve import CurvePoint, Spent, reached_at, spend_curve, thinned

T = datetime(2026, 8, 22, tzinfo=UTC)
HOUR = timedelta(hours=1)


def at(hours):
    return T + hours * HOUR


def spent(*booked):
    return [Spent(at(hours), Decimal(usd)) for hours, usd in booked]


def curve(booked, counts_from=(0,), start=0, end=48):
    points = spend_curve(
        booked=spent(*booked), counts_from=[at(hours) for hours in counts_from], start=at(start), end=at(end)
    )
    return [((point.at - T) / HOUR, str(point.usd)) for point in points]


def test_spend_adds_up_step_by_step_to_the_end_and_stays_exact():
    assert curve([(1, "0.1"), (2, "0.2"), (5, "0.000001")]) == [
        (0, "0"),
        (1, "0.1"),
        (2, "0.3"),
        (5, "0.300001"),
        (48, "0.300001"),
    ]


def test_a_new_window_begins_from_nothing_at_its_own_instant_m4():
    assert curve([(1, "0.1"), (30, "0.2")], counts_from=(0, 24)) == [
        (0, "0"), (1, "0.1"), (24, "0.1"), (24, "0"), (30, "0.2"), (48, "0.2"),
    ]  # fmt: skip


def test_what_was_booked_at_the_very_start_of_a_window_is_in_it():
    assert curve([(24, "0.2")], counts_from=(0, 24)) == [(0, "0"), (24, "0"), (24, "0"), (24, "0.2"), (48, "0.2")]


def test_a_period_that_starts_inside_a_window_starts_with_what_had_come_up():
    assert curve([(1, "0.1"), (13, "0.2")], start=12) == [(12, "0.1"), (13, "0.3"), (48, "0.3")]


def test_a_window_that_begins_with_the_period_starts_from_nothing():
    assert curve([(1, "0.1")], counts_from=(0, 24), start=24)[0] == (24, "0")


def test_a_refund_goes_down_and_may_go_below_nothing():
    assert curve([(1, "0.1"), (2, "-0.3")])[2] == (2, "-0.2")


def test_nothing_booked_is_a_flat_line():
    assert curve([]) == [(0, "0"), (48, "0")]


def test_the_budget_is_reached_at_the_event_that_makes_it_full_m2():
    booked = spent((1, "0.4"), (2, "0.6"), (3, "0.1"))
    assert reached_at(booked=booked, limit=Decimal("1.0")) == at(2)
    assert reached_at(booked=booked, limit=Decimal("1.000001")) == at(3)
    assert reached_at(booked=booked, limit=Decimal("1.2")) is None
    assert reached_at(booked=booked, limit=Decimal("1.2"), before=Decimal("0.8")) == at(1)


def test_a_thinned_line_keeps_its_ends_peaks_and_fall_to_nothing():
    points = [CurvePoint(at(number / 10), Decimal(number % 97)) for number in range(3000)]
    few = thinned(points, most=300)
    assert len(few) <= 310
    assert (few[0], few[-1]) == (points[0], points[-1])
    assert {point.usd for point in few} >= {Decimal(0), Decimal(96)}
    assert list(few) == sorted(few, key=lambda point: point.at)
    assert thinned(points[:300], most=300) == tuple(points[:300])
