from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import permutations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ladder.core.values import ReadingStatus
from ladder.services.reading_items import (
    Observation,
    ReadingItem,
    RefusedReadingError,
    observe,
    order_of,
    reading_item,
)
from tests.factories_ladder import NOW


def item(fields: str) -> ReadingItem:
    """Decode an item from the inside of its JSON object; the names that every item has are added."""
    head = '{"connection_id": "c1", "window": "5h", "observed_at": "2026-08-22T12:00:00Z"'
    return msgspec.json.decode(f"{head}, {fields}}}".encode(), type=ReadingItem)


def seen(fields: str, now: datetime = NOW) -> Observation:
    return observe(item=item(fields), now=now)


def refusal(fields: str) -> str:
    with pytest.raises(RefusedReadingError) as refused:
        seen(fields)
    return refused.value.code


@pytest.mark.parametrize(
    ("fields", "remaining", "raw"),
    [
        ('"remaining_percent": 41.5', "41.5", "41.5"),
        ('"remaining_percent": -3', "0", "-3"),
        ('"remaining_percent": 100.00000001', "100", "100.00000001"),
        ('"remaining_percent": 1e400', "100", "1e400"),
        ('"remaining_percent": 1e-400', "0", "1e-400"),
        ('"remaining_percent": 2.000000019', "2.00000001", "2.000000019"),
        ('"used_percent": 58.5', "41.5", "used 58.5"),
        ('"used_percent": 140', "0", "used 140"),
        ('"used_percent": -1', "100", "used -1"),
        ('"used_percent": 0.000000001', "99.99999999", "used 0.000000001"),
        ('"remaining": 1, "limit": 3', "33.33333333", "1 of 3"),
        ('"remaining": 2, "limit": 3', "66.66666666", "2 of 3"),
        ('"remaining": 5, "limit": 4', "100", "5 of 4"),
        ('"remaining": -5, "limit": 4', "0", "-5 of 4"),
        ('"remaining": 1e-999999, "limit": 1e999999', "0", "1e-999999 of 1e999999"),
    ],
)
def test_a_number_becomes_percent_remaining_cut_to_eight_places_and_kept_raw_spec_4(fields, remaining, raw):
    observation = seen(fields)
    assert observation.remaining_percent == Decimal(remaining)
    assert observation.raw == raw
    assert observation.status is ReadingStatus.SAFE


@pytest.mark.parametrize("limit", ["0", "-1", "-0.0"])
def test_a_limit_of_nothing_is_unknown_spec_4(limit):
    observation = seen(f'"remaining": 3, "limit": {limit}')
    assert observation.remaining_percent is None
    assert observation.status is ReadingStatus.UNKNOWN


def test_a_status_may_stand_alone_or_beside_a_number_spec_4():
    alone = seen('"status": "exhausted"')
    beside = seen('"status": "unknown", "remaining_percent": 7')
    assert (alone.status, alone.remaining_percent) == (ReadingStatus.EXHAUSTED, None)
    assert (beside.status, beside.remaining_percent) == (ReadingStatus.UNKNOWN, 7)


def test_unlimited_is_a_form_of_the_number_and_may_have_a_status_beside_it_spec_4():
    assert seen('"unlimited": true').unlimited
    assert seen('"unlimited": true, "status": "safe"').unlimited
    assert refusal('"unlimited": true, "remaining_percent": 4') == "conflicting_values"


FORMS = ['"remaining_percent": 4', '"used_percent": 96', '"remaining": 4, "limit": 100', '"unlimited": true']


@pytest.mark.parametrize(("first", "second"), list(permutations(FORMS, 2)))
def test_two_forms_of_the_number_are_refused_even_if_they_agree_spec_4(first, second):
    assert refusal(f"{first}, {second}") == "conflicting_values"


@pytest.mark.parametrize(
    "fields",
    ['"combine": "limit"', '"unlimited": false', '"remaining_percent": null', '"remaining": 4', '"limit": 4'],
)
def test_a_reading_that_says_nothing_is_refused_spec_4(fields):
    assert refusal(fields) == "no_value"


@pytest.mark.parametrize("value", ['"50"', '"abc"', "true", "[]", "{}", '""', "1e99999999999999999999"])
@pytest.mark.parametrize("name", ["remaining_percent", "used_percent"])
def test_a_text_is_no_number_spec_4(name, value):
    assert refusal(f'"{name}": {value}') == "invalid_item"


@pytest.mark.parametrize(
    ("reset", "expected"),
    [
        ('"2026-08-22T17:00:00Z"', datetime(2026, 8, 22, 17, tzinfo=UTC)),
        ('"2026-08-22T19:00:00+02:00"', datetime(2026, 8, 22, 17, tzinfo=UTC)),
        ("1787418000", datetime(2026, 8, 22, 17, tzinfo=UTC)),
        ("1787418000.5", datetime(2026, 8, 22, 17, microsecond=500_000, tzinfo=UTC)),
        ("1787418000000", datetime(2026, 8, 22, 17, tzinfo=UTC)),
        ("1787418000000.0", datetime(2026, 8, 22, 17, tzinfo=UTC)),
        ("1.787418e12", datetime(2026, 8, 22, 17, tzinfo=UTC)),
        ("99999999999", datetime(5138, 11, 16, 9, 46, 39, tzinfo=UTC)),
        ("0", datetime(1970, 1, 1, tzinfo=UTC)),
        ("null", None),
    ],
)
def test_a_reset_is_iso_or_epoch_seconds_or_milliseconds_spec_4(reset, expected):
    assert seen(f'"remaining_percent": 4, "reset_at": {reset}').reset_at == expected


@pytest.mark.parametrize(
    "reset",
    [
        '"50000-01-01T00:00:00Z"',
        "1515695200000000",
        "99999999999999999",
        "1e30",
        "1e999999999",
        '"9999-12-31T23:59:59Z"',
        '"2026-08-22T17:00:00"',
        '"2026-08-22"',
        '"tomorrow"',
        '"1787418000"',
    ],
)
def test_a_reset_in_the_year_50000_or_no_instant_at_all_is_refused_spec_4(reset):
    assert refusal(f'"remaining_percent": 4, "reset_at": {reset}') == "invalid_reset_at"


def test_a_minute_of_clock_skew_is_tolerated_and_not_a_microsecond_more_spec_6():
    at_the_edge = NOW - timedelta(seconds=60)
    assert seen('"status": "safe"', at_the_edge).observed_at == NOW
    with pytest.raises(RefusedReadingError, match="60 s"):
        seen('"status": "safe"', at_the_edge - timedelta(microseconds=1))


@pytest.mark.parametrize("fields", ['"model": ""', '"model": " "', '"model": "a\\u0000"', f'"model": "{"m" * 201}"'])
def test_a_name_no_database_could_keep_is_refused(fields):
    assert refusal(f'"status": "safe", {fields}') == "invalid_item"


def test_observed_and_received_are_both_kept_spec_4():
    observation = seen('"status": "safe"', NOW + timedelta(hours=1))
    assert (observation.observed_at, observation.received_at) == (NOW, NOW + timedelta(hours=1))


def test_of_one_instant_the_word_counts_before_a_number_before_unlimited_before_unknown_spec_4():
    forms = [
        '"status": "exhausted"',
        '"remaining_percent": 2',
        '"remaining_percent": 3',
        FORMS[3],
        '"status": "unknown"',
    ]
    places = [order_of(seen(form)) for form in forms]
    assert places == sorted(places)
    assert len(set(places)) == len(places)


numbers = st.decimals(allow_nan=False, allow_infinity=False)


@given(number=numbers)
@settings(deadline=None)
def test_no_number_at_all_leaves_the_range_or_is_raised_by_cutting_it(number):
    observation = observe(
        item=reading_item(connection_id="c1", window="5h", observed_at=NOW, remaining_percent=number), now=NOW
    )
    remaining = observation.remaining_percent
    assert remaining == max(Decimal(0), remaining) == min(Decimal(100), remaining)
    assert remaining <= max(number, Decimal(0))
    assert remaining.as_tuple().exponent == -8


amounts = st.decimals(min_value=Decimal("0.000001"), max_value=10**12, places=6)


@given(first=amounts, second=amounts)
@settings(deadline=None)
def test_a_share_is_the_exact_quotient_cut_at_eight_places(first, second):
    made = ReadingItem(
        connection_id="c1",
        window="5h",
        observed_at=NOW,
        remaining=msgspec.Raw(str(first).encode()),
        limit=msgspec.Raw(str(second).encode()),
    )
    exact = min(Fraction(first) / Fraction(second) * 100, Fraction(100))
    cut = Fraction(observe(item=made, now=NOW).remaining_percent)
    assert cut <= exact < cut + Fraction(1, 10**8)


def test_an_item_made_from_values_says_what_its_json_would_say():
    made = reading_item(
        connection_id="c1",
        window="5h",
        observed_at=NOW,
        remaining_percent=Decimal("41.5"),
        reset_at=NOW + timedelta(hours=5),
    )
    assert observe(item=made, now=NOW) == seen('"remaining_percent": 41.5, "reset_at": "2026-08-22T17:00:00Z"')
