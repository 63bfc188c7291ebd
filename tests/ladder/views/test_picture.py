"""The token of a picture (SPEC 5, 1)."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from ladder.views.picture import Picture, is_current, micros, picture_of, region_sum, sums_of, token_of

NOW = datetime(2026, 8, 27, 8, 12, 40, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")
PICTURE = Picture(revision=7, shown=3, evaluated_at=micros(NOW), valid_until=micros(NOW + timedelta(seconds=50)))


def test_a_token_is_read_back_as_it_was_written() -> None:
    sums = {"now": "0123456789ab", "conns": "ba9876543210"}
    token = token_of(PICTURE, sums=sums)
    assert picture_of(token) == PICTURE
    assert sums_of(token) == sums


@pytest.mark.parametrize(
    "token", ["", "x", "1.2", "1.2.3", "1.2.3.4.5", "-1.2.3.4", "1.2.3.4~now", "9" * 30 + ".1.1.1", "~a:b"]
)
def test_what_is_no_token_holds_no_region(token: str) -> None:
    assert sums_of(token) == {}


@pytest.mark.parametrize("token", ["", "x", "1.2", "1.2.3", "1.2.3.4.5", "-1.2.3.4", "1.2.3.4\n", "9" * 30 + ".1.1.1"])
def test_what_is_no_token_speaks_of_no_picture(token: str) -> None:
    assert picture_of(token) is None


def test_a_picture_holds_until_the_first_instant_it_does_not() -> None:
    """P9: valid_until is exclusive."""
    end = NOW + timedelta(seconds=50)
    assert is_current(PICTURE, token=(7, 3), now=NOW, zone=BERLIN)
    assert is_current(PICTURE, token=(7, 3), now=end - timedelta(microseconds=1), zone=BERLIN)
    assert not is_current(PICTURE, token=(7, 3), now=end, zone=BERLIN)


def test_a_picture_of_another_revision_does_not_hold() -> None:
    assert not is_current(PICTURE, token=(8, 3), now=NOW, zone=BERLIN)


def test_a_picture_of_other_money_does_not_hold() -> None:
    """SPEC 3: spend that moves no decision moves the token of what screens show."""
    assert not is_current(PICTURE, token=(7, 4), now=NOW, zone=BERLIN)


def test_a_clock_stepped_back_is_answered_by_a_new_picture() -> None:
    """SPEC 6."""
    assert not is_current(PICTURE, token=(7, 3), now=NOW - timedelta(seconds=1), zone=BERLIN)


def test_a_picture_without_an_end_holds_to_midnight_of_the_zone() -> None:
    picture = Picture(revision=7, shown=3, evaluated_at=micros(NOW), valid_until=0)
    assert is_current(picture, token=(7, 3), now=datetime(2026, 8, 27, 21, 59, tzinfo=UTC), zone=BERLIN)
    assert not is_current(picture, token=(7, 3), now=datetime(2026, 8, 27, 22, 0, tzinfo=UTC), zone=BERLIN)


def test_a_token_from_the_end_of_time_is_no_fault() -> None:
    picture = picture_of("7.3.99999999999999999999.0")
    assert picture is not None
    assert not is_current(picture, token=(7, 3), now=NOW, zone=BERLIN)


def test_a_sum_does_not_see_what_the_browser_counts() -> None:
    first = '<p>back <time datetime="x">10:30</time> (<span data-tick="in" data-at="x">in 17 min</span>)</p>'
    assert region_sum(first) == region_sum(first.replace("in 17 min", "in 16 min"))
    assert region_sum(first) != region_sum(first.replace("10:30", "10:31"))
    assert region_sum(first) != region_sum(first.replace('data-at="x"', 'data-at="y"'))
