"""Q: the verdict of one window, and of all windows of a connection together."""

from datetime import timedelta
from decimal import Decimal

import msgspec
import pytest

from ladder.core.quota import counting_windows, judge_window, judge_windows, quota_instants
from ladder.core.reasons import Code
from ladder.core.values import Combine, LadderSettings, QuotaVerdict, ReadingStatus, Window
from tests.ladder.core.asking import NOW, TICK

SETTINGS = LadderSettings()
AGE = timedelta(seconds=180)
HOUR = timedelta(hours=1)
EXHAUSTED, UNKNOWN = ReadingStatus.EXHAUSTED, ReadingStatus.UNKNOWN


def window(remaining=50, name="5h", *, age=timedelta(0), **fields):
    number = None if remaining is None else Decimal(str(remaining))
    return Window(name, observed_at=NOW - age, remaining_percent=number, **fields)


def exhausted(name, reset_at=None, **fields):
    return window(1, name, reset_at=reset_at, **fields)


def held(name, reset_at=None, **fields):
    return window(4, name, reset_at=reset_at, held=True, **fields)


def pool(made):
    return msgspec.structs.replace(made, combine=Combine.POOL)


def code(one, settings=SETTINGS, now=NOW):
    judged = judge_window(window=one, settings=settings, now=now)
    return "usable" if judged.code is None else judged.code.value


def joined(*windows, now=NOW):
    judged = judge_windows(windows=windows, settings=SETTINGS, now=now)
    return ("usable" if judged.code is None else judged.code.value), judged.window, judged.returns_at


def test_q1_a_window_without_a_reading_is_unverified():
    assert code(Window("5h")) == "quota_unverified"
    assert code(Window("5h", reset_at=NOW - HOUR)) == "quota_unverified"


@pytest.mark.parametrize(
    ("reset_at", "expected"),
    [(NOW - TICK, "reset_pending"), (NOW, "reset_pending"), (NOW + TICK, "usable"), (None, "usable")],
)
def test_q1_a_reading_ends_with_its_window_at_the_very_instant_of_the_reset(reset_at, expected):
    assert code(window(reset_at=reset_at)) == expected


@pytest.mark.parametrize(
    "fields",
    [
        {"status": EXHAUSTED},
        {"status": UNKNOWN},
        {"remaining": 0},
        {"remaining": None},
        {"age": AGE * 9},
        {"held": True},
    ],
)
def test_q1_after_the_reset_neither_age_nor_what_the_reading_said_matters(fields):
    assert code(window(**fields, reset_at=NOW)) == "reset_pending"


@pytest.mark.parametrize("fields", [{"age": AGE * 9}, {"remaining": 99}, {"remaining": None}, {"unlimited": True}])
def test_q2_the_word_exhausted_is_believed_at_any_age_and_beside_any_number(fields):
    assert code(window(**fields, status=EXHAUSTED)) == "quota_exhausted"


@pytest.mark.parametrize("fields", [{}, {"age": AGE * 9}, {"remaining": None}, {"remaining": 0}, {"unlimited": True}])
def test_q3_the_word_unknown_is_unverified(fields):
    assert code(window(**fields, status=UNKNOWN)) == "quota_unverified"


def test_q3_a_reading_without_a_number_is_unverified():
    assert code(window(None)) == "quota_unverified"


@pytest.mark.parametrize(
    ("age", "expected"),
    [(AGE, "usable"), (AGE + TICK, "quota_stale"), (AGE - TICK, "usable"), (-HOUR, "usable"), (AGE * 9, "quota_stale")],
)
@pytest.mark.parametrize("reading", [{"remaining": 50}, {"remaining": None, "unlimited": True}])
def test_q3_a_reading_just_as_old_as_allowed_is_fresh_and_so_is_one_from_the_future(age, expected, reading):
    assert code(window(**reading, age=age)) == expected


def test_q3_a_stale_reading_is_unverified_even_at_or_below_the_cutoff():
    assert code(window(0, age=AGE + TICK)) == "quota_stale"


def test_q4_unlimited_is_usable_even_where_the_connection_dropped_out():
    assert code(window(None, unlimited=True, held=True)) == "usable"


@pytest.mark.parametrize(
    ("remaining", "was_out", "expected"),
    [
        ("0", False, "quota_exhausted"),
        ("2", False, "quota_exhausted"),
        ("2.00000001", False, "usable"),
        ("2", True, "quota_exhausted"),
        ("2.00000001", True, "held_for_reentry"),
        ("5", True, "held_for_reentry"),
        ("5.00000001", True, "usable"),
        ("5", False, "usable"),
        ("100", True, "usable"),
    ],
)
def test_q4_out_at_the_cutoff_held_up_to_the_floor_in_again_above_it(remaining, was_out, expected):
    assert code(window(remaining, held=was_out)) == expected


@pytest.mark.parametrize(("remaining", "expected"), [(10, "quota_exhausted"), (8, "quota_exhausted"), (11, "usable")])
@pytest.mark.parametrize("was_out", [True, False])
def test_q4_a_reentry_floor_below_the_cutoff_counts_as_the_cutoff(remaining, expected, was_out):
    settings = LadderSettings(Decimal(10), Decimal(1))
    assert code(window(remaining, held=was_out), settings) == expected


def test_q4_percent_is_percent_and_never_a_fraction():
    assert code(window("0.9")) == "quota_exhausted"
    assert code(window("1")) == "quota_exhausted"


@pytest.mark.parametrize(
    ("remaining", "was_out", "expected"),
    [
        (20, False, "quota_exhausted"),
        ("20.1", False, "usable"),
        ("20.1", True, "usable"),
        (4, False, "quota_exhausted"),
    ],
)
def test_q7_a_windows_own_cutoff_replaces_the_exit_cutoff_and_lifts_the_floor(remaining, was_out, expected):
    assert code(window(remaining, held=was_out, exit_cutoff_percent=Decimal(20))) == expected


def test_q7_a_windows_own_cutoff_may_be_lower_and_even_0():
    own = {"exit_cutoff_percent": Decimal(0)}
    assert code(window(1, **own)) == "usable"
    assert code(window(0, **own)) == "quota_exhausted"
    assert code(window(1, held=True, **own)) == "held_for_reentry"


def test_q7_a_cutoff_of_100_leaves_nothing_but_unlimited():
    own = {"exit_cutoff_percent": Decimal(100)}
    assert code(window(100, **own)) == "quota_exhausted"
    assert code(window(None, unlimited=True, **own)) == "usable"


@pytest.mark.parametrize(
    ("fields", "counts"),
    [
        ({}, True),
        ({"model": "opus-*"}, True),
        ({"model": "OPUS-4"}, True),
        ({"model": "*"}, True),
        ({"model": "sonnet-*"}, False),
        ({"model": "opus"}, False),
        ({"is_muted": True}, False),
        ({"is_reported": False}, False),
        ({"model": "opus-*", "is_muted": True}, False),
    ],
)
def test_q6_only_a_window_in_scope_not_muted_and_still_reported_counts(fields, counts):
    one = window(**fields)
    assert counting_windows(windows=[one], model="opus-4") == ((one,) if counts else ())


def test_q8_without_a_counting_window_a_connection_is_unverified():
    judged = judge_windows(windows=[], settings=SETTINGS, now=NOW)
    assert (judged.verdict, judged.code, judged.returns_at) == (
        QuotaVerdict.UNVERIFIED,
        Code.QUOTA_UNVERIFIED,
        None,
    )


@pytest.mark.parametrize(
    ("windows", "expected"),
    [
        ([window(), window(name="weekly")], "usable"),
        ([window(), exhausted("weekly")], "quota_exhausted"),
        ([window(), held("weekly")], "held_for_reentry"),
        ([held("5h"), exhausted("weekly")], "quota_exhausted"),
        ([exhausted("5h"), Window("weekly")], "quota_exhausted"),
        ([held("5h"), Window("weekly")], "held_for_reentry"),
        ([window(), Window("weekly")], "quota_unverified"),
        ([window(age=HOUR), Window("weekly")], "quota_stale"),
        ([window(age=HOUR), window(name="weekly", reset_at=NOW)], "reset_pending"),
        ([Window("5h"), window(name="weekly", reset_at=NOW)], "reset_pending"),
    ],
)
def test_q6_and_q8_limit_windows_must_all_be_usable_and_the_worst_speaks(windows, expected):
    assert joined(*windows)[0] == expected
    assert joined(*reversed(windows))[0] == expected


@pytest.mark.parametrize(
    ("windows", "expected"),
    [
        ([window(), exhausted("bonus")], "usable"),
        ([exhausted("5h"), exhausted("bonus")], "quota_exhausted"),
        ([held("5h"), held("bonus")], "quota_exhausted"),
        ([held("5h"), exhausted("bonus")], "quota_exhausted"),
        ([exhausted("5h"), Window("bonus")], "quota_unverified"),
        ([exhausted("5h"), window(name="bonus", age=HOUR)], "quota_stale"),
        ([held("5h"), window(name="bonus", reset_at=NOW)], "reset_pending"),
        ([window(name="5h", age=HOUR), window(name="bonus")], "usable"),
    ],
)
def test_q6_of_pool_windows_one_usable_is_enough_else_unverified_if_any_is_else_exhausted(windows, expected):
    made = [pool(one) for one in windows]
    assert joined(*made)[0] == expected
    assert joined(*reversed(made))[0] == expected


def test_q8_the_pool_windows_together_count_as_one_limit():
    assert joined(window(name="weekly"), pool(exhausted("a")), pool(window(name="b")))[0] == "usable"
    assert joined(exhausted("weekly"), pool(window(name="b")))[0] == "quota_exhausted"
    assert joined(window(name="weekly"), pool(held("a")))[0] == "quota_exhausted"
    assert joined(held("weekly"), pool(held("a")))[0] == "quota_exhausted"
    assert joined(held("weekly"), pool(Window("a")))[0] == "held_for_reentry"


def test_q9_a_connection_returns_with_the_latest_reset_of_its_barred_limits():
    soon, late = NOW + HOUR, NOW + 9 * HOUR
    usable = window(name="monthly", reset_at=NOW + 99 * HOUR)
    assert joined(exhausted("5h", soon), held("weekly", late), usable) == ("quota_exhausted", "weekly", late)
    assert joined(exhausted("5h", late), held("weekly", soon), usable) == ("quota_exhausted", "5h", late)


def test_q9_the_return_is_unknown_where_one_barred_reset_is():
    assert joined(exhausted("5h", NOW + HOUR), held("weekly")) == ("quota_exhausted", "weekly", None)
    assert joined(exhausted("5h", NOW + HOUR), window(name="weekly"))[2] == NOW + HOUR


def test_q9_a_pool_returns_with_the_earliest_of_its_resets():
    soon, late = NOW + HOUR, NOW + 9 * HOUR
    assert joined(pool(exhausted("a", late)), pool(held("b", soon)))[1:] == ("b", soon)
    assert joined(pool(exhausted("a", late)), pool(held("b")))[1:] == ("b", None)
    assert joined(exhausted("weekly", late), pool(exhausted("a", soon)))[1:] == ("weekly", late)
    assert joined(exhausted("weekly", soon), pool(exhausted("a", late)))[1:] == ("a", late)


def test_q9_an_unverified_connection_has_no_known_return():
    assert joined(window(reset_at=NOW + HOUR, age=HOUR))[2] is None


def test_p9_a_verdict_can_change_at_a_reset_and_one_tick_after_the_age():
    one = window(reset_at=NOW + HOUR, age=timedelta(seconds=5))
    assert set(quota_instants(windows=[one], settings=SETTINGS)) == {
        NOW + HOUR,
        NOW + timedelta(seconds=175) + TICK,
    }
