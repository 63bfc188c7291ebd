"""Q5: thinning the history changes no verdict, whatever the settings are or become."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.conf import settings as django_settings
from django.utils.module_loading import import_string
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ladder.core.values import LadderSettings
from ladder.models import QuotaReading, QuotaWindow, RefusalReport
from ladder.selectors.held import held_windows
from ladder.services.thinning import KEEP_ALL_FOR, ThinningReport, thin_readings, thin_refusals
from ladder.tasks import thin_history
from omniroute_admin.common.clock import now as clock_now
from omniroute_admin.common.selectors.revision import current_revision
from tests.factories import ConnectionFactory, QuotaReadingFactory, QuotaWindowFactory, RefusalReportFactory
from tests.factories_ladder import NOW

pytestmark = pytest.mark.django_db

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def see(window, *numbers, before=NOW - 8 * DAY, every=MINUTE):
    """Add readings, newest first, one every minute; "exhausted", "unlimited" and None are words."""
    for place, number in enumerate(numbers):
        fields = {"status": "exhausted"} if number == "exhausted" else {"unlimited": number == "unlimited"}
        remaining = None if isinstance(number, str) or number is None else Decimal(str(number))
        QuotaReadingFactory(window=window, remaining_percent=remaining, observed_at=before - place * every, **fields)


def left():
    return [
        "exhausted" if one.status == "exhausted" else "unlimited" if one.unlimited else one.remaining_percent
        for one in QuotaReading.objects.order_by("-observed_at")
    ]


@pytest.mark.parametrize(
    ("numbers", "kept"),
    [
        ([50, 50, 50], [50]),
        ([50, 40, 60, 45, 55, 30, 70], [50, 40, 60, 30, 70]),
        ([50, None, None], [50]),
        ([None, None, 50, 50], [None, 50]),
        ([50, 0, "exhausted"], [50, 0]),
        ([50, "exhausted", 0, 1], [50, "exhausted"]),
        ([50, 100, "unlimited", "unlimited", 100], [50, 100, "unlimited"]),
    ],
)
def test_what_is_lower_or_higher_than_all_newer_ones_stays_q5(numbers, kept):
    see(QuotaWindowFactory(), *numbers, before=NOW - 8 * DAY + 59 * MINUTE)
    assert thin_readings(now=NOW) == ThinningReport(windows=1, deleted=len(numbers) - len(kept))
    assert left() == kept


def test_of_older_ones_the_newest_of_every_hour_stays_and_of_younger_ones_all():
    window = QuotaWindowFactory()
    see(window, *[50] * 30, before=NOW, every=MINUTE)
    see(window, *[50] * 30, before=NOW - 8 * DAY + 59 * MINUTE, every=10 * MINUTE)
    assert thin_readings(now=NOW).deleted == 25
    assert QuotaReading.objects.filter(observed_at__gte=NOW - 7 * DAY).count() == 30
    assert {
        one.minute
        for one in QuotaReading.objects.filter(observed_at__lt=NOW - 7 * DAY).values_list("observed_at", flat=True)
    } == {59}


def test_one_exactly_as_old_as_all_are_kept_stays():
    window = QuotaWindowFactory()
    see(window, 50, 50, before=NOW - 7 * DAY, every=timedelta(microseconds=1))
    assert thin_readings(now=NOW).deleted == 0


def test_every_window_is_thinned_alone_and_in_small_steps_and_again_does_nothing():
    for _ in range(3):
        see(QuotaWindowFactory(connection=ConnectionFactory()), *[50] * 7, before=NOW - 8 * DAY + 59 * MINUTE)
    before = current_revision()
    assert thin_readings(now=NOW, batch=2) == ThinningReport(windows=3, deleted=18)
    assert thin_readings(now=NOW, batch=2) == ThinningReport(windows=3, deleted=0)
    assert current_revision() == before


def test_a_younger_reading_that_is_corrected_later_leaves_what_it_had_surpassed_q5():
    window, band = QuotaWindowFactory(), LadderSettings(Decimal(10), Decimal(50))
    see(window, 80, before=NOW)
    see(window, 20, 60, 3, before=NOW - 8 * DAY + 59 * MINUTE)
    thin_readings(now=NOW)
    QuotaReading.objects.filter(observed_at=NOW).update(remaining_percent=20)
    assert held_windows(settings=band, window_ids=None) == set()


percent = st.one_of(st.integers(0, 9).map(Decimal), st.sampled_from(["100", "99.9", "2.00000001"]).map(Decimal))
a_reading = st.tuples(
    st.integers(0, 150),
    st.one_of(st.none(), percent, percent),
    st.sampled_from(["safe", "safe", "safe", "unknown", "exhausted", "unlimited"]),
)


@given(
    readings=st.lists(a_reading, min_size=1, max_size=14, unique_by=lambda one: one[0]),
    bands=st.lists(st.tuples(percent, percent, st.none() | percent), min_size=1, max_size=8),
    keep=st.integers(0, 60),
    batch=st.integers(1, 5),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_exit_no_reentry_and_no_cutoff_of_a_window_comes_to_another_verdict_q5_q7(readings, bands, keep, batch):
    QuotaWindow.objects.all().delete()
    window = QuotaWindowFactory()
    for at, number, word in readings:
        QuotaReading.objects.create(
            window=window,
            observed_at=NOW - at * MINUTE,
            received_at=NOW,
            remaining_percent=None if word == "unlimited" else number,
            unlimited=word == "unlimited",
            status="safe" if word == "unlimited" else word,
        )

    def verdicts():
        found = []
        for exit_cutoff, reentry, own in bands:
            QuotaWindow.objects.filter(pk=window.pk).update(exit_cutoff_percent=own)
            found.append(held_windows(settings=LadderSettings(exit_cutoff, reentry), window_ids=None))
        return found

    before, young = verdicts(), QuotaReading.objects.filter(observed_at__gte=NOW - keep * MINUTE).count()
    thin_readings(now=NOW, keep_all_for=keep * MINUTE, batch=batch)
    assert verdicts() == before
    assert QuotaReading.objects.filter(observed_at__gte=NOW - keep * MINUTE).count() == young


def test_reports_that_no_cooldown_can_stand_on_go():
    RefusalReportFactory(occurred_at=NOW - 31 * DAY - MINUTE)
    RefusalReportFactory(occurred_at=NOW - 31 * DAY + MINUTE)
    assert thin_refusals(now=NOW, batch=1) == 1
    assert RefusalReport.objects.get().occurred_at == NOW - 31 * DAY + MINUTE


def test_the_task_runs_every_hour_and_can_be_repeated():
    entry = django_settings.CELERY_BEAT_SCHEDULE["thin_history"]
    assert (import_string(entry["task"]), entry["schedule"]) == (thin_history, 3600)
    see(QuotaWindowFactory(), *[50] * 3, before=clock_now().replace(minute=59) - KEEP_ALL_FOR - DAY)
    for _ in range(2):
        thin_history.delay(keep_all_for_days=7)
        assert QuotaReading.objects.count() == 1
