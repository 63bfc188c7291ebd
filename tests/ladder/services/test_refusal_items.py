"""SPEC 4, Rate limits: what one report says."""

import json
from datetime import timedelta

import msgspec
import pytest

from ladder.core.values import CooldownCause
from ladder.services.reading_items import RefusedReadingError
from ladder.services.refusal_items import RateLimitItem, rate_limit_of
from tests.factories_ladder import NOW

DAY = timedelta(days=1)


def understood(**fields):
    body = {"connection_id": "c1", "occurred_at": NOW.isoformat(), "cause": "quota"} | fields
    item = msgspec.json.decode(json.dumps(body), type=RateLimitItem)
    return rate_limit_of(item=item, now=NOW)


def refused(**fields):
    with pytest.raises(RefusedReadingError) as caught:
        understood(**fields)
    return caught.value.code


@pytest.mark.parametrize(
    ("sent", "length"),
    [
        (None, None),
        (0, timedelta(0)),
        (120, timedelta(seconds=120)),
        (1.5, timedelta(seconds=1.5)),
        ("120", timedelta(seconds=120)),
        (" 1.25 ", timedelta(seconds=1.25)),
        (30 * 86400, 30 * DAY),
        (30 * 86400 + 1, 30 * DAY),
        (10**40, 30 * DAY),
        ("99999999999999999999", 30 * DAY),
        ("Sat, 22 Aug 2026 12:30:00 GMT", timedelta(minutes=30)),
        ("Saturday, 22-Aug-26 12:30:00 GMT", timedelta(minutes=30)),
        ("Sat Aug 22 12:30:00 2026", timedelta(minutes=30)),
        ("Sat, 22 Aug 2026 11:30:00 GMT", timedelta(0)),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 30 * DAY),
    ],
)
def test_retry_after_is_seconds_or_an_http_date_up_to_30_days_c4(sent, length):
    assert understood(retry_after=sent).retry_after == length


@pytest.mark.parametrize(
    "sent",
    ["soon", "", "-1", "2026-08-22T12:30:00Z", "Sat, 99 Aug 2026 12:30:00 GMT", "1e3", -1, -0.001, "1 2", "٣"],
)
def test_a_length_that_is_none_is_refused(sent):
    assert refused(retry_after=sent) == "invalid_retry_after"


@pytest.mark.parametrize("name", ["retry_after", "reset_at"])
@pytest.mark.parametrize("sent", [True, [1], {"seconds": 1}])
def test_what_is_neither_a_number_nor_a_text_is_refused(name, sent):
    assert refused(**{name: sent}) in {"invalid_item", "invalid_reset_at"}


@pytest.mark.parametrize(
    "sent", ["2026-08-22T13:00:00Z", "2026-08-22T15:00:00+02:00", 1787403600, 1787403600000, 1787403600.0]
)
def test_a_reset_is_iso_or_epoch_seconds_or_milliseconds(sent):
    assert understood(reset_at=sent).reset_at == NOW + timedelta(hours=1)


@pytest.mark.parametrize(
    "sent", ["50000-01-01T00:00:00Z", "+50000-01-01T00:00:00Z", "9999-01-01T00:00:00Z", "2026-08-22T13:00:00", 10**15]
)
def test_a_date_that_cannot_be_meant_is_refused(sent):
    assert refused(reset_at=sent) == "invalid_reset_at"


@pytest.mark.parametrize("sent", ["nonsense", "", "6m0s"])
def test_a_reset_that_is_no_date_is_not_readable_and_no_reason_to_refuse_c1(sent):
    one = understood(reset_at=sent)
    assert (one.reset_at, one.is_reset_unreadable) == (None, True)
    assert not understood().is_reset_unreadable
    assert "not readable" in one.origin
    assert "nonsense" not in one.origin


def test_an_instant_more_than_a_minute_ahead_is_refused_and_one_of_skew_is_not():
    assert understood(occurred_at=(NOW + timedelta(seconds=60)).isoformat()).occurred_at > NOW
    assert refused(occurred_at=(NOW + timedelta(seconds=60, microseconds=1)).isoformat()) == "occurred_in_future"
    assert refused(occurred_at="0001-01-01T00:00:00Z") == "invalid_item"


@pytest.mark.parametrize("name", ["model", "window"])
@pytest.mark.parametrize("sent", ["", " ", "a\u0000b", "x" * 201])
def test_a_name_that_cannot_be_kept_is_refused(name, sent):
    assert refused(**{name: sent}) == "invalid_item"


@pytest.mark.parametrize(
    "fields",
    [
        {"cause": "operator"},
        {"cause": None},
        {"failure_count": -1},
        {"failure_count": 2**31},
        {"failure_count": 1.5},
        {"status_code": 99},
        {"status_code": "429"},
        {"colour": "red"},
        {"occurred_at": "2026-08-22T12:00:00"},
    ],
)
def test_what_is_no_report_is_told_apart_c3(fields):
    with pytest.raises(msgspec.ValidationError):
        understood(**fields)


def test_a_report_in_words_tells_all_that_set_the_cooldown_c2():
    one = understood(status_code=429, retry_after=90, failure_count=2, window="5h", reset_at=1787403600)
    assert one.origin == (
        "report of 2026-08-22 12:00:00 UTC, status 429, retry after 90 s, failure 2, window 5h, "
        "reset 2026-08-22 13:00:00 UTC"
    )
    assert one.cause is CooldownCause.QUOTA


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (0, "0 s"),
        (90, "90 s"),
        (1.5, "1.5 s"),
        (1_000_000, "1000000 s"),
        (86400.25, "86400.25 s"),
        (10**9, "2592000 s"),
    ],
)
def test_a_retry_after_is_told_as_it_was_asked_and_never_rounded_c2(sent, words):
    assert understood(retry_after=sent).origin.endswith(f"retry after {words}")
