"""SPEC 6: two processes never disagree after a commit, whatever was read, in whatever order, and whenever they look."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ladder.core.ids import find_pool_id
from ladder.core.pool import build_pool
from ladder.core.values import PoolOptions, ReadingStatus
from ladder.models import Connection, QuotaReading, QuotaWindow
from ladder.selectors.state import forget_snapshot, get_snapshot
from ladder.services.reading_items import reading_item
from ladder.services.readings import record_readings
from omniroute_admin.common.services.revision import deciding_write
from tests.factories import BillingEntryFactory, ConnectionFactory, ModelPriceFactory
from tests.factories_ladder import NOW, REPORTER
from tests.ladder.verdicts import verdicts
from tests.processes import environment
from tests.shared import ROOT

SECOND = timedelta(seconds=1)
# Around the band of 2 and 5 per cent, and well above it.
PERCENTS = st.sampled_from([0, 1, 2, 3, 4, 5, 6, 40, 90])

a_reading = st.fixed_dictionaries(
    {
        "connection_id": st.sampled_from(["c1", "c2"]),
        "window": st.sampled_from(["5h", "weekly"]),
        "at": st.integers(-400, 0),
        "percent": st.none() | PERCENTS,
        "reset_in": st.none() | st.integers(-300, 600),
    }
)
a_body = st.tuples(st.lists(a_reading, max_size=3), st.booleans())
FEW = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def plans() -> None:
    BillingEntryFactory(provider="claude", auth_type=None, billing="subscription", overage="hard-stop")
    ModelPriceFactory(provider="claude", model="opus")
    for name in ("c1", "c2"):
        ConnectionFactory(connection_id=name)


def forget_readings() -> None:
    with deciding_write():
        QuotaReading.objects.all().delete()
        QuotaWindow.objects.all().delete()


def record(readings, is_complete=False):
    items = [
        reading_item(
            connection_id=one["connection_id"],
            window=one["window"],
            observed_at=NOW + one["at"] * SECOND,
            remaining_percent=None if one["percent"] is None else Decimal(one["percent"]),
            status=ReadingStatus.EXHAUSTED if one["percent"] is None else None,
            reset_at=None if one["reset_in"] is None else NOW + one["reset_in"] * SECOND,
        )
        for one in readings
    ]
    complete_for = ["c1"] if is_complete else []
    return record_readings(items=items, complete_for=complete_for, actor=REPORTER, now=NOW)


class OtherProcess:
    """A process of its own, which keeps what it has prepared from one question to the next."""

    def __init__(self, child: "subprocess.Popen[str]") -> None:
        self._child = child

    def verdicts(self, now: datetime) -> str:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(f"{now.isoformat()}\n")
        self._child.stdin.flush()
        return self._child.stdout.readline().strip()


@pytest.fixture
def other(database_url: str) -> Iterator[OtherProcess]:
    command = [sys.executable, "-m", "tests.ladder.verdicts"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, env=environment(DATABASE_URL=database_url), cwd=ROOT, text=True, **pipes) as child:
        yield OtherProcess(child)
        child.stdin.close()


def test_no_sequence_of_readings_leads_two_processes_to_two_verdicts(other: OtherProcess) -> None:
    plans()
    seen = set()

    @FEW
    @given(bodies=st.lists(a_body, min_size=1, max_size=4), looks=st.lists(st.integers(-60, 900), min_size=4))
    def agree(bodies, looks):
        forget_readings()
        for (readings, is_complete), look in zip(bodies, looks, strict=False):
            record(readings, is_complete)
            now = NOW + look * SECOND
            here = verdicts(now)
            assert other.verdicts(now) == here
            forget_snapshot()
            assert verdicts(now) == here
            seen.add(here)

    agree()
    assert len(seen) > 1


def subscription(now):
    pool_id, options = find_pool_id("auto/subscription"), PoolOptions()
    pool = build_pool(snapshot=get_snapshot(now=now), pool_id=pool_id, candidates=None, options=options, now=now)
    return {connection for entry in pool.candidates for connection in entry.allowed_connection_ids}


@pytest.mark.django_db
@FEW
@given(readings=st.lists(a_reading, max_size=6), data=st.data())
def test_a_later_and_higher_reading_never_removes_a_connection_from_subscription_q(readings, data):
    forget_readings()
    if not Connection.objects.exists():
        plans()
    # Without a verified plan there is nothing that could be removed.
    for name in ("c1", "c2"):
        percent = data.draw(st.integers(6, 80))
        record([{"connection_id": name, "window": "5h", "at": -390, "percent": percent, "reset_in": None}])
    record(readings)
    now = NOW + data.draw(st.integers(-30, 30)) * SECOND
    before = subscription(now)
    rows = list(QuotaWindow.objects.exclude(remaining_percent=None).order_by("pk"))
    assume(rows)
    row = data.draw(st.sampled_from(rows))
    later = min(int((row.observed_at - NOW) / SECOND) + data.draw(st.integers(1, 400)), 30)
    higher = {"connection_id": row.connection.connection_id, "window": row.window, "at": later, "reset_in": None}
    record([higher | {"percent": row.remaining_percent + data.draw(st.integers(1, 20))}])
    assert before <= subscription(now)
