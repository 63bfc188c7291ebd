"""The metrics agree with what the API answers at the same revision and instant (SPEC 4, occupancy)."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
import time_machine

from ladder.models import Connection
from ladder.selectors.metrics import read_ladder_metrics
from ladder.services.demo import start_demo
from tests.factories import BreakerFactory, ConnectionFactory, CooldownFactory, QuotaWindowFactory
from tests.factories_ladder import NOW
from tests.ladder.services.booking import make_ladder, set_budget
from tests.router import make_router

pytestmark = pytest.mark.django_db

Numbers = dict[tuple[str, ...], float]


def metrics(now=NOW, at_most: int = 1000) -> dict[str, Numbers]:
    return {one.name: dict(one.samples) for one in read_ladder_metrics(now=now, connections_at_most=at_most)}


@pytest.fixture
def shipped() -> None:
    from django.core.management import call_command

    call_command("load_facts", verbosity=0)
    call_command("sync_prices", verbosity=0)


def of_rungs(occupancy: Any) -> dict[str, Numbers]:
    rungs = occupancy["rungs"]
    return {
        "omniroute_rung_usable_connections": {(one["rung"],): one["usable"] for one in rungs},
        "omniroute_rung_connections": {(one["rung"],): one["total"] for one in rungs},
        "omniroute_rung_unusable_connections": {
            (one["rung"], code): number for one in rungs for code, number in one["by_code"].items()
        },
        "omniroute_serving_rung": {(one["rung"],): one["rung"] == occupancy["serving_rung"] for one in rungs},
        "omniroute_pool_empty": {(one["id"],): one["empty"] is not None for one in occupancy["pools"]},
        "omniroute_pool_candidates": {(one["id"],): one["candidates"] for one in occupancy["pools"]},
        "omniroute_revision": {(): int(occupancy["revision"])},
    }


@pytest.mark.parametrize("minutes", [0, 3, 31, 90])
def test_what_the_demo_fleet_shows_is_what_the_occupancy_answers(shipped: None, minutes: int) -> None:
    start_demo(now=NOW)
    now = NOW + timedelta(minutes=minutes)
    with time_machine.travel(now, tick=False):
        occupancy = make_router("pools:read").get("/api/v1/occupancy").json()
    told = metrics(now)
    for name, numbers in of_rungs(occupancy).items():
        assert {key: number for key, number in told[name].items() if number or key in numbers} == numbers, name
    assert sum(told["omniroute_rung_connections"].values()) >= 10


def test_money_is_what_the_occupancy_answers_and_words_without_a_number_have_none() -> None:
    make_ladder()
    set_budget("cheap", "5")
    router = make_router()
    event = {"event_id": "e1", "connection_id": "paid", "model": "small", "occurred_at": "2026-08-22T11:59:30Z"}
    hold = {"hold_id": "h1", "connection_id": "paid", "model": "small", "estimated_cost_usd": "0.40", "ttl_seconds": 60}
    with time_machine.travel(NOW, tick=False):
        assert router.post("/api/v1/telemetry/usage", {"events": [event | {"cost_usd": "1.25"}]}).status_code == 200
        assert router.post("/api/v1/holds", hold).status_code == 201
        budgets = {one["rung"]: one["budget"] for one in router.get("/api/v1/occupancy").json()["rungs"]}
    told = metrics()
    for name, field in {"spent": "spent_usd", "held": "held_usd", "left": "left_usd", "amount": "amount_usd"}.items():
        expected = {
            (rung,): float(budget[field]) for rung, budget in budgets.items() if budget and budget[field] is not None
        }
        assert told[f"omniroute_budget_{name}_usd"] == expected, name
    assert told["omniroute_budget_spent_usd"]["cheap",] == 1.25
    assert told["omniroute_budget_held_usd"]["cheap",] == 0.4
    # M1: no budget is no limit, and not a budget of 0.
    assert ("premium",) not in told["omniroute_budget_amount_usd"]


def test_an_empty_ladder_serves_from_nowhere() -> None:
    told = metrics()
    assert set(told["omniroute_pool_empty"].values()) == {1.0}
    assert told["omniroute_serving_rung_index"] == {(): -1}
    assert told["omniroute_newest_reading_timestamp_seconds"] == {}


def test_remaining_percent_is_told_of_so_many_connections_and_the_others_are_counted() -> None:
    for number in range(4):
        one = ConnectionFactory(connection_id=f"c{number}", provider="claude")
        QuotaWindowFactory(connection=one, window="5h", remaining_percent=Decimal(number))
    QuotaWindowFactory(connection=one, window="weekly", remaining_percent=Decimal("7.5"), is_reported=False)
    QuotaWindowFactory(connection=one, window="monthly", remaining_percent=None, unlimited=True)
    name, left_out = "omniroute_window_remaining_percent", "omniroute_window_connections_left_out"
    told = metrics(at_most=3)
    assert told[name] == {("claude", f"c{number}", "5h"): number for number in range(3)}
    assert told[left_out] == {(): 1}
    assert (len(metrics(at_most=4)[name]), metrics(at_most=4)[left_out]) == (4, {(): 0})
    assert (metrics(at_most=0)[name], metrics(at_most=0)[left_out]) == ({}, {(): 4})


def test_cooldowns_and_breakers_count_while_they_act() -> None:
    one = ConnectionFactory()
    CooldownFactory(connection=one, cause="quota", effective_until=NOW + timedelta(seconds=5))
    CooldownFactory(connection=one, cause="auth", effective_until=None, asked_until=None)
    BreakerFactory(open_until=NOW + timedelta(seconds=5))
    names = ("omniroute_cooldowns", "omniroute_breakers_open")
    now, later = metrics(), metrics(NOW + timedelta(seconds=5))
    assert [now[name] for name in names] == [
        {("quota",): 1, ("rate_limit",): 0, ("auth",): 1, ("ban",): 0, ("operator",): 0},
        {(): 1},
    ]
    assert (later["omniroute_cooldowns"]["quota",], later["omniroute_breakers_open"][()]) == (0, 0)


def test_a_deleted_connection_is_in_no_metric(shipped: None) -> None:
    start_demo(now=NOW)
    before = metrics()
    assert before["omniroute_snapshot_connections"] == {(): 10}
    Connection.objects.update(deleted_at=NOW)
    from ladder.selectors.state import forget_snapshot

    forget_snapshot()
    after = metrics()
    assert after["omniroute_snapshot_connections"] == {(): 0}
    assert after["omniroute_window_remaining_percent"] == {}
