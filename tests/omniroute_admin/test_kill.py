"""SPEC 6: a process killed without warning loses nothing it acknowledged, and nothing is double."""

import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import Count, Max, Sum

from ladder.core.readings.thinning import PastReading, superfluous_readings
from ladder.core.values import ReadingStatus
from ladder.models import Connection, QuotaReading, QuotaWindow, RungFlip, RungSample, UsageEvent
from ladder.services.connections import update_connection
from ladder.services.demo import start_demo
from ladder.services.timeline import note_flips
from omniroute_admin.common.clock import now
from tests.factories import BillingEntryFactory, ConnectionFactory, ModelPriceFactory, QuotaWindowFactory
from tests.factories_ladder import OPERATOR
from tests.omniroute_admin.killing import Killable, Messages, PatientRouter, waits_for_a_lock
from tests.processes import free_port, until
from tests.router import make_router

KILLS = 4
BODIES, EVENTS = 32, 25
SECOND = timedelta(seconds=1)


@pytest.fixture
def chance() -> random.Random:
    return random.Random(20261025)


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def server(tmp_path: Path, database_url: str, port: int) -> Iterator[Killable]:
    server = Killable("web", tmp_path, port=port, VAR_DIR=str(tmp_path), DATABASE_URL=database_url)
    server.start()
    yield server
    server.kill()


@pytest.fixture
def router(database_url: str, port: int) -> PatientRouter:
    BillingEntryFactory(provider="openrouter", auth_type=None, billing="metered", overage="meters-to-paid")
    ModelPriceFactory(provider="openrouter", model="deepseek", input_usd_per_million=Decimal("0.5"))
    ConnectionFactory(connection_id="key", provider="openrouter", auth_type="apikey")
    return PatientRouter(port, make_router("telemetry:write").headers["Authorization"].removeprefix("Bearer "))


def usage(*events: tuple[str, str]) -> dict[str, Any]:
    at = (now() - SECOND).isoformat()
    common = {"connection_id": "key", "model": "deepseek", "occurred_at": at}
    return {"events": [{**common, "event_id": name, "cost_usd": cost} for name, cost in events]}


def test_a_killed_server_loses_nothing_it_acknowledged_and_doubles_nothing(
    server: Killable, router: PatientRouter, chance: random.Random
) -> None:
    start = now()
    costs = {f"e{number}": f"0.{chance.randint(1, 999999):06}" for number in range(BODIES * EVENTS)}
    names = list(costs)
    acknowledged: list[int] = []

    def report(number: int) -> None:
        events = names[number * EVENTS : (number + 1) * EVENTS]
        booked = router.send("usage", usage_of[number])
        assert (booked["accepted"] + booked["duplicates"], booked["rejected"]) == (len(events), [])
        at = (start - (BODIES - number) * SECOND).isoformat()
        reading = {"connection_id": "key", "window": "5h", "remaining_percent": number, "observed_at": at}
        read = router.send("readings", {"readings": [reading]})
        assert read["accepted"] + read["duplicates"] == 1
        acknowledged.append(number)

    usage_of = [usage(*((name, costs[name]) for name in names[one * EVENTS :][:EVENTS])) for one in range(BODIES)]
    with ThreadPoolExecutor(1) as pool:
        reports = pool.submit(lambda: [report(number) for number in range(BODIES)])
        for kill in range(KILLS):
            until(lambda mark=1 + kill * BODIES // KILLS: len(acknowledged) >= mark or reports.done(), "answers")
            time.sleep(chance.uniform(0, 0.05))
            server.kill()
            server.start()
        reports.result()

    rows = UsageEvent.objects.order_by()
    assert sorted(rows.values_list("event_id", flat=True)) == sorted(names)
    assert rows.aggregate(usd=Sum("booked_usd"))["usd"] == sum(map(Decimal, costs.values()))
    assert router.cut > 0
    readings = QuotaReading.objects.values_list("observed_at", "remaining_percent").order_by("observed_at")
    assert list(readings) == [(start - (BODIES - number) * SECOND, number) for number in range(BODIES)]
    window = QuotaWindow.objects.get()
    assert (window.observed_at, window.remaining_percent) == (start - SECOND, BODIES - 1)


def test_a_server_killed_before_it_commits_has_kept_nothing_and_one_killed_before_it_answers_all(
    server: Killable, router: PatientRouter, database: str
) -> None:
    router.send("usage", {"events": []})
    first, second = usage(("first", "0.10")), usage(("second", "0.20"))
    with transaction.atomic():
        lock("common_revision SET value = value")
        with closing(router.send_only("usage", first)):
            if database == "postgres":
                until(waits_for_a_lock, "a request in the middle of its transaction")
            server.kill()
    assert not UsageEvent.objects.exists()
    server.start()
    assert router.send("usage", first)["accepted"] == 1

    with closing(router.send_only("usage", second)):
        until(UsageEvent.objects.filter(event_id="second").exists, "an event that is booked")
        server.kill()
    server.start()
    assert router.send("usage", second)["duplicates"] == 1
    assert sorted(UsageEvent.objects.values_list("event_id", "booked_usd")) == [
        ("first", Decimal("0.10")),
        ("second", Decimal("0.20")),
    ]


def lock(row: str) -> None:
    """Keep other processes from writing a row (on SQLite: anything) until the transaction of the test ends."""
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {row} WHERE id = 1")


TASKS = [
    f"ladder.tasks.{name}"
    for name in (
        "note_flips",
        "thin_history",
        "move_demo_fleet",
        "sample_occupancy",
        "expire_holds",
        "close_budget_windows",
    )
]


def old_readings(chance: random.Random) -> set[int]:
    """Make readings that are older than all are kept for, and return those that thinning keeps (Q5)."""
    kept: set[int] = set()
    begin = now().replace(minute=0, second=0, microsecond=0) - timedelta(days=12)
    for window in QuotaWindowFactory.create_batch(20, connection=ConnectionFactory(connection_id="old")):
        rows = QuotaReading.objects.bulk_create(
            QuotaReading(
                window=window,
                observed_at=begin + minute * timedelta(minutes=1),
                received_at=begin,
                remaining_percent=chance.randint(0, 100),
            )
            for minute in range(240)
        )
        newest_first = [
            PastReading(row.pk, row.observed_at, Decimal(row.remaining_percent), False, ReadingStatus.SAFE)
            for row in reversed(rows)
        ]
        kept |= {row.pk for row in rows} - set(superfluous_readings(newest_first=newest_first))
    return kept


def turn(row: Connection) -> None:
    """Change the ladder, so that the next look has something to note."""
    row.refresh_from_db()
    update_connection(
        connection=row, changes={"is_enabled": not row.is_enabled}, actor=OPERATOR, reason="a test", now=now()
    )


def test_a_worker_killed_in_the_middle_of_its_tasks_loses_nothing_and_doubles_nothing(
    tmp_path: Path, database_url: str, database: str, chance: random.Random
) -> None:
    BillingEntryFactory(provider="claude", auth_type=None, billing="subscription", overage="hard-stop")
    ModelPriceFactory(provider="claude", model="opus")
    turning = ConnectionFactory(connection_id="turning")
    kept = old_readings(chance)
    start_demo(now=now())
    note_flips(now=now())
    messages = Messages(tmp_path)
    worker = Killable("worker", tmp_path, VAR_DIR=str(tmp_path), DATABASE_URL=database_url)
    try:
        turn(turning)
        messages.send(*TASKS)
        with transaction.atomic():
            lock("ladder_timelinecursor SET version = version")
            worker.start()
            until(lambda: messages.waiting() < len(TASKS), "a look that is taken")
            if database == "postgres":
                until(waits_for_a_lock, "a look in the middle of its transaction")
            worker.kill()
        assert not RungFlip.objects.filter(connection=turning).exists()
        for _ in range(KILLS):
            turn(turning)
            messages.send(*TASKS)
            worker.start()
            left = messages.waiting() - chance.randint(1, 3)
            until(lambda left=left: messages.waiting() <= left, "a task that is taken")
            time.sleep(chance.uniform(0, 0.1))
            worker.kill()
        messages.send(*TASKS)
        worker.start()
        until(lambda: messages.waiting() == 0, "all tasks taken")
        begun = now()
        turn(turning)
        messages.send(*TASKS)
        until(lambda: RungFlip.objects.filter(connection=turning, at__gte=begun).exists(), "the last flip")
        until(lambda: messages.waiting() == 0 and thinned() == kept, "the history thinned")
    finally:
        worker.kill()

    for states in states_by_spot().values():
        assert all(before[1] == after[0] for before, after in pairwise(states))
    assert set(RungSample.objects.values("at").annotate(rungs=Count("pk")).values_list("rungs", flat=True)) == {5}
    demo = QuotaWindow.objects.filter(connection__connection_id__startswith="demo-", is_reported=True)
    assert demo.exists()
    for window in demo.annotate(newest=Max("readings__observed_at")):
        assert window.observed_at == window.newest


def thinned() -> set[int]:
    return set(QuotaReading.objects.filter(window__connection__connection_id="old").values_list("pk", flat=True))


def states_by_spot() -> dict[Any, list[tuple[str, str]]]:
    """Return from what to what each connection and rung changed, in the order in which it was noted."""
    found: dict[Any, list[tuple[str, str]]] = {}
    for row in RungFlip.objects.order_by("id"):
        found.setdefault((row.connection_id, row.rung), []).append((row.from_state, row.to_state))
    return found
