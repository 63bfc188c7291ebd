"""What time has ended: marking and checking it changes no decision, and can be said any number of times (M2, M4)."""

import logging
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.db import connection as database

from ladder.core.money import held_usd
from ladder.core.values import Rung
from ladder.models import Connection, RungBudget, RungFlip, SpendHold
from ladder.selectors.ledger import read_budgets
from ladder.services.closing import close_budget_windows, expire_holds
from ladder.services.connections import create_connection
from ladder.services.timeline import note_flips
from omniroute_admin.common.selectors.revision import current_token
from tests.factories import BillingEntryFactory, ModelPriceFactory, SpendHoldFactory, UsageEventFactory
from tests.factories_ladder import NOW, OPERATOR

pytestmark = pytest.mark.django_db

MINUTE = timedelta(minutes=1)
TICK = timedelta(microseconds=1)


@pytest.fixture
def key():
    """A metered key on the rung `cheap`, whose budget of 1.00 is daily in Berlin."""
    BillingEntryFactory(provider="openrouter", auth_type=None, billing="metered", overage="meters-to-paid")
    ModelPriceFactory(provider="openrouter", model="deepseek", input_usd_per_million=Decimal("0.5"))
    RungBudget.objects.filter(rung="cheap").update(amount_usd=Decimal(1), zone="Europe/Berlin")
    create_connection(
        connection_id="key", provider="openrouter", auth_type="apikey", actor=OPERATOR, reason="a test", now=NOW
    )
    return Connection.objects.get()


def held(at):
    return held_usd(budget=read_budgets(now=at)[Rung.CHEAP], at=at)


def test_only_holds_that_ended_before_the_tolerated_skew_are_marked_at_their_end_spec_6(key):
    for name, ends in {"over": -MINUTE, "just over": TICK - MINUTE, "acting": MINUTE}.items():
        SpendHoldFactory(hold_id=name, connection=key, created_at=NOW - 5 * MINUTE, expires_at=NOW + ends)
    before = current_token(), held(NOW), held(NOW + 2 * MINUTE)
    assert (expire_holds(now=NOW), expire_holds(now=NOW)) == (1, 0)
    assert (current_token(), held(NOW), held(NOW + 2 * MINUTE)) == before
    marked = SpendHold.objects.exclude(released_at=None)
    assert list(marked.values_list("hold_id", "released_at")) == [("over", NOW - MINUTE)]


def test_what_was_settled_or_released_stays_as_it_is(key):
    past = {"connection": key, "created_at": NOW - 5 * MINUTE, "expires_at": NOW - 4 * MINUTE}
    SpendHoldFactory(**past, settled_by=UsageEventFactory(connection=key))
    SpendHoldFactory(**past, released_at=NOW - 5 * MINUTE)
    before = list(SpendHold.objects.values())
    assert expire_holds(now=NOW) == 0
    assert list(SpendHold.objects.values()) == before


def test_the_end_of_a_hold_is_told_by_the_timeline_before_it_is_marked_m2(key):
    SpendHoldFactory(connection=key, amount_usd=Decimal(1), created_at=NOW, expires_at=NOW + MINUTE)
    note_flips(now=NOW)
    assert expire_holds(now=NOW + 60 * MINUTE) == 1
    flip = RungFlip.objects.get(connection=key)
    assert (flip.at, flip.to_state, flip.cause) == (NOW + MINUTE, "usable", "budget")


def test_many_holds_are_marked_in_one_run(key, monkeypatch):
    monkeypatch.setattr("ladder.services.closing._BATCH", 2)
    for _ in range(5):
        SpendHoldFactory(connection=key, created_at=NOW - 5 * MINUTE, expires_at=NOW - 4 * MINUTE)
    assert expire_holds(now=NOW) == 5


# Local midnight after the day of 25 hours.
TURN = datetime(2026, 10, 25, 23, 0, tzinfo=UTC)


def cheap_windows(at):
    return [(one.window.start, one.window.end, one.faults) for one in close_budget_windows(now=at) if one.rung == 3]


def test_the_last_window_is_looked_at_for_a_day_after_its_end_m3(key):
    for at in (TURN, TURN + timedelta(days=1) - TICK):
        assert cheap_windows(at) == [(TURN - timedelta(hours=25), TURN, ())]
    RungBudget.objects.filter(rung="cheap").update(period="monthly")
    assert cheap_windows(TURN) == []


def test_a_closed_window_that_does_not_add_up_is_an_error_in_the_log_each_time_m4(key, caplog):
    for name, at in {"yesterday": TURN - TICK, "today": TURN}.items():
        UsageEventFactory(event_id=name, connection=key, occurred_at=at)
    with database.cursor() as cursor:
        cursor.execute("UPDATE ladder_usageevent SET estimated_change = 1")
    before = current_token()
    with caplog.at_level(logging.ERROR):
        for _ in range(2):
            (closed,) = cheap_windows(TURN + MINUTE)
            assert closed[2] == ("yesterday: an original does not count its estimate",)
    told = "The budget window of cheap that ended 2026-10-25T23:00:00+00:00: " + closed[2][0]
    assert [record.message for record in caplog.records] == [told, told]
    assert current_token() == before


def test_a_rung_that_a_new_window_opened_is_told_at_the_windows_end_m2_m3(key):
    UsageEventFactory(connection=key, occurred_at=TURN - MINUTE, booked_cost=Decimal(1))
    note_flips(now=TURN - TICK)
    close_budget_windows(now=TURN + 5 * MINUTE)
    close_budget_windows(now=TURN + 6 * MINUTE)
    flip = RungFlip.objects.get(connection=key)
    assert (flip.at, flip.from_state, flip.to_state, flip.cause) == (TURN, "exhausted", "usable", "budget")
