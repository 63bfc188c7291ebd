"""The tuning page's words and drawing, as values (SPEC 5, 3)."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ladder.core.values import Accounting, Budget, Hold
from ladder.views.presenting.tuning import WIDTH, age_words, band, budget_line, value_words
from omniroute_admin.common.core.screen import Glance, text_of

NOW = datetime(2026, 8, 22, 12, 0, tzinfo=UTC)
GLANCE = Glance(now=NOW, zone=ZoneInfo("UTC"))
percents = st.decimals(0, 100, places=2)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("exit_cutoff_percent", "2.5", "2.5 %"),
        ("max_reading_age_seconds", "180", "180 s"),
        ("cheap_amount", "5", "$5.00"),
        ("cheap_amount", "off", "off"),
        ("premium_amount", "none", "no limit"),
        ("tier_cheap", "0.000001", "$0.000001"),
        ("cheap_zone", "Asia/Tokyo", "Asia/Tokyo"),
    ],
)
def test_a_value_is_told_as_people_read_it(name, text, words):
    assert value_words(name, text) == words


def test_the_band_is_drawn_to_scale():
    drawn = band(exit_cutoff=Decimal(2), reentry=Decimal(5))
    assert (drawn.low, drawn.high, drawn.keep, drawn.rest) == ("88", "220", "132", "220")
    assert drawn.words == "Up to 2 % out, above 2 % up to 5 % a connection stays as it was, above 5 % in"
    assert {label.text for label in drawn.labels} == {"2 %", "5 %", "10 %"}
    assert drawn.note == ""


def test_a_floor_below_the_cutoff_has_no_band_and_counts_as_the_cutoff():
    drawn = band(exit_cutoff=Decimal(4), reentry=Decimal(1))
    assert (drawn.has_band, drawn.keep, drawn.note) == (
        False,
        "0",
        "Below the exit cutoff: counts as 4 %, the exit cutoff.",
    )


@given(exit_cutoff=percents, reentry=percents)
def test_whatever_the_settings_the_drawing_stays_inside_its_box(exit_cutoff, reentry):
    drawn = band(exit_cutoff=exit_cutoff, reentry=reentry)
    low, high, keep, rest = map(Decimal, (drawn.low, drawn.high, drawn.keep, drawn.rest))
    assert 0 <= low <= high <= WIDTH
    assert abs(low + keep + rest - WIDTH) <= Decimal("0.3")
    assert all(0 <= Decimal(label.x) <= WIDTH for label in drawn.labels)
    between = [label for label in drawn.labels if label.anchor == "start" and label.x != "0"]
    ends = [label for label in drawn.labels if label.anchor == "end" and label.x != "440"]
    for left, right in zip(ends, between, strict=False):
        assert Decimal(left.x) < Decimal(right.x)


@pytest.mark.parametrize(
    ("seconds", "gap", "is_short"), [(180, None, False), (180, 60, False), (180, 180, False), (180, 181, True)]
)
def test_an_age_is_short_only_where_readings_are_rarer(seconds, gap, is_short):
    told = age_words(seconds=seconds, gap=None if gap is None else timedelta(seconds=gap))
    assert told.is_short is is_short
    assert ("empty most of the time" in told.text) is is_short


WINDOW = {
    "window_start": datetime(2026, 8, 16, 22, 0, tzinfo=UTC),
    "window_end": datetime(2026, 8, 23, 22, 0, tzinfo=UTC),
    "zone": "Europe/Berlin",
}


@pytest.mark.parametrize(
    ("fields", "is_moved", "words"),
    [
        ({}, False, "This window: no spend reported, until Mon 24 Aug 00:00 Europe/Berlin."),
        (
            {"spent_usd": Decimal("1.2"), "accounting": Accounting.COMPLETE},
            False,
            "This window: $1.20 spent, since Mon 17 Aug 00:00 until Mon 24 Aug 00:00 Europe/Berlin.",
        ),
        (
            {
                "spent_usd": Decimal("1.2"),
                "accounting": Accounting.PARTIAL,
                "holds": (Hold(Decimal("0.15"), NOW + timedelta(minutes=1)), Hold(Decimal(9), NOW)),
            },
            True,
            (
                "The window would be the one since Mon 17 Aug 00:00 until Mon 24 Aug 00:00 Europe/Berlin,"
                " with what happened in it: $1.20 spent + $0.15 on hold, partly estimated."
            ),
        ),
        (
            {"spent_usd": Decimal("-0.5"), "accounting": Accounting.COMPLETE},
            False,
            "This window: -$0.50 spent, since Mon 17 Aug 00:00 until Mon 24 Aug 00:00 Europe/Berlin.",
        ),
    ],
)
def test_a_budgets_window_is_told_in_its_own_zone(fields, is_moved, words):
    """M2, M3: a hold that has ended holds nothing."""
    assert text_of(budget_line(budget=Budget(**WINDOW, **fields), glance=GLANCE, is_moved=is_moved)) == words
