"""SPEC 6: two processes never disagree after a commit, and never wait for each other in a circle."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connections

from ladder.models import Connection, QuotaReading, QuotaWindow
from ladder.services.reading_items import reading_item
from ladder.services.readings import record_readings
from tests.factories import ConnectionFactory
from tests.factories_ladder import NOW, REPORTER

pytestmark = pytest.mark.django_db(transaction=True)

NAMES = ["c1", "c2", "c3", "noauth"]
BODIES = 6


def report(reporter):
    """Send bodies that name the same windows, every other reporter in the reverse order; return the answers."""
    names = NAMES if reporter % 2 else NAMES[::-1]
    try:
        return [
            record_readings(
                items=[
                    reading_item(
                        connection_id=name,
                        provider="groq" if name == "noauth" else None,
                        window="5h",
                        observed_at=NOW + timedelta(seconds=body),
                        remaining_percent=Decimal(10 + reporter),
                    )
                    for name in names
                ],
                complete_for=["c1", "c3"],
                actor=REPORTER,
                now=NOW + timedelta(seconds=BODIES),
            )
            for body in range(BODIES)
        ]
    finally:
        connections.close_all()


def test_reporters_at_the_same_time_leave_one_reading_an_instant_the_lowest_and_none_is_lost():
    for name in NAMES[:3]:
        ConnectionFactory(connection_id=name)
    with ThreadPoolExecutor(4) as pool:
        answers = [answer for told in pool.map(report, range(4)) for answer in told]
    assert all(not answer.rejected for answer in answers)
    assert sum(answer.accepted + answer.superseded for answer in answers) == 4 * BODIES * len(NAMES)
    assert Connection.objects.filter(connection_id="noauth").count() == 1
    assert QuotaReading.objects.count() == BODIES * len(NAMES)
    assert set(QuotaReading.objects.values_list("remaining_percent", flat=True)) == {10}
    assert set(QuotaWindow.objects.values_list("remaining_percent", "observed_at", "is_reported")) == {
        (10, NOW + timedelta(seconds=BODIES - 1), True)
    }
