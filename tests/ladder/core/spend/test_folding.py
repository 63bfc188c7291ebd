"""What of the ledger is summed together always stands in the same totals, in every zone (M3, M4, M9)."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ladder.core.money import budget_window
from ladder.core.spend.folding import QUARTER, PastRow, Place, cuts_of, fold, piece_start
from ladder.core.values import Period, Weekday
from omniroute_admin.common.core.axis import day_start
from tests.ladder.core.strategies import PROPERTY
from tests.ladder.services.booking import usd

AT = datetime(2026, 8, 22, 12, 7, 30, tzinfo=UTC)
MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)
PLACE = Place(1, "small", "cheap", "budget")


def test_every_day_of_every_zone_begins_at_a_quarter_of_an_hour():
    days = [date(2000, 1, 1) + timedelta(days=7 * week) for week in range(52 * 40)]
    zones = [ZoneInfo(name) for name in sorted(available_timezones())]
    assert len(zones) > 400
    odd = {
        (zone.key, day)
        for zone in zones
        for day in days
        if (day_start(day=day, zone=zone) - AT.replace(hour=0, minute=0, second=0)) % QUARTER
    }
    assert odd == set()


@pytest.mark.parametrize("name", ["America/St_Johns", "Asia/Kathmandu", "Pacific/Chatham", "Australia/Lord_Howe"])
def test_every_window_of_a_budget_begins_at_a_quarter_where_clocks_are_odd(name):
    for day in range(366 * 12):
        at = datetime(2000, 1, 1, 12, tzinfo=UTC) + timedelta(days=day)
        window = budget_window(period=Period.DAILY, week_starts_on=Weekday.MONDAY, zone=ZoneInfo(name), at=at)
        assert piece_start(at=window.start, cuts=()) == window.start


@PROPERTY
@given(
    ats=st.lists(st.integers(0, 10_000), min_size=2, max_size=2),
    resets=st.lists(st.integers(0, 10_000), max_size=3),
)
def test_no_piece_reaches_over_a_reset_or_a_quarter_m9(ats, resets):
    first, second = sorted(AT + one * SECOND for one in ats)
    cuts = cuts_of(AT + one * SECOND for one in resets)
    begins = [piece_start(at=at, cuts=cuts) for at in (first, second)]
    assert begins[0] <= first < begins[0] + QUARTER
    assert begins[1] <= second < begins[1] + QUARTER
    if begins[0] == begins[1]:
        assert not any(first < AT + one * SECOND <= second for one in resets)
    # Charts go by minutes: what came after a reset in a later minute is not told in the reset's own.
    inside = [AT + one * SECOND for one in resets if AT + one * SECOND <= second]
    if inside and second.replace(second=0) > max(inside):
        assert begins[1].replace(second=0) == begins[1]


def row(pk, *, original=None, corrects="", at=AT, cost="1.00", adds=None, change=0, is_estimated=False, place=PLACE):
    return PastRow(
        pk, f"e{pk}", original, corrects, place, at, AT, usd(cost if adds is None else adds), usd(cost), is_estimated,
        change,
    )  # fmt: skip


def test_a_chain_is_one_event_at_the_cost_that_counts():
    chain = [row(1, cost="1.00"), row(2, original=1, corrects="e1", at=AT + SECOND, cost="0.25", adds="-0.75")]
    folded = fold(chains=[chain, [row(3, cost="2", change=1, is_estimated=True)]], cuts={})
    (one,) = folded.sums
    assert (one.usd, one.estimated_usd, one.rows, one.events, one.estimates) == (usd("2.25"), usd(2), 3, 2, 1)
    assert (one.booked_at, one.last_at) == (AT.replace(minute=0, second=0), AT)
    assert (folded.originals, folded.corrections, folded.refused) == ((1, 3), (2,), ())


@pytest.mark.parametrize(
    "chain",
    [
        [row(1, cost="1.00", adds="0.50")],
        [row(1, change=1)],
        [row(1), row(2, original=1, corrects="e1", at=AT + SECOND, cost="0.25", adds="0")],
        [row(1), row(2, original=1, corrects="e9", adds="0")],
        [row(1), row(2, original=1, corrects="e1", adds="0", place=Place(2, "small", "cheap", "budget"))],
    ],
    ids=["not whole", "miscounted", "adds up to less", "leads nowhere", "elsewhere"],
)
def test_a_chain_that_does_not_add_up_stays(chain):
    folded = fold(chains=[chain], cuts={})
    assert (folded.sums, folded.originals, folded.corrections, folded.refused) == ((), (), (), ("e1",))
