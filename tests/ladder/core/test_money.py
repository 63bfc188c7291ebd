"""M: budget windows, when a paid rung closes and opens again, and what an event costs."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing_catalog.core.values import Price
from ladder.core.instants import NEVER
from ladder.core.money import (
    budget_window,
    closed_spans,
    cost_of,
    dearest,
    held_usd,
    hold_fits,
    is_off,
    is_spent,
    money_instants,
)
from ladder.core.values import Budget, Hold, Period, Weekday
from tests.ladder.core.asking import NOW, TICK
from tests.ladder.core.strategies import PROPERTY

HOUR = timedelta(hours=1)
START = datetime(2020, 1, 1, tzinfo=UTC)
DAILY, WEEKLY, MONTHLY = Period.DAILY, Period.WEEKLY, Period.MONTHLY
ZONES = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "America/Santiago",
    "America/Havana",
    "America/Nuuk",
    "Asia/Beirut",
    "Africa/Cairo",
    "Atlantic/Azores",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Pacific/Kiritimati",
    "Asia/Kathmandu",
    "Africa/Casablanca",
]


def usd(text):
    return Decimal(text)


def budget(amount, spent="0", *holds, end=None):
    return Budget(
        amount_usd=None if amount is None else usd(amount),
        spent_usd=None if spent is None else usd(spent),
        holds=tuple(Hold(usd(held), NOW + hours * HOUR) for held, hours in holds),
        window_end=end,
    )


def span(period, at, zone="UTC", starts=Weekday.MONDAY, reset_at=None):
    return budget_window(
        period=period,
        week_starts_on=starts,
        zone=ZoneInfo(zone),
        at=datetime.fromisoformat(at) if isinstance(at, str) else at,
        reset_at=reset_at,
    )


def days(period, at, zone="UTC", starts=Weekday.MONDAY):
    """Return first day and day after the last, as the zone's calendar has them."""
    window = span(period, at, zone, starts)
    return tuple(edge.astimezone(ZoneInfo(zone)).date().isoformat() for edge in (window.start, window.end))


def hours(period, at, zone="UTC"):
    window = span(period, at, zone)
    return (window.end - window.start) / HOUR


def test_m1_a_budget_of_0_is_off_and_no_budget_is_no_limit():
    assert is_off(budget("0"))
    assert is_off(budget("0", None))
    assert not is_off(budget(None))
    assert not is_off(budget("0.000001"))
    assert not is_spent(budget=budget(None, "999999"), at=NOW)


@pytest.mark.parametrize(
    ("spent", "holds", "closed"),
    [
        ("0", [], False),
        ("4.999999", [], False),
        ("5", [], True),
        ("7", [], True),
        ("4", [("0.999999", 1)], False),
        ("4", [("1", 1)], True),
        ("4", [("0.5", 1), ("0.5", 2)], True),
        ("4", [("1", 0)], False),
        ("4", [("1", -1)], False),
        ("0", [("5", 1)], True),
        ("-1", [("5", 1)], False),
        ("-1", [("6", 1)], True),
        (None, [("9", 1)], False),
    ],
)
def test_m2_spend_and_active_holds_close_the_rung_at_the_very_budget(spent, holds, closed):
    assert is_spent(budget=budget("5", spent, *holds), at=NOW) is closed


def test_m2_a_hold_is_active_until_its_very_end():
    one = budget("5", "0", ("5", 1))
    assert held_usd(budget=one, at=NOW + HOUR - TICK) == 5
    assert held_usd(budget=one, at=NOW + HOUR) == 0


def reopens_at(*, budget, now):
    return next((end for start, end in closed_spans(budget=budget, now=now) if start == now and end < NEVER), None)


def test_m2_a_closed_rung_opens_when_its_window_ends_or_enough_holds_do():
    end = NOW + 9 * HOUR
    assert reopens_at(budget=budget("5", "5", end=end), now=NOW) == end
    assert reopens_at(budget=budget("5", "4", ("1", 1), end=end), now=NOW) == NOW + HOUR
    assert reopens_at(budget=budget("5", "4", ("1", 1), ("1", 2), end=end), now=NOW) == NOW + 2 * HOUR
    assert reopens_at(budget=budget("5", "5", ("1", 1), end=end), now=NOW) == end
    assert reopens_at(budget=budget("5", "5", ("5", 10), end=end), now=NOW) == NOW + 10 * HOUR
    assert reopens_at(budget=budget("5", "5"), now=NOW) is None


def test_m2_the_next_window_starts_from_nothing_spent_and_nothing_refunded():
    end = NOW + HOUR
    assert not is_spent(budget=budget("5", "5", end=end), at=end)
    assert is_spent(budget=budget("5", "5", end=end), at=end - TICK)
    assert is_spent(budget=budget("5", "-1", ("5", 9), end=end), at=end)


def test_p9_a_rung_can_change_where_a_hold_or_the_window_ends():
    one = budget("5", "1", ("1", 1), ("1", 2), end=NOW + 3 * HOUR)
    assert sorted(money_instants(one)) == [NOW + HOUR, NOW + 2 * HOUR, NOW + 3 * HOUR]


@pytest.mark.parametrize(
    ("at", "zone", "expected"),
    [
        ("2026-08-22T12:00:00Z", "UTC", ("2026-08-22", "2026-08-23")),
        ("2026-08-22T00:00:00Z", "UTC", ("2026-08-22", "2026-08-23")),
        ("2026-08-21T23:59:59.999999Z", "UTC", ("2026-08-21", "2026-08-22")),
        ("2026-08-21T22:00:00Z", "Europe/Berlin", ("2026-08-22", "2026-08-23")),
        ("2026-08-21T21:59:59.999999Z", "Europe/Berlin", ("2026-08-21", "2026-08-22")),
        ("2026-12-31T10:00:00Z", "Pacific/Kiritimati", ("2027-01-01", "2027-01-02")),
    ],
)
def test_m3_a_daily_window_is_a_local_day(at, zone, expected):
    assert days(DAILY, at, zone) == expected


@pytest.mark.parametrize(
    ("at", "zone", "length"),
    [
        ("2026-03-29T12:00:00Z", "Europe/Berlin", 23),
        ("2026-10-25T12:00:00Z", "Europe/Berlin", 25),
        ("2026-03-08T12:00:00Z", "America/New_York", 23),
        ("2026-11-01T12:00:00Z", "America/New_York", 25),
        ("2026-09-06T12:00:00Z", "America/Santiago", 23),
        ("2026-04-04T12:00:00Z", "America/Santiago", 25),
        ("2026-03-29T12:00:00Z", "Asia/Beirut", 23),
        ("2026-10-24T12:00:00Z", "Asia/Beirut", 25),
        ("2026-10-04T00:00:00Z", "Australia/Lord_Howe", 23.5),
        ("2026-04-05T00:00:00Z", "Australia/Lord_Howe", 24.5),
    ],
)
def test_m3_a_local_day_of_23_or_25_hours_is_one_day(at, zone, length):
    assert hours(DAILY, at, zone) == length


@pytest.mark.parametrize(
    ("at", "zone", "start"),
    [
        ("2026-09-06T12:00:00Z", "America/Santiago", "2026-09-06T04:00:00Z"),
        ("2026-03-29T12:00:00Z", "Asia/Beirut", "2026-03-28T22:00:00Z"),
        ("2026-04-24T12:00:00Z", "Africa/Cairo", "2026-04-23T22:00:00Z"),
        ("2026-03-08T12:00:00Z", "America/Havana", "2026-03-08T05:00:00Z"),
    ],
)
def test_m3_a_day_whose_midnight_does_not_exist_starts_with_its_first_instant(at, zone, start):
    window = span(DAILY, at, zone)
    assert window.start == datetime.fromisoformat(start)
    local = window.start.astimezone(ZoneInfo(zone))
    assert (local.hour, local.minute) == (1, 0)
    assert span(DAILY, window.start - TICK, zone).end == window.start


@pytest.mark.parametrize("place", range(7))
def test_m3_a_week_starts_on_the_chosen_weekday(place):
    starts = list(Weekday)[place]
    first = date(2026, 8, 17) + timedelta(days=place)  # the 17th is a Monday
    for day in range(7):
        at = datetime(2026, 8, 17, 12, tzinfo=UTC) + timedelta(days=place + day)
        expected = first.isoformat(), (first + timedelta(days=7)).isoformat()
        assert days(WEEKLY, at, starts=starts) == expected


def test_m3_a_week_with_a_change_of_the_clock_is_an_hour_shorter_or_longer():
    assert hours(WEEKLY, "2026-03-25T12:00:00Z", "Europe/Berlin") == 7 * 24 - 1
    assert hours(WEEKLY, "2026-10-22T12:00:00Z", "Europe/Berlin") == 7 * 24 + 1


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ("2026-02-28T23:59:59.999999Z", ("2026-02-01", "2026-03-01")),
        ("2028-02-29T12:00:00Z", ("2028-02-01", "2028-03-01")),
        ("2100-02-28T12:00:00Z", ("2100-02-01", "2100-03-01")),
        ("2026-12-31T12:00:00Z", ("2026-12-01", "2027-01-01")),
        ("2026-01-31T12:00:00Z", ("2026-01-01", "2026-02-01")),
        ("2026-08-01T00:00:00Z", ("2026-08-01", "2026-09-01")),
    ],
)
def test_m3_a_monthly_window_is_a_calendar_month_in_leap_years_too(at, expected):
    assert days(MONTHLY, at) == expected


def test_m3_a_leap_year_has_a_29th_of_february_of_its_own():
    assert hours(MONTHLY, "2028-02-10T00:00:00Z") == 29 * 24
    assert hours(MONTHLY, "2026-02-10T00:00:00Z") == 28 * 24


@pytest.mark.parametrize(
    ("at", "zone", "start", "end"),
    [
        ("2010-11-07T02:29:59Z", "America/St_Johns", "2010-11-06T02:30:00Z", "2010-11-07T02:30:00Z"),
        ("2010-11-07T02:45:00Z", "America/St_Johns", "2010-11-07T02:30:00Z", "2010-11-08T03:30:00Z"),
        ("2010-03-04T15:30:00Z", "Antarctica/Casey", "2010-03-04T13:00:00Z", "2010-03-05T16:00:00Z"),
    ],
)
def test_m3_a_day_is_over_though_a_clock_set_back_over_midnight_shows_its_date_again(at, zone, start, end):
    window = span(DAILY, at, zone)
    assert (window.start, window.end) == (datetime.fromisoformat(start), datetime.fromisoformat(end))


@PROPERTY
@given(
    at=st.integers(0, 17 * 366 * 86400).map(lambda seconds: START + timedelta(seconds=seconds)),
    zone=st.sampled_from(ZONES),
    period=st.sampled_from(Period),
    starts=st.sampled_from(Weekday),
)
def test_m3_windows_hold_their_instants_and_follow_each_other_without_gap(at, zone, period, starts):
    window = span(period, at, zone, starts)
    assert window.start <= at < window.end
    assert window.counted_from == window.start
    assert span(period, window.start, zone, starts) == window
    assert span(period, window.end - TICK, zone, starts) == window
    assert span(period, window.end, zone, starts).start == window.end
    assert span(period, window.start - TICK, zone, starts).end == window.start


def test_m9_a_reset_counts_from_its_instant_in_this_window_and_moves_none():
    plain = span(DAILY, NOW)
    after = span(DAILY, NOW, reset_at=NOW - HOUR)
    assert (after.start, after.end, after.counted_from) == (plain.start, plain.end, NOW - HOUR)
    next_day = span(DAILY, NOW + 24 * HOUR, reset_at=NOW - HOUR)
    assert next_day.counted_from == next_day.start


@pytest.mark.parametrize(
    ("one", "amount", "fits"),
    [
        (budget("5", "4"), "1", True),
        (budget("5", "4"), "1.000001", False),
        (budget("5", "4", ("0.5", 1)), "0.5", True),
        (budget("5", "4", ("0.5", 1)), "0.500001", False),
        (budget("5", "4", ("0.5", 0)), "1", True),
        (budget("5", "6"), "0.000001", False),
        (budget("0", "0"), "0.000001", False),
        (budget(None, "99"), "99", True),
        (budget("5", None), "99", True),
        (budget("5", "5", end=NOW), "5", True),
    ],
)
def test_m8_no_hold_is_granted_that_would_go_above_the_budget(one, amount, fits):
    assert hold_fits(budget=one, amount_usd=usd(amount), at=NOW) is fits


def price(read, written, cached=None):
    numbers = [None if number is None else usd(number) for number in (read, written, cached)]
    return Price("acme", "big-one", NOW, None, *numbers)


@pytest.mark.parametrize(
    ("one", "tokens", "cost"),
    [
        (price("3", "15", "0.3"), (1_000_000, 0, 0), "3"),
        (price("3", "15", "0.3"), (0, 1_000_000, 0), "15"),
        (price("3", "15", "0.3"), (1_000_000, 0, 1_000_000), "0.3"),
        (price("3", "15", "0.3"), (1_000_000, 1_000_000, 400_000), "16.92"),
        (price("3", "15"), (1_000_000, 0, 1_000_000), "3"),
        (price("3", "15", "0"), (1_000_000, 0, 1_000_000), "0"),
        (price("3", "15", "0.3"), (10, 0, 99), "0.000003"),
        (price("0.5", "0"), (1, 0, 0), "0.000001"),
        (price("0.4", "0"), (1, 0, 0), "0"),
        (price("0", "0"), (5, 5, 0), "0"),
    ],
)
def test_m7_an_event_is_priced_by_its_tokens_the_cached_ones_among_the_input(one, tokens, cost):
    read, written, cached = tokens
    found = cost_of(price=one, input_tokens=read, output_tokens=written, cached_input_tokens=cached)
    assert found == usd(cost)
    assert isinstance(found, Decimal)


@pytest.mark.parametrize("one", [price(None, "15"), price("3", None), price(None, None)])
def test_m7_without_a_known_price_there_is_no_cost(one):
    assert cost_of(price=one, input_tokens=1, output_tokens=1, cached_input_tokens=0) is None


def test_m7_an_estimate_takes_the_dearest_input_and_the_dearest_output_of_the_rung():
    found = dearest([price("3", "15"), price("5", "10"), price(None, "99"), price("1", None)])
    assert (found.input_usd_per_million, found.output_usd_per_million) == (5, 99)
    assert dearest([]) is None
    assert dearest([price("3", None)]) is None
