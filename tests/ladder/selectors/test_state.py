"""What a process prepared is renewed for what was touched, and says what everything read anew would say (SPEC 3)."""

import random
from datetime import timedelta
from decimal import Decimal

import msgspec
import pytest
from django.db import connection as database
from django.test.utils import CaptureQueriesContext

from billing_catalog.models import BillingEntry
from ladder.core.ids import POOL_IDS
from ladder.core.pool import build_pool
from ladder.core.snapshot import Snapshot
from ladder.core.values import CooldownCause, PoolOptions
from ladder.models import Connection, QuotaWindow
from ladder.selectors import state
from ladder.selectors.state import forget_snapshot, get_snapshot
from ladder.services.connections import update_connection
from ladder.services.cooldowns import clear_cooldowns
from ladder.services.reading_items import reading_item
from ladder.services.readings import record_readings
from ladder.services.refusal_items import RateLimitItem
from ladder.services.refusals import record_rate_limits
from ladder.services.windows import mark_exhausted, update_window
from omniroute_admin.common.models import RevisionStep
from omniroute_admin.common.services.revision import STEPS_KEPT, deciding_write
from tests.factories import BillingEntryFactory, ConnectionFactory, ModelPriceFactory
from tests.factories_ladder import NOW, OPERATOR, REPORTER

pytestmark = pytest.mark.django_db(transaction=True)
TOLD = PoolOptions(explain=True)


@pytest.fixture
def fleet():
    with deciding_write():
        for provider in ("claude", "codex"):
            BillingEntryFactory(provider=provider, auth_type="oauth", billing="subscription", overage="hard-stop")
            for model in ("opus-4", "sonnet-4"):
                ModelPriceFactory(provider=provider, model=model)
        return [ConnectionFactory(connection_id=f"c{n}", provider=("claude", "codex")[n % 2]) for n in range(6)]


def answers(snapshot, now):
    return [
        build_pool(snapshot=snapshot, pool_id=pool_id, candidates=None, options=TOLD, now=now)
        for pool_id in POOL_IDS.values()
    ]


def read(connection_id, percent, now, **fields):
    item = reading_item(
        connection_id=connection_id, window="5h", observed_at=now, remaining_percent=Decimal(percent), **fields
    )
    record_readings(items=[item], complete_for=[], actor=REPORTER, now=now)


def refuse(connection_id, now):
    item = RateLimitItem(
        connection_id=connection_id, occurred_at=now, cause=CooldownCause.RATE_LIMIT, retry_after=msgspec.Raw(b"60")
    )
    record_rate_limits(items=[item], actor=REPORTER, now=now)


def act(chance, connection, now):
    """Do one of the things that touch the state of one connection only, or one that touches more."""
    by = {"actor": OPERATOR, "reason": "a test", "now": now}
    kind = chance.randrange(8)
    window = QuotaWindow.objects.filter(connection=connection).first()
    if kind <= 2:
        model = chance.choice([None, None, "*opus*"])
        read(connection.connection_id, chance.choice([0, 2, 4, 60]), now, model=model)
    elif kind == 3:
        refuse(connection.connection_id, now)
    elif kind == 4:
        clear_cooldowns(connection=connection, causes=None, **by)
    elif kind == 5 and window is not None:
        update_window(window=window, changes={"is_muted": chance.random() < 0.5}, **by)
    elif kind == 6:
        mark_exhausted(connection=connection, window=None, reset_at=None, **by)
    else:
        changes = {"is_enabled": chance.random() < 0.5}
        update_connection(connection=Connection.objects.get(pk=connection.pk), changes=changes, **by)


@pytest.mark.parametrize("seed", range(4))
def test_a_renewed_state_decides_as_one_read_anew(fleet, seed):
    chance, now = random.Random(seed), NOW
    get_snapshot(now=now)
    for _ in range(25):
        now += timedelta(seconds=chance.choice([0, 1, 20, 200]))
        act(chance, chance.choice(fleet), now)
        renewed = answers(get_snapshot(now=now), now)
        kept, state._prepared = state._prepared, None
        assert renewed == answers(get_snapshot(now=now), now)
        state._prepared = kept


def test_a_reading_renews_what_is_at_hand_with_few_queries_and_keeps_the_rest(fleet):
    for one in fleet:
        read(one.connection_id, 60, NOW)
    before = get_snapshot(now=NOW)
    answers(before, NOW)
    read("c0", 1, NOW + timedelta(seconds=1))
    with CaptureQueriesContext(database) as queries:
        after = get_snapshot(now=NOW + timedelta(seconds=1))
    read_tables = [query["sql"] for query in queries if "billing_catalog" in query["sql"]]
    assert read_tables == []
    assert after.facts.prices is before.facts.prices
    assert isinstance(after, Snapshot)


def test_a_catalogue_edit_is_read_anew(fleet):
    get_snapshot(now=NOW)
    with deciding_write():
        BillingEntry.objects.filter(provider="claude").update(billing="metered", overage="unknown")
    billing = {row.provider: row.billing.value for row in get_snapshot(now=NOW).facts.catalog}
    assert billing["claude"] == "metered"


def test_a_step_that_is_not_told_is_made_good_by_reading_everything(fleet):
    get_snapshot(now=NOW)
    read("c0", 1, NOW)
    RevisionStep.objects.all().delete()
    read("c1", 1, NOW)
    windows = {one.connection_id: one.windows for one in get_snapshot(now=NOW).facts.connections}
    assert [bool(windows[name]) for name in ("c0", "c1", "c2")] == [True, True, False]


def test_steps_are_kept_for_a_while_only(fleet):
    with deciding_write() as write:
        write.changed = False
    forget_snapshot()
    RevisionStep.objects.create(revision=-5_000, rows="")
    for _ in range(STEPS_KEPT):
        with deciding_write() as write:
            write.touched = []
    assert not RevisionStep.objects.filter(revision=-5_000).exists()
    assert RevisionStep.objects.count() <= 2 * STEPS_KEPT
