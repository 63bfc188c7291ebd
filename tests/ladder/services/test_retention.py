"""Retention: age is counted by what routers told as well as by the clock, and each part has a period of its own."""

from datetime import timedelta

import pytest
import time_machine
from django.conf import settings as django_settings

from ladder.models import LedgerSum, QuotaReading, RungFlip, RungSample, UsageEvent
from ladder.services.pruning import Run
from ladder.services.retention import Age, cutoffs_of, prune, read_age
from ladder.tasks import prune_kept
from omniroute_admin.common.core.periods import LEAST_DAYS, Part, Periods
from omniroute_admin.common.selectors.horizons import horizon_of
from tests.factories import QuotaReadingFactory, QuotaWindowFactory, RungFlipFactory, RungSampleFactory
from tests.factories_ladder import NOW
from tests.ladder.services.booking import codes, event, make_ladder, record

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)
ALL = Periods(readings=90, history=400, ledger=800, audit=800)


@pytest.fixture(autouse=True)
def ladder(db):
    make_ladder()


def lived(until=NOW, days=70):
    """Report one event a day, as an installation in use does."""
    record(*(event(f"day-{n}", "0.01", at=until - n * DAY) for n in range(days)), now=until)


def test_without_any_report_nothing_can_be_told_to_be_old():
    assert read_age(now=NOW).at is None


def test_age_counts_from_the_newest_report_and_never_from_later_than_the_clock():
    lived()
    assert read_age(now=NOW) == Age(NOW)
    assert read_age(now=NOW + 3000 * DAY) == Age(NOW)
    assert read_age(now=NOW - 2 * DAY) == Age(NOW - 2 * DAY)


def test_a_clock_that_is_set_years_ahead_prunes_nothing_for_a_month():
    lived()
    ahead = NOW + 3 * 365 * DAY
    for days in range(31):
        record(event(f"ahead-{days}", "0.01", at=ahead + days * DAY), now=ahead + days * DAY)
        age = read_age(now=ahead + days * DAY)
        assert age.at is None
    assert "Nothing was reported in the month" in age.refusal
    record(event("ahead-32", "0.01", at=ahead + 32 * DAY), now=ahead + 32 * DAY)
    assert read_age(now=ahead + 32 * DAY) == Age(ahead + 32 * DAY)


@pytest.mark.parametrize("witness", ["reading", "sample"])
def test_readings_and_samples_are_witnesses_too(witness):
    window = QuotaWindowFactory(observed_at=NOW, received_at=NOW)
    assert read_age(now=NOW).at is None
    if witness == "reading":
        QuotaReadingFactory(window=window, observed_at=NOW - 40 * DAY)
    else:
        RungSampleFactory(at=NOW - 40 * DAY)
    assert read_age(now=NOW) == Age(NOW)


def test_a_period_of_zero_keeps_for_ever_and_a_day_never_reaches_into_the_shortest_period():
    some = Periods(readings=90, ledger=800)
    assert cutoffs_of(age=NOW, periods=some) == {Part.READINGS: NOW - 90 * DAY, Part.LEDGER: NOW - 800 * DAY}
    assert cutoffs_of(age=NOW, periods=some, parts=[Part.AUDIT]) == {}
    latest = {part: NOW - LEAST_DAYS[part] * DAY for part in Part}
    assert cutoffs_of(age=NOW, periods=Periods(), before=NOW) == latest
    older = NOW - 500 * DAY
    assert cutoffs_of(age=NOW, periods=ALL, parts=[Part.LEDGER], before=older) == {Part.LEDGER: older}


def test_each_part_goes_by_its_own_period():
    lived()
    window = QuotaWindowFactory(reset_at=None)
    for hours in range(20):
        QuotaReadingFactory(window=window, observed_at=NOW - 100 * DAY - hours * DAY / 24, remaining_percent=50)
    for days in (399, 401):
        RungSampleFactory(at=NOW - days * DAY)
        RungFlipFactory(at=NOW - days * DAY)
    record(event("young", "1", at=NOW - 799 * DAY), event("old", "1", at=NOW - 801 * DAY))
    cutoffs = cutoffs_of(age=NOW, periods=ALL)
    would = prune(cutoffs=cutoffs, run=Run(now=NOW, dry_run=True))
    assert (QuotaReading.objects.count(), RungSample.objects.count(), LedgerSum.objects.count()) == (20, 2, 0)
    pruned = prune(cutoffs=cutoffs, run=Run(now=NOW))
    assert pruned.removed == would.removed
    assert {one.table: one.rows for one in pruned.removed if one.rows} == {
        "ladder_quotareading": 14,
        "ladder_rungsample": 1,
        "ladder_rungflip": 1,
        "ladder_usageevent": 1,
    }
    assert (RungSample.objects.get().at, RungFlip.objects.filter(at__lt=NOW - 398 * DAY).count()) == (
        NOW - 399 * DAY,
        1,
    )
    assert not UsageEvent.objects.filter(event_id="old").exists()
    assert not any(one.rows for one in prune(cutoffs=cutoffs, run=Run(now=NOW)).removed)


def test_history_that_is_imported_on_day_one_is_booked_until_something_older_was_folded_m6():
    lived(days=40)
    prune(cutoffs=cutoffs_of(age=NOW, periods=ALL), run=Run(now=NOW))
    assert horizon_of(Part.LEDGER) is None
    assert codes(record(event("long ago", "1", at=NOW - 2000 * DAY))) == []
    prune(cutoffs=cutoffs_of(age=NOW, periods=ALL), run=Run(now=NOW))
    assert horizon_of(Part.LEDGER) == NOW - 800 * DAY
    assert codes(record(event("too late", "1", at=NOW - 2000 * DAY))) == [(0, "too_old")]


def test_a_killed_run_is_ended_by_the_next():
    lived()
    record(*(event(f"old-{n}", "0.01", at=NOW - (900 + n) * DAY) for n in range(6)))

    class Killed(BaseException):
        pass

    def die(count):
        if count:
            raise Killed

    cutoffs = cutoffs_of(age=NOW, periods=ALL, parts=[Part.LEDGER])
    with pytest.raises(Killed):
        prune(cutoffs=cutoffs, run=Run(now=NOW, batch=2, progress=die))
    assert (LedgerSum.objects.count(), UsageEvent.objects.filter(event_id__startswith="old").count()) == (2, 4)
    prune(cutoffs=cutoffs, run=Run(now=NOW, batch=2))
    assert (LedgerSum.objects.count(), UsageEvent.objects.filter(event_id__startswith="old").count()) == (6, 0)


def test_the_worker_prunes_every_night_by_the_periods_of_the_settings(settings):
    entry = django_settings.CELERY_BEAT_SCHEDULE["pruning"]
    assert (entry["task"], str(entry["schedule"])) == (prune_kept.name, "<crontab: 23 2 * * * (m/h/dM/MY/d)>")
    lived()
    record(event("old", "1", at=NOW - 100 * DAY))
    with time_machine.travel(NOW, tick=False):
        prune_kept.delay()
        assert LedgerSum.objects.count() == 0
        settings.KEEP = Periods(ledger=62)
        for _ in range(2):
            prune_kept.delay()
    assert LedgerSum.objects.count() == 8
