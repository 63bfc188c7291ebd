"""SPEC 3 and 6: a flip is written once, however many processes look at once."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal
from threading import Barrier, Event

import pytest
from django.db import connections

from ladder.models import Connection, RungFlip, RungSample, TimelineCursor, TimelineTrace
from ladder.services.reading_items import reading_item
from ladder.services.readings import record_readings
from ladder.services.timeline import note_flips, sample_occupancy
from omniroute_admin.common.services.revision import deciding_write
from tests.factories import BillingEntryFactory, ConnectionFactory, ModelPriceFactory, QuotaWindowFactory
from tests.factories_ladder import NOW, REPORTER
from tests.ladder.services.looking import change_settings

pytestmark = pytest.mark.django_db(transaction=True)

LOOKERS, ROUNDS, CONNECTIONS = 4, 6, 8
WRITERS, TURNS = 3, 12
MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)


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


def read(row, percent, at):
    item = reading_item(
        connection_id=row.connection_id, window="5h", observed_at=at, remaining_percent=Decimal(percent)
    )
    record_readings(items=[item], complete_for=[], actor=REPORTER, now=at)


def acts_of(number):
    """Return the instants of a writer's acts, no other's, and what it reads at each."""
    return [(NOW + (turn + number / 100) * SECOND, 1 if turn % 2 else 50) for turn in range(1, TURNS + 1)]


def write(row, number):
    """Read a connection up and down; the first writer tunes the settings between, which speak of all."""
    try:
        for turn, (at, percent) in enumerate(acts_of(number)):
            read(row, percent, at)
            if number == 0:
                change_settings(at + SECOND / 1000, exit_cutoff_percent=Decimal(3 + turn))
    finally:
        connections.close_all()


def look_until(are_done):
    try:
        while not are_done.is_set():
            note_flips(now=NOW + MINUTE)
    finally:
        connections.close_all()


def test_no_change_of_writers_at_work_is_lost_or_moved_however_looks_fall_between():
    BillingEntryFactory(provider="claude", auth_type=None, billing="subscription", overage="hard-stop")
    ModelPriceFactory(provider="claude", model="opus")
    rows = [ConnectionFactory(connection_id=f"c{number}", provider="claude") for number in range(WRITERS)]
    for row in rows:
        read(row, 50, NOW)
    note_flips(now=NOW)
    are_done = Event()
    with ThreadPoolExecutor(2) as lookers, ThreadPoolExecutor(WRITERS) as writers:
        looking = [lookers.submit(look_until, are_done) for _ in range(2)]
        try:
            list(writers.map(write, rows, range(WRITERS)))
        finally:
            are_done.set()
        for one in looking:
            one.result()
    note_flips(now=NOW + 2 * MINUTE)
    assert TimelineTrace.objects.count() == 0
    for number, row in enumerate(rows):
        flips = list(row.flips.order_by("at").values_list("at", "to_state", "cause"))
        states = {1: "exhausted", 50: "usable"}
        assert flips == [(at, states[percent], "reading") for at, percent in acts_of(number)]


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
