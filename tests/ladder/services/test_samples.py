"""SPEC 3: samples of the rungs minute by minute, and what age takes of the timeline."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from ladder.models import RungBudget, RungSample
from ladder.selectors.timeline import samples_between
from ladder.services.timeline import sample_occupancy, thin_timeline
from omniroute_admin.common.selectors.revision import current_revision
from tests.factories import (
    BillingEntryFactory,
    ModelPriceFactory,
    QuotaWindowFactory,
    RungSampleFactory,
)
from tests.factories_ladder import NOW

pytestmark = pytest.mark.django_db

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def test_a_sample_is_one_row_a_rung_and_minute_whoever_takes_it_again():
    BillingEntryFactory(provider="claude", auth_type=None)
    ModelPriceFactory(provider="claude", model="opus")
    QuotaWindowFactory(connection__connection_id="good")
    QuotaWindowFactory(connection__connection_id="used", remaining_percent=Decimal(1))
    RungBudget.objects.filter(rung="cheap").update(amount_usd=Decimal("5.5"))
    before = current_revision()
    assert sample_occupancy(now=NOW + 3 * SECOND) == 5
    assert sample_occupancy(now=NOW + 59 * SECOND) == 0
    assert sample_occupancy(now=NOW + MINUTE) == 5
    assert current_revision() == before
    rows = samples_between(start=NOW, end=NOW + MINUTE)
    told = {row.rung: (row.at, row.usable, row.total, row.is_serving, row.left_usd) for row in rows}
    assert told == {
        "subscription": (NOW, 1, 2, True, None),
        "keyless": (NOW, 0, 0, False, None),
        "free": (NOW, 0, 0, False, None),
        "cheap": (NOW, 0, 0, False, Decimal("5.5")),
        "premium": (NOW, 0, 0, False, None),
    }
    assert samples_between(start=NOW, end=NOW + HOUR, rung="cheap").count() == 2


def test_age_leaves_the_first_sample_of_an_hour():
    def sample(before, rung="cheap"):
        return RungSampleFactory(at=NOW - before, rung=rung).pk

    kept = {sample(29 * DAY + 2 * MINUTE), sample(29 * DAY + MINUTE), sample(30 * DAY)}
    kept |= {sample(31 * DAY - 7 * MINUTE), sample(31 * DAY - 7 * MINUTE, "premium")}
    for minute in (8, 9, 59):
        sample(31 * DAY - minute * MINUTE)
    kept.add(min(RungSample.objects.filter(at=NOW - 31 * DAY + 7 * MINUTE, rung="cheap").values_list("pk", flat=True)))
    kept.add(sample(32 * DAY))
    kept.add(sample(900 * DAY))
    before = current_revision()
    assert thin_timeline(now=NOW) == 3
    assert set(RungSample.objects.values_list("pk", flat=True)) == kept
    assert thin_timeline(now=NOW) == 0
    assert current_revision() == before


@pytest.mark.parametrize("hour", [0, 23])
def test_an_hour_of_utc_is_thinned_whole(hour):
    start = datetime(2026, 1, 1, hour, tzinfo=UTC)
    for minute in range(0, 60, 10):
        RungSampleFactory(at=start + minute * MINUTE)
    assert thin_timeline(now=start + 40 * DAY) == 5
    assert RungSample.objects.get().at == start
