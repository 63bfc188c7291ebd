"""Marks of the timeline (SPEC 5, 6): lanes, gathering, and where budget windows ended."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from ladder.core.timeline.marks import BudgetVersion, Happened, Lane, gather, lane_of_flip, window_ends
from ladder.core.values import Period, Weekday

T = datetime(2026, 8, 22, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
BERLIN = ZoneInfo("Europe/Berlin")


def version(since, *, period=Period.DAILY, zone="UTC", is_limited=True):
    return BudgetVersion(since, period, Weekday.MONDAY, ZoneInfo(zone), is_limited)


def ends(versions, *, start=T, days=3):
    return list(window_ends(versions=versions, start=start, end=start + timedelta(days=days)))


def test_a_flip_by_a_reset_stands_with_the_resets():
    assert (lane_of_flip("reset"), lane_of_flip("reading")) == (Lane.RESET, Lane.CHANGE)


def test_what_happens_together_is_one_mark_for_each_lane_that_counts_what_it_is_of():
    happened = [
        Happened(T + HOUR, Lane.CHANGE, "reading", 2),
        Happened(T + HOUR, Lane.CHANGE, "time"),
        Happened(T + HOUR, Lane.SETTING, "budget"),
        Happened(T + 9 * HOUR, Lane.CHANGE, "reading"),
        Happened(T + 10 * HOUR, Lane.CHANGE, "reading"),
        Happened(T - HOUR, Lane.CHANGE, "reading"),
    ]
    marks = gather(happened=happened, start=T, end=T + 10 * HOUR, slots=10)
    assert [(mark.lane, mark.count, mark.counts) for mark in marks] == [
        (Lane.CHANGE, 3, (("reading", 2), ("time", 1))),
        (Lane.SETTING, 1, (("budget", 1),)),
        (Lane.CHANGE, 1, (("reading", 1),)),
    ]


def test_a_budgets_windows_end_at_its_own_midnights_m3():
    found = ends([version(T - HOUR, zone="Europe/Berlin")])
    assert [at.astimezone(BERLIN).strftime("%d %H:%M") for at in found] == ["23 00:00", "24 00:00", "25 00:00"]


def test_a_day_of_25_hours_is_one_window_m3():
    start = datetime(2026, 10, 24, 12, 0, tzinfo=UTC)
    first, second = ends([version(start, zone="Europe/Berlin")], start=start, days=2)
    assert second - first == 25 * HOUR


def test_a_budget_without_a_limit_marks_no_end_m1():
    assert ends([version(T, is_limited=False)]) == []


def test_a_changed_period_marks_the_ends_of_what_was_set_then_m4():
    weekly = version(T + 30 * HOUR, period=Period.WEEKLY)
    assert ends([version(T - HOUR), weekly]) == [datetime(2026, 8, 23, tzinfo=UTC), datetime(2026, 8, 24, tzinfo=UTC)]


def test_the_first_version_holds_for_the_time_before_it():
    assert ends([version(T + 100 * HOUR)])[0] == datetime(2026, 8, 23, tzinfo=UTC)


def test_a_budget_that_nobody_made_ends_never():
    assert ends([]) == []
