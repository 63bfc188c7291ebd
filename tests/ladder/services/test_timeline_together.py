"""SPEC 3 and 6: a flip is written once, however many processes look at once."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest
from django.db import connections

from ladder.models import Connection, RungFlip, RungSample, TimelineCursor
from ladder.services.timeline import note_flips, sample_occupancy
from omniroute_admin.common.services.revision import deciding_write
from tests.factories import BillingEntryFactory, ModelPriceFactory, QuotaWindowFactory
from tests.factories_ladder import NOW

pytestmark = pytest.mark.django_db(transaction=True)

LOOKERS, ROUNDS, CONNECTIONS = 4, 6, 8
MINUTE = timedelta(minutes=1)


def pause(is_enabled):
    with deciding_write():
        Connection.objects.update(is_enabled=is_enabled)


def test_lookers_at_the_same_time_write_each_flip_once_and_lose_none():
    BillingEntryFactory(provider="claude", auth_type=None)
    ModelPriceFactory(provider="claude", model="opus")
    for _ in range(CONNECTIONS):
        QuotaWindowFactory(window="5h")
    together = Barrier(LOOKERS, timeout=60)

    def look_on(looker):
        counts = []
        try:
            for turn in range(ROUNDS):
                together.wait()
                if looker == 0 and turn:
                    pause(is_enabled=turn % 2 == 0)
                together.wait()
                counts.append(note_flips(now=NOW + turn * timedelta(seconds=1)))
        finally:
            connections.close_all()
        return counts

    with ThreadPoolExecutor(LOOKERS) as pool:
        counts = [count for counts in pool.map(look_on, range(LOOKERS)) for count in counts]
    # Whoever lost the last race left it to the next look.
    counts.append(note_flips(now=NOW + ROUNDS * timedelta(seconds=1)))
    flips = (ROUNDS - 1) * (CONNECTIONS + 1)
    assert RungFlip.objects.count() == flips
    assert sum(counts) == flips
    for row in Connection.objects.all():
        states = list(row.flips.order_by("at").values_list("from_state", "to_state"))
        assert states == [("usable", "off"), ("off", "usable")] * 2 + [("usable", "off")]
    assert TimelineCursor.objects.get().version > 1


def test_samplers_at_the_same_time_keep_one_row_a_rung():
    together = Barrier(LOOKERS, timeout=60)

    def sample(_):
        together.wait()
        try:
            return sample_occupancy(now=NOW)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(LOOKERS) as pool:
        list(pool.map(sample, range(LOOKERS)))
    assert RungSample.objects.count() == 5
