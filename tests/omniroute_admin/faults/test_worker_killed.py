"""SPEC 6: a worker that is killed in the middle of a task leaves nothing half done, and the next run does all of it.

`tests/omniroute_admin/test_kill.py` kills it in the middle of those that note and thin what routers tell.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from django.db import connection, transaction
from django.db.models import Count
from django.db.models.functions import TruncHour

from billing_catalog.models import ModelPrice
from ladder.models import RungSample, SpendHold
from ladder.services.timeline import note_flips
from omniroute_admin.common.clock import now
from omniroute_admin.common.models import Heartbeat
from omniroute_admin.common.selectors.heartbeat import CHAIN, WORKER
from omniroute_admin.common.selectors.revision import current_revision
from tests.factories import BillingEntryFactory, ConnectionFactory, ModelPriceFactory
from tests.omniroute_admin.killing import Killable, Messages, waits_for_a_lock
from tests.processes import until
from tests.timeline_rows import add_samples

pytestmark = pytest.mark.slow
DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)


class Case(NamedTuple):
    """A task; the table that it writes last; what it has to do; what is there of it; what is once it was done."""

    task: str
    last_table: str
    prepare: Callable[[], Any]
    state: Callable[[], Any]
    is_done: Callable[[], bool]


def nothing() -> None:
    return None


def old_samples() -> None:
    for days in (40, 200, 400):
        at = now() - days * DAY
        add_samples(start=at, end=at + 10 * MINUTE, serving="cheap")


def crowded_hours() -> Any:
    hourly = RungSample.objects.order_by().annotate(hour=TruncHour("at", tzinfo=UTC)).values("rung", "hour")
    return hourly.annotate(count=Count("pk")).filter(count__gt=1)


def of_chain() -> Any:
    return Heartbeat.objects.filter(name=CHAIN)


def ended_holds() -> None:
    BillingEntryFactory(provider="openrouter", auth_type=None, billing="metered", overage="meters-to-paid")
    ModelPriceFactory(provider="openrouter", model="deepseek")
    row = ConnectionFactory(connection_id="key", provider="openrouter", auth_type="apikey")
    begun = now() - DAY
    SpendHold.objects.bulk_create(
        SpendHold(
            hold_id=f"h{number}",
            connection=row,
            model="deepseek",
            rung="cheap",
            amount_usd=1,
            created_at=begun,
            expires_at=begun + MINUTE,
        )
        for number in range(700)
    )
    note_flips(now=now())


CASES = [
    Case(
        "billing_catalog.tasks.sync_prices",
        "common_revision",
        nothing,
        lambda: (ModelPrice.objects.count(), current_revision()),
        lambda: ModelPrice.objects.count() > 100,
    ),
    Case(
        "ladder.tasks.thin_timeline",
        "ladder_rungsample",
        old_samples,
        RungSample.objects.count,
        lambda: not crowded_hours().exists(),
    ),
    Case(
        "ladder.tasks.expire_holds",
        "ladder_spendhold",
        ended_holds,
        lambda: SpendHold.objects.filter(released_at=None).count(),
        lambda: not SpendHold.objects.filter(released_at=None).exists(),
    ),
    Case(
        "omniroute_admin.tasks.beat_heartbeat",
        "common_heartbeat",
        nothing,
        lambda: of_chain().count(),
        lambda: of_chain().exists(),
    ),
]


@pytest.fixture
def worker(tmp_path: Path, database_url: str) -> Iterator[Killable]:
    worker = Killable("worker", tmp_path, VAR_DIR=str(tmp_path), DATABASE_URL=database_url)
    yield worker
    worker.kill()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.task.rpartition(".")[2])
def test_a_worker_killed_in_the_middle_of_a_task(tmp_path: Path, worker: Killable, database: str, case: Case) -> None:
    case.prepare()
    messages = Messages(tmp_path)
    # It shows that it lives by a row of its own, before it takes anything.
    worker.start()
    until(lambda: Heartbeat.objects.filter(name=WORKER).exists(), "the worker ready")
    before = case.state()
    with transaction.atomic():
        keep_others_from_writing(case.last_table)
        messages.send(case.task)
        until(lambda: messages.waiting() == 0, "the task taken")
        if database == "postgres":
            # All of it is written but the last table, and nothing of it is committed.
            until(waits_for_a_lock, "the task in the middle of its transaction")
        worker.kill()
    assert case.state() == before
    messages.send(case.task)
    worker.start()
    until(case.is_done, "the task done by the next run")
    done = case.state()
    messages.send(case.task)
    until(lambda: messages.waiting() == 0, "the task taken once more")
    messages.send("omniroute_admin.tasks.beat_heartbeat")
    until(lambda: messages.waiting() == 0 and of_chain().exists(), "what was sent after it")
    assert case.state() == done


def keep_others_from_writing(table: str) -> None:
    """Lock a table against writers (SQLite: the whole file) until the transaction of the test ends."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(f"LOCK TABLE {table} IN SHARE MODE")
        else:
            cursor.execute("UPDATE common_revision SET value = value WHERE id = 1")
