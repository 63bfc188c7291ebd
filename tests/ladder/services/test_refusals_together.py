"""SPEC 6: two reporters at the same time leave what one after the other would."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connections

from ladder.models import Breaker, Connection, Cooldown, RefusalReport
from ladder.services.breakers import BreakerItem, record_breakers
from ladder.services.refusal_items import RateLimitItem
from ladder.services.refusals import record_rate_limits
from tests.factories import ConnectionFactory
from tests.factories_ladder import NOW, REPORTER

pytestmark = pytest.mark.django_db(transaction=True)

NAMES = ["c1", "c2", "noauth"]
REPORTS = 6
SECOND = timedelta(seconds=1)


def refusals(reporter):
    """Send reports that all reporters send, every other reporter in reverse; return the answers."""
    names, places = (NAMES, range(REPORTS)) if reporter % 2 else (NAMES[::-1], reversed(range(REPORTS)))
    try:
        return [
            record_rate_limits(
                items=[
                    RateLimitItem(
                        connection_id=name,
                        provider="groq" if name == "noauth" else None,
                        cause="rate_limit",
                        occurred_at=NOW + place * SECOND,
                    )
                    for name in names
                ],
                actor=REPORTER,
                now=NOW + REPORTS * SECOND,
            )
            for place in places
        ]
    finally:
        connections.close_all()


def breakers(reporter):
    names = ["a", "b", "c"] if reporter % 2 else ["c", "b", "a"]
    try:
        for place in range(REPORTS):
            items = [BreakerItem(provider=name, state="open", occurred_at=NOW + place * SECOND) for name in names]
            record_breakers(items=items, actor=REPORTER, now=NOW + REPORTS * SECOND)
    finally:
        connections.close_all()


def test_every_report_counts_once_and_the_row_is_as_long_as_it_is_c3_c4():
    for name in NAMES[:2]:
        ConnectionFactory(connection_id=name)
    with ThreadPoolExecutor(4) as pool:
        answers = [answer for told in pool.map(refusals, range(4)) for answer in told]
    assert all(not answer.rejected for answer in answers)
    assert sum(answer.accepted + answer.superseded for answer in answers) == REPORTS * len(NAMES)
    assert sum(answer.duplicates for answer in answers) == 3 * REPORTS * len(NAMES)
    assert (Connection.objects.filter(connection_id="noauth").count(), Cooldown.objects.count()) == (1, 3)
    assert RefusalReport.objects.count() == REPORTS * len(NAMES)
    last = NOW + (REPORTS - 1) * SECOND
    assert dict(Cooldown.objects.values_list("connection__connection_id", "effective_until")) == {
        "c1": last + 5 * 2**5 * SECOND,
        "c2": last + 5 * 2**5 * SECOND,
        "noauth": last + 3 * 2**5 * SECOND,
    }


def test_reporters_of_the_same_breakers_neither_clash_nor_wait_in_a_circle():
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(breakers, range(4)))
    assert set(Breaker.objects.values_list("provider", "reported_at")) == {
        (name, NOW + (REPORTS - 1) * SECOND) for name in "abc"
    }
