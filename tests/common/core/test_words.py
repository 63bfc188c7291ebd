"""Words for amounts and time."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest

from omniroute_admin.common.core.words import age_text, clock_text, money_text, percent_text, span_text, until_text

NOW = datetime(2026, 8, 27, 8, 12, 40, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("value", "text"),
    [("41", "41 %"), ("41.00000000", "41 %"), ("0.5", "0.5 %"), ("100", "100 %"), ("2.00000001", "2.00000001 %")],
)
def test_percent_is_told_exactly_and_never_rounded(value: str, text: str) -> None:
    """SPEC 1: percent is exact."""
    assert percent_text(Decimal(value)) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("1.2", "$1.20"),
        ("5", "$5.00"),
        ("0.004000", "$0.004"),
        ("-2", "-$2.00"),
        ("1234567.5", "$1,234,567.50"),
        ("1E+3", "$1,000.00"),
    ],
)
def test_money_is_told_with_cents_and_all_it_has_beyond(value: str, text: str) -> None:
    assert money_text(Decimal(value)) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0 s"),
        (59, "59 s"),
        (65, "1 min 05 s"),
        (599, "9 min 59 s"),
        (600, "10 min"),
        (3599, "59 min"),
        (5220, "1 h 27 min"),
        (86399, "23 h 59 min"),
        (338400, "3 d 22 h"),
    ],
)
def test_a_span_is_told_in_its_two_largest_units(seconds: int, text: str) -> None:
    assert span_text(seconds) == text


def test_an_instant_reached_is_now_and_one_of_the_future_has_no_age() -> None:
    assert until_text(at=NOW, now=NOW) == "now"
    assert until_text(at=NOW + timedelta(minutes=41), now=NOW) == "in 41 min"
    assert age_text(at=NOW + timedelta(seconds=30), now=NOW) == "0 s ago"


@pytest.mark.parametrize(
    ("at", "text"),
    [
        (NOW + timedelta(minutes=17, seconds=20), "10:30"),
        (NOW + timedelta(days=4), "Mon 10:12"),
        (NOW + timedelta(days=6, hours=23), "Thu 09:12"),
        (NOW + timedelta(days=7), "3 Sep 10:12"),
        (NOW - timedelta(days=5), "Sat 10:12"),
        (NOW - timedelta(days=7), "20 Aug 10:12"),
        (NOW + timedelta(days=300), "23 Jun 2027 10:12"),
    ],
)
def test_a_clock_carries_as_much_date_as_tells_it_apart(at: datetime, text: str) -> None:
    assert clock_text(at=at, now=NOW, zone=BERLIN) == text


def test_a_clock_is_told_in_the_zone_that_is_looked_at() -> None:
    at = datetime(2026, 8, 27, 22, 30, tzinfo=UTC)
    assert clock_text(at=at, now=NOW, zone=ZoneInfo("UTC")) == "22:30"
    assert clock_text(at=at, now=NOW, zone=BERLIN) == "Fri 00:30"
