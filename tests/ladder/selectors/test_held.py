from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection as database
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ladder.core.values import LadderSettings
from ladder.models import QuotaReading, QuotaWindow
from ladder.selectors.held import held_windows
from tests.factories import ConnectionFactory, QuotaReadingFactory, QuotaWindowFactory
from tests.factories_ladder import NOW

pytestmark = pytest.mark.django_db

SETTINGS = LadderSettings()


def is_held(window, acting=SETTINGS):
    return window.pk in held_windows(settings=acting, window_ids=None)


def see(window, *numbers):
    """Add readings, oldest first; "exhausted" and "unlimited" are words."""
    for place, number in enumerate(numbers):
        fields = {"status": "exhausted"} if number == "exhausted" else {"unlimited": number == "unlimited"}
        remaining = None if isinstance(number, str) or number is None else Decimal(str(number))
        QuotaReadingFactory(
            window=window,
            remaining_percent=remaining,
            observed_at=NOW + timedelta(seconds=place),
            **fields,
        )


@pytest.mark.parametrize(
    ("numbers", "held"),
    [
        ([], False),
        ([3], False),
        ([6, 3], False),
        ([6, 3, 2], True),
        ([6, 3, 2, 4], True),
        ([6, 3, 2, 4, 5], True),
        ([6, 3, 2, 4, 5, 5.1], False),
        ([6, 2, 5.00000001], False),
        ([6, 2.00000001], False),
        ([2, "unlimited"], False),
        ([2, "unlimited", 4], False),
        (["exhausted", 4], True),
        ([90, "exhausted"], True),
        ([2, None, 4], True),
        ([None], False),
    ],
)
def test_the_band_holds_what_dropped_out_until_it_is_seen_above_the_floor_q4_q5(numbers, held):
    window = QuotaWindowFactory()
    see(window, *numbers)
    assert is_held(window) is held


def test_a_late_reading_is_taken_into_account_by_its_instant_q5():
    window = QuotaWindowFactory()
    QuotaReadingFactory(window=window, remaining_percent=4, observed_at=NOW)
    assert not is_held(window)
    QuotaReadingFactory(window=window, remaining_percent=1, observed_at=NOW - timedelta(hours=1))
    assert is_held(window)
    QuotaReadingFactory(window=window, remaining_percent=90, observed_at=NOW - timedelta(minutes=1))
    assert not is_held(window)


def test_a_changed_setting_derives_it_again_q5():
    window = QuotaWindowFactory()
    see(window, 30, 8, 12)
    assert not is_held(window)
    assert is_held(window, LadderSettings(Decimal(10), Decimal(20), 180))
    assert not is_held(window, LadderSettings(Decimal(10), Decimal(11), 180))


def test_a_reentry_below_exit_is_taken_as_exit_q4():
    window = QuotaWindowFactory()
    see(window, 10, 10.1)
    assert not is_held(window, LadderSettings(Decimal(10), Decimal(0), 180))


def test_a_window_of_its_own_cutoff_has_its_own_band_q7():
    own, common = QuotaWindowFactory(exit_cutoff_percent=Decimal(20)), QuotaWindowFactory()
    see(own, 30, 20, 20)
    see(common, 30, 20, 20)
    assert held_windows(settings=SETTINGS, window_ids=None) == {own.pk}


def test_a_setting_finer_than_a_reading_can_be_still_cuts_exactly():
    window = QuotaWindowFactory()
    see(window, 90, Decimal("2.00000001"), 3)
    assert is_held(window, LadderSettings(Decimal("2.0000000100001"), Decimal(5), 180))
    assert not is_held(window, LadderSettings(Decimal("2.0000000099999"), Decimal(5), 180))


def test_only_the_windows_asked_for_and_of_live_connections_are_told():
    first, second = QuotaWindowFactory(), QuotaWindowFactory()
    deleted = QuotaWindowFactory(connection=ConnectionFactory(deleted_at=NOW))
    for window in (first, second, deleted):
        see(window, 1)
    assert held_windows(settings=SETTINGS, window_ids=None) == {first.pk, second.pk}
    assert held_windows(settings=SETTINGS, window_ids=[second.pk]) == {second.pk}
    assert held_windows(settings=SETTINGS, window_ids=[]) == set()


def test_one_query_tells_all_windows():
    for _ in range(5):
        see(QuotaWindowFactory(), 6, 2, 4)
    with CaptureQueriesContext(database) as queries:
        assert len(held_windows(settings=SETTINGS, window_ids=None)) == 5
    assert len(queries) == 1


def held_by_walking(readings, exit_cutoff, reentry):
    """Walk through the history as it happened, remembering whether the connection is out."""
    is_out = False
    for _, number, word in sorted(readings):
        if word == "exhausted" or (number is not None and number <= exit_cutoff):
            is_out = True
        elif word == "unlimited" or (number is not None and number > max(exit_cutoff, reentry)):
            is_out = False
    return is_out


percent = st.one_of(
    st.integers(0, 12).map(Decimal), st.decimals(0, 100, places=8), st.sampled_from(["2.00000001", "4.99999999"])
).map(Decimal)
a_reading = st.tuples(
    st.integers(0, 40),
    st.one_of(st.none(), percent),
    st.sampled_from(["safe", "safe", "unknown", "exhausted", "unlimited"]),
).map(lambda one: (one[0], None if one[2] == "unlimited" else one[1], one[2]))


@given(
    readings=st.lists(a_reading, max_size=8, unique_by=lambda one: one[0]),
    exit_cutoff=percent,
    reentry=percent,
    own=st.one_of(st.none(), percent),
    data=st.data(),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_it_is_what_walking_through_the_history_gives_in_whatever_order_it_arrived_q5(
    readings, exit_cutoff, reentry, own, data
):
    QuotaWindow.objects.all().delete()
    window = QuotaWindowFactory(exit_cutoff_percent=own)
    for at, number, word in data.draw(st.permutations(readings)):
        QuotaReading.objects.create(
            window=window,
            observed_at=NOW + timedelta(seconds=at),
            received_at=NOW,
            remaining_percent=number,
            unlimited=word == "unlimited",
            status="safe" if word == "unlimited" else word,
        )
    expected = held_by_walking(readings, exit_cutoff if own is None else own, reentry)
    assert is_held(window, LadderSettings(exit_cutoff, reentry, 180)) is expected
