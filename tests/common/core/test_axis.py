"""The time axis: local hours and days, also where a day has 23 or 25 hours."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from omniroute_admin.common.core.axis import days_range, ticks

BERLIN = ZoneInfo("Europe/Berlin")
HOUR = timedelta(hours=1)


@pytest.mark.parametrize(("day", "hours"), [(date(2026, 8, 22), 24), (date(2026, 3, 29), 23), (date(2026, 10, 25), 25)])
def test_a_local_day_has_as_many_hours_as_the_zone_gives_it(day, hours):
    start, end = days_range(first=day, last=day, zone=BERLIN)
    assert end - start == hours * HOUR
    assert (start.astimezone(BERLIN).hour, end.astimezone(BERLIN).hour) == (0, 0)


def test_days_of_a_range_are_both_included():
    start, end = days_range(first=date(2026, 8, 20), last=date(2026, 8, 22), zone=ZoneInfo("UTC"))
    assert end - start == timedelta(days=3)


@pytest.mark.parametrize("day", [date(2026, 8, 22), date(2026, 3, 29), date(2026, 10, 25)])
def test_hours_on_the_axis_are_those_of_the_clock_on_the_wall(day):
    start, end = days_range(first=day, last=day, zone=BERLIN)
    words = [tick.word for tick in ticks(start=start, end=end, zone=BERLIN)]
    assert words[1:-1] == ["03:00", "06:00", "09:00", "12:00", "15:00", "18:00", "21:00"]
    assert words[0] == f"{day:%a} {day.day} {day:%b}"


def test_a_range_of_days_has_a_tick_at_each_local_midnight_and_none_outside():
    start = datetime(2026, 10, 22, 12, 0, tzinfo=UTC)
    found = ticks(start=start, end=start + timedelta(days=7), zone=BERLIN)
    assert [tick.at.astimezone(BERLIN).hour for tick in found] == [0] * 7
    assert [tick.word for tick in found][:2] == ["Fri 23 Oct", "Sat 24 Oct"]


@pytest.mark.parametrize("days", [1, 2, 3, 8, 30, 90, 400])
def test_an_axis_never_has_many_more_ticks_than_fit(days):
    start = datetime(2026, 8, 22, 12, 0, tzinfo=UTC)
    found = ticks(start=start, end=start + timedelta(days=days), zone=BERLIN)
    assert 2 <= len(found) <= 14


def test_a_midnight_that_a_zone_leaves_out_is_the_first_instant_of_the_day():
    zone = ZoneInfo("America/Santiago")  # 2026-09-06 begins at 01:00
    start, end = days_range(first=date(2026, 9, 6), last=date(2026, 9, 6), zone=zone)
    assert end - start == 23 * HOUR
