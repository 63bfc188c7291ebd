"""C: which cooldown acts, how long a report asks for, where the clamp cuts."""

from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing_catalog.core.values import Billing
from ladder.core.cooldown import (
    Report,
    acting_cooldown,
    asked_until,
    backoff,
    clamp,
    failures_in_a_row,
    is_clamped,
    later,
    reset_that_caused,
)
from ladder.core.values import Cooldown, CooldownCause, LadderSettings, ReadingStatus, Window
from tests.ladder.core.asking import NOW, TICK
from tests.ladder.core.strategies import PROPERTY, instants

HOUR = timedelta(hours=1)
QUOTA, RATE, AUTH, BAN, OPERATOR = (
    CooldownCause.QUOTA,
    CooldownCause.RATE_LIMIT,
    CooldownCause.AUTH,
    CooldownCause.BAN,
    CooldownCause.OPERATOR,
)


@pytest.mark.parametrize(
    ("until", "reset_at", "expected"),
    [
        (NOW + HOUR, NOW + TICK, NOW + TICK),
        (NOW + HOUR, NOW + HOUR, NOW + HOUR),
        (NOW + HOUR, NOW + 2 * HOUR, NOW + HOUR),
        (NOW + HOUR, NOW, NOW + HOUR),
        (NOW + HOUR, NOW - TICK, NOW + HOUR),
        (NOW + HOUR, None, NOW + HOUR),
        (None, NOW + HOUR, NOW + HOUR),
        (None, None, None),
        (NOW - HOUR, NOW + HOUR, NOW - HOUR),
    ],
)
def test_c1_a_cooldown_ends_no_later_than_a_known_reset_that_is_to_come(until, reset_at, expected):
    assert clamp(until=until, reset_at=reset_at, now=NOW) == expected


@PROPERTY
@given(until=st.none() | instants, reset_at=st.none() | instants, now=instants)
def test_c1_the_clamp_never_makes_a_cooldown_longer(until, reset_at, now):
    effective = clamp(until=until, reset_at=reset_at, now=now)
    assert until is None or (effective is not None and effective <= until)
    assert clamp(until=effective, reset_at=reset_at, now=now) == effective


@pytest.mark.parametrize("billing", list(Billing))
@pytest.mark.parametrize("cause", list(CooldownCause))
def test_c1_only_cause_quota_of_what_a_plan_includes_is_clamped(billing, cause):
    expected = cause is QUOTA and billing in (Billing.SUBSCRIPTION, Billing.KEYLESS)
    assert is_clamped(billing=billing, cause=cause) is expected


def reset(*windows, reported=None, named=None):
    return reset_that_caused(
        reported_reset_at=reported, named_window=named, windows=windows, settings=LadderSettings(), now=NOW
    )


def used(name, hours, remaining=1, **fields):
    reset_at = None if hours is None else NOW + hours * HOUR
    number = None if remaining is None else Decimal(remaining)
    return Window(name, observed_at=NOW - 999 * HOUR, remaining_percent=number, reset_at=reset_at, **fields)


def test_c1_the_reports_own_reset_comes_first_then_the_named_windows_then_the_latest_of_the_used_up():
    windows = [used("5h", 1), used("weekly", 9), used("monthly", 99, 50)]
    assert reset(*windows, reported=NOW + 3 * HOUR, named="5h") == NOW + 3 * HOUR
    assert reset(*windows, named="5h") == NOW + HOUR
    assert reset(*windows, named="monthly") == NOW + 99 * HOUR
    assert reset(*windows) == NOW + 9 * HOUR
    assert reset(*windows, named="nothing") == NOW + 9 * HOUR
    assert reset(used("5h", None), used("weekly", 9), named="5h") == NOW + 9 * HOUR
    assert reset(used("monthly", 99, 50)) is None


def test_c1_a_reset_that_is_past_counts_among_the_used_up_no_more():
    assert reset(used("5h", 0), used("weekly", -1)) is None
    assert reset(used("5h", 0), used("weekly", 2)) == NOW + 2 * HOUR


@pytest.mark.parametrize(
    ("fields", "counts"),
    [
        ({"remaining": 2}, True),
        ({"remaining": 3}, False),
        ({"remaining": 3, "exit_cutoff_percent": Decimal(20)}, True),
        ({"remaining": 1, "exit_cutoff_percent": Decimal(0)}, False),
        ({"remaining": 50, "status": ReadingStatus.EXHAUSTED}, True),
        ({"remaining": None, "status": ReadingStatus.EXHAUSTED}, True),
        ({"remaining": None}, False),
        ({"remaining": 0, "unlimited": True}, False),
    ],
)
def test_c1_a_window_is_used_up_at_its_cutoff_or_by_the_word_at_whatever_age(fields, counts):
    assert reset(used("5h", 1, **fields)) == (NOW + HOUR if counts else None)


def acting(*cooldowns, model="opus-4"):
    found = acting_cooldown(cooldowns=cooldowns, model=model, now=NOW)
    return None if found is None else (found.cause, found.until)


def test_c3_of_several_cooldowns_the_longest_acts():
    short, long = Cooldown(QUOTA, NOW + HOUR), Cooldown(RATE, NOW + 2 * HOUR)
    assert acting(short, long) == acting(long, short) == (RATE, NOW + 2 * HOUR)
    assert acting(short, Cooldown(AUTH, None), long) == (AUTH, None)


def test_c3_a_cooldown_acts_until_its_very_end_and_no_longer():
    assert acting(Cooldown(RATE, NOW + TICK)) == (RATE, NOW + TICK)
    assert acting(Cooldown(RATE, NOW)) is None
    assert acting() is None


def test_c3_a_cooldown_of_one_model_says_nothing_of_another():
    assert acting(Cooldown(RATE, NOW + HOUR, "opus-4")) == (RATE, NOW + HOUR)
    assert acting(Cooldown(RATE, NOW + HOUR, "sonnet-4")) is None
    assert acting(Cooldown(RATE, NOW + HOUR, "opus")) is None


@pytest.mark.parametrize(
    ("auth_type", "failures", "seconds"),
    [
        *[("oauth", failures, 5 * 2 ** (failures - 1)) for failures in range(1, 9)],
        ("oauth", 9, 1280),
        ("oauth", 10, 1280),
        ("oauth", 10**9, 1280),
        *[("apikey", failures, 3 * 2 ** (failures - 1)) for failures in range(1, 6)],
        ("apikey", 6, 96),
        ("apikey", 7, 96),
        ("cookie", 6, 96),
        ("none", 1, 3),
        (None, 1, 3),
        ("oauth", 0, 5),
        ("oauth", -3, 5),
    ],
)
def test_c4_the_length_doubles_with_each_failure_up_to_its_steps(auth_type, failures, seconds):
    assert backoff(auth_type=auth_type, failure_count=failures) == timedelta(seconds=seconds)
    assert backoff(auth_type=auth_type, failure_count=failures) <= timedelta(minutes=30)


def asked(cause, retry_after=None, failures=1):
    return asked_until(cause=cause, auth_type="oauth", failure_count=failures, retry_after=retry_after, occurred_at=NOW)


@pytest.mark.parametrize(
    ("retry_after", "expected"),
    [
        (timedelta(seconds=1), timedelta(seconds=1)),
        (timedelta(minutes=31), timedelta(minutes=31)),
        (timedelta(days=30), timedelta(days=30)),
        (timedelta(days=30) + TICK, timedelta(days=30)),
        (timedelta(0), timedelta(0)),
        (-HOUR, timedelta(0)),
        (timedelta.max, timedelta(days=30)),
        (None, timedelta(seconds=20)),
    ],
)
@pytest.mark.parametrize("cause", [QUOTA, RATE])
def test_c4_retry_after_is_preferred_past_the_cap_and_up_to_30_days(cause, retry_after, expected):
    assert asked(cause, retry_after, failures=3) == NOW + expected


@pytest.mark.parametrize("cause", [AUTH, BAN])
@pytest.mark.parametrize("retry_after", [None, HOUR])
def test_c4_auth_and_ban_last_until_cleared(cause, retry_after):
    assert asked(cause, retry_after) is None


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (NOW, NOW + HOUR, NOW + HOUR),
        (NOW + HOUR, NOW, NOW + HOUR),
        (NOW, None, None),
        (None, NOW, None),
        (None, None, None),
    ],
)
def test_c5_a_longer_cooldown_extends_and_a_shorter_one_does_not_shorten(first, second, expected):
    assert later(first, second) == expected


@pytest.mark.parametrize(
    ("reports", "counts"),
    [
        ([], []),
        ([(1, None)], [1]),
        ([(1, 0)], [1]),
        ([(1, None), (2, None), (3, None)], [1, 2, 3]),
        ([(1, 0), (2, 0), (4, 3), (5, 3)], [1, 2, 1, 2]),
        ([(1, None), (3, 1)], [1, 1]),
    ],
)
def test_c4_failures_in_a_row_begin_anew_after_a_success_between(reports, counts):
    found = [Report(NOW + at * HOUR, None if success is None else NOW + success * HOUR) for at, success in reports]
    assert failures_in_a_row(reports=found) == counts
