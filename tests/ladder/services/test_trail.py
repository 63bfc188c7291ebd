"""SPEC 3, the timeline: what comes and goes between two looks leaves exactly its flips, and a trace costs little."""

from datetime import timedelta
from decimal import Decimal

import msgspec
import pytest
from django.db import connection as database
from django.test.utils import CaptureQueriesContext

from billing_catalog.models import BillingEntry
from billing_catalog.services.aliases import create_alias
from billing_catalog.services.entries import update_entry
from ladder.models import Connection, RungFlip, TimelineCursor, TimelineTrace
from ladder.services.breakers import BreakerItem, record_breakers
from ladder.services.budgets import reset_budget
from ladder.services.connections import create_connection, update_connection
from ladder.services.cooldowns import clear_cooldowns
from ladder.services.demo import start_demo, stop_demo
from ladder.services.holds import HoldRequest, grant_hold, release_hold
from ladder.services.reading_items import reading_item
from ladder.services.readings import record_readings
from ladder.services.timeline import note_flips
from ladder.services.usage import record_usage
from omniroute_admin.common.services.revision import deciding_write
from tests.factories_ladder import NOW, REPORTER
from tests.ladder.services.booking import event
from tests.ladder.services.looking import (
    BY,
    MINUTE,
    SECOND,
    TICK,
    budget,
    change_settings,
    climbs,
    comes_back,
    look,
    make_plan,
    on_plan,
    read,
    rest,
)

pytestmark = pytest.mark.django_db

HOUR = 60 * MINUTE


@pytest.fixture
def plan():
    """A plan that is read at NOW, with a reset in an hour, and a cheap key beside it; the first look has been taken."""
    return make_plan()


def on_key(after, states, code, cause):
    return (after, "key", "cheap", states, code, cause)


def there_and_back(first, code, cause, second, back_by):
    """Return the flips of a plan that is out from `first` to `second`."""
    state = {"quota_exhausted": "exhausted", "breaker_open": "breaker", "connection_disabled": "off"}.get(code, code)
    return [
        on_plan(first, f"usable>{state}", code, cause),
        *climbs(first, cause),
        on_plan(second, f"{state}>usable", None, back_by),
        *comes_back(second, back_by),
    ]


def test_a_plan_read_at_1_percent_and_at_60_within_a_second(plan):
    read(1, NOW + SECOND)
    read(60, NOW + SECOND + TICK)
    expected = there_and_back(SECOND, "quota_exhausted", "reading", SECOND + TICK, "reading")
    assert look(NOW + 5 * SECOND) == expected


def test_a_cooldown_that_is_set_and_cleared(plan):
    rest(plan, until=NOW + HOUR, now=NOW + SECOND)
    clear_cooldowns(connection=plan, causes=None, now=NOW + 2 * SECOND, **BY)
    assert look(NOW + 5 * SECOND) == there_and_back(SECOND, "cooldown", "cooldown", 2 * SECOND, "operator")


def test_a_cooldown_that_ends_before_anyone_looks(plan):
    rest(plan, until=NOW + 3 * SECOND, now=NOW + SECOND)
    assert look(NOW + 5 * SECOND) == there_and_back(SECOND, "cooldown", "cooldown", 3 * SECOND, "cooldown")


def test_a_report_of_a_cooldown_that_was_over_when_it_came_flips_nothing(plan):
    look(NOW + SECOND)
    rest(plan, until=NOW + 2 * SECOND, now=NOW + 3 * SECOND)
    assert look(NOW + 4 * SECOND) == []


def test_settings_that_are_changed_and_changed_back_q5(plan):
    change_settings(NOW + SECOND, exit_cutoff_percent=Decimal(50))
    change_settings(NOW + 2 * SECOND, exit_cutoff_percent=Decimal(2))
    assert look(NOW + 5 * SECOND) == there_and_back(SECOND, "quota_exhausted", "setting", 2 * SECOND, "setting")


def test_a_reading_that_flips_nothing_now_does_not_change_what_settings_did_before_q5(plan):
    """With the cutoff at 60 both readings are exhausted; with that of before the first alone would not have been."""
    change_settings(NOW + SECOND, exit_cutoff_percent=Decimal(60))
    read(1, NOW + 2 * SECOND)
    change_settings(NOW + 3 * SECOND, exit_cutoff_percent=Decimal(0), reentry_min_remaining_percent=Decimal(0))
    expected = there_and_back(SECOND, "quota_exhausted", "setting", 3 * SECOND, "setting")
    assert look(NOW + 5 * SECOND) == expected


def test_a_connection_that_is_paused_and_goes_on(plan):
    update_connection(connection=plan, changes={"is_enabled": False}, now=NOW + SECOND, **BY)
    update_connection(connection=plan, changes={"is_enabled": True}, now=NOW + 2 * SECOND, **BY)
    assert look(NOW + 5 * SECOND) == there_and_back(SECOND, "connection_disabled", "operator", 2 * SECOND, "operator")


def breaker(state, at, **fields):
    item = BreakerItem(provider="claude", state=state, occurred_at=at, **fields)
    record_breakers(items=[item], actor=REPORTER, now=at)


def test_a_breaker_that_opens_and_closes(plan):
    breaker("open", NOW + SECOND)
    breaker("closed", NOW + 2 * SECOND)
    assert look(NOW + 5 * SECOND) == there_and_back(SECOND, "breaker_open", "cooldown", 2 * SECOND, "cooldown")


def hold(amount, at, *, ttl=3600):
    request = HoldRequest(
        hold_id=f"h{amount}",
        connection_id="key",
        provider=None,
        model="deepseek",
        estimated_cost_usd=Decimal(amount),
        ttl_seconds=ttl,
    )
    grant_hold(request=request, actor=REPORTER, now=at)


def use(cost, at, **fields):
    items = [event(f"e{at}", cost, at=at, connection_id="key", model="deepseek", **fields)]
    record_usage(items=items, actor=REPORTER, now=at)


@pytest.fixture
def spending(plan):
    """A budget of 1.00 for cheap, looked at."""
    budget(Decimal(1), NOW)
    assert look(NOW) == []


def test_a_hold_that_closes_a_budget_and_is_released_m2(spending):
    hold("1", NOW + SECOND)
    release_hold(hold_id="h1", now=NOW + 2 * SECOND)
    assert look(NOW + 5 * SECOND) == [
        on_key(SECOND, "usable>exhausted", "budget_spent", "budget"),
        on_key(2 * SECOND, "exhausted>usable", None, "budget"),
    ]


def test_spend_that_closes_a_budget_and_a_reset_that_opens_it_m2_m9(spending):
    use("1.5", NOW + SECOND)
    reset_budget(rung="cheap", now=NOW + 2 * SECOND, **BY)
    assert look(NOW + 5 * SECOND) == [
        on_key(SECOND, "usable>exhausted", "budget_spent", "budget"),
        on_key(2 * SECOND, "exhausted>usable", None, "budget"),
    ]


def test_spend_that_closes_nothing_after_a_hold_ended_does_not_close_the_time_before_m2(spending):
    hold("0.7", NOW + SECOND, ttl=60)
    use("0.5", NOW + 2 * MINUTE)
    use("0.5", NOW + 3 * MINUTE)
    assert [one for one in look(NOW + 5 * MINUTE) if one[1] == "key"] == [
        on_key(3 * MINUTE, "usable>exhausted", "budget_spent", "budget")
    ]


def test_late_spend_of_a_window_that_turned_does_not_close_the_time_before_m4(spending):
    turn = timedelta(hours=12)
    use("1", NOW + SECOND)
    use("0.1", NOW + turn + SECOND)
    items = [event("late", "1", at=NOW + SECOND, connection_id="key", model="deepseek")]
    record_usage(items=items, actor=REPORTER, now=NOW + turn + 2 * SECOND)
    assert [one for one in look(NOW + turn + MINUTE) if one[1] == "key"] == [
        on_key(SECOND, "usable>exhausted", "budget_spent", "budget"),
        on_key(turn, "exhausted>usable", None, "budget"),
    ]


def test_a_catalogue_that_is_edited_and_edited_back_b2(plan):
    entry = BillingEntry.objects.get(provider="claude")
    for after, billing in ((SECOND, "metered"), (2 * SECOND, "subscription")):
        update_entry(entry=entry, changes={"billing": billing}, now=NOW + after, **BY)
    mine = [one for one in look(NOW + 5 * SECOND) if one[1] == "plan"]
    assert mine == [
        on_plan(SECOND, "usable>", None, "catalogue"),
        (SECOND, "plan", "premium", ">usable", None, "catalogue"),
        on_plan(2 * SECOND, ">usable", None, "catalogue"),
        (2 * SECOND, "plan", "premium", "usable>", None, "catalogue"),
    ]


def test_an_alias_that_moves_connections_between_two_changes_of_theirs(plan):
    create_connection(connection_id="odd", provider="klaude", auth_type="oauth", now=NOW + SECOND, **BY)
    create_alias(values={"alias": "klaude", "provider": "claude"}, now=NOW + 2 * SECOND, **BY)
    odd = Connection.objects.get(connection_id="odd")
    update_connection(connection=odd, changes={"is_enabled": False}, now=NOW + 3 * SECOND, **BY)
    assert [one for one in look(NOW + 5 * SECOND) if one[1] == "odd"] == [
        (SECOND, "odd", "premium", ">off", "no_models", "operator"),
        (2 * SECOND, "odd", "subscription", ">unverified", "quota_unverified", "catalogue"),
        (2 * SECOND, "odd", "premium", "off>", None, "catalogue"),
        (3 * SECOND, "odd", "subscription", "unverified>off", "connection_disabled", "operator"),
    ]


def test_a_demo_fleet_that_comes_and_goes_leaves_the_ladder_as_it_was(plan):
    start_demo(now=NOW + SECOND)
    stop_demo(now=NOW + 2 * SECOND)
    flips = [one for one in look(NOW + 5 * SECOND) if one[1] not in {"rung", "plan", "key"}]
    assert {one[0] for one in flips} == {SECOND, 2 * SECOND}
    assert len([one for one in flips if one[3].startswith(">")]) == len([one for one in flips if one[3].endswith(">")])


def test_a_flip_carries_the_revision_that_its_write_made(plan):
    read(1, NOW + SECOND)
    made = TimelineTrace.objects.get().revision
    read(60, NOW + 2 * SECOND)
    look(NOW + 5 * SECOND)
    assert [flip.revision for flip in plan.flips.order_by("at")] == [made, made + 1]


def test_all_that_one_transaction_does_is_one_change(plan):
    with deciding_write():
        rest(plan, until=NOW + HOUR, now=NOW + SECOND)
        clear_cooldowns(connection=plan, causes=None, now=NOW + SECOND, **BY)
    assert TimelineTrace.objects.count() == 0
    assert look(NOW + 5 * SECOND) == []


def test_a_reading_that_only_moves_the_number_leaves_no_trace(plan):
    for second, percent in enumerate((59, 30, 6, 99), start=1):
        read(percent, NOW + second * SECOND)
    assert TimelineTrace.objects.count() == 0
    read(1, NOW + 9 * SECOND)
    assert TimelineTrace.objects.count() == 1
    read(0, NOW + 10 * SECOND)
    assert TimelineTrace.objects.count() == 1


def test_before_the_first_look_nothing_leaves_a_trace(plan):
    TimelineCursor.objects.all().delete()
    read(1, NOW + SECOND)
    assert TimelineTrace.objects.count() == 0


def test_a_write_that_is_undone_leaves_no_trace(plan):
    def fail():
        with deciding_write():
            read(1, NOW + SECOND)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert TimelineTrace.objects.count() == 0
    assert look(NOW + 5 * SECOND) == []


def test_many_traces_are_told_over_several_looks_in_their_order(plan, monkeypatch):
    for second in range(1, 8):
        read(1 if second % 2 else 60, NOW + second * SECOND)
    monkeypatch.setattr("ladder.services.timeline._WRITES_AT_MOST", 2)
    monkeypatch.setattr("ladder.services.timeline._LOOKS_AT_MOST", 2)
    assert note_flips(now=NOW + MINUTE) == 4 * 3
    assert TimelineCursor.objects.get().at == NOW + 4 * SECOND
    assert note_flips(now=NOW + MINUTE) == 3 * 3
    assert TimelineTrace.objects.count() == 0
    assert [flip.at for flip in plan.flips.order_by("at")] == [NOW + second * SECOND for second in range(1, 8)]


@pytest.mark.parametrize("before", [b"[]", b"not JSON", msgspec.json.encode([{"type": "of later times"}])])
def test_a_trace_that_cannot_be_read_costs_its_instant_and_nothing_else(plan, before):
    read(1, NOW + SECOND)
    TimelineTrace.objects.update(before=before)
    late = 5 * SECOND
    assert look(NOW + late)[0] == on_plan(late, "usable>exhausted", "quota_exhausted", "reading")
    assert TimelineTrace.objects.count() == 0


def queries_of(percent, after, number):
    items = [
        reading_item(
            connection_id=f"c{place}", window="5h", observed_at=NOW + after, remaining_percent=Decimal(percent)
        )
        for place in range(number)
    ]
    with CaptureQueriesContext(database) as queries:
        record_readings(items=items, complete_for=[], actor=REPORTER, now=NOW + after)
    return len(queries)


def test_a_body_that_flips_5000_takes_as_many_queries_as_one_that_flips_one_spec_4(plan):
    with deciding_write():
        Connection.objects.bulk_create(
            Connection(connection_id=f"c{place}", provider="claude", auth_type="oauth", created_at=NOW, updated_at=NOW)
            for place in range(5000)
        )
    note_flips(now=NOW)
    queries_of(60, SECOND, 5000)
    few = [queries_of(percent, after * SECOND, 1) for percent, after in ((1, 2), (60, 3), (59, 4))]
    many = [queries_of(percent, after * SECOND, 5000) for percent, after in ((1, 5), (60, 6), (59, 7))]
    assert few == many
    assert TimelineTrace.objects.count() == 5
    note_flips(now=NOW + 8 * SECOND)
    assert RungFlip.objects.filter(connection__connection_id="c4999", to_state="exhausted").count() == 1
