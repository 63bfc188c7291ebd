"""The demo fleet: it shows every state, it is gone when it is stopped, and nothing else is ever touched."""

from datetime import timedelta

import pytest
from django.core.management import call_command
from django.db import connection as database
from django.test.utils import CaptureQueriesContext

from ladder.core.demo.fleet import FLEET
from ladder.core.occupancy import build_occupancy
from ladder.core.places import State
from ladder.models import Connection, Cooldown, LadderSettings, QuotaReading, QuotaWindow, RungBudget
from ladder.selectors.demo import DEMO, demo_connections, read_demo_state
from ladder.selectors.state import get_snapshot
from ladder.services.connections import create_connection, delete_connection, update_connection
from ladder.services.cooldowns import clear_cooldowns
from ladder.services.demo import move_demo, start_demo, stop_demo
from ladder.tasks import move_demo_fleet
from omniroute_admin.common.clock import now as clock_now
from omniroute_admin.common.selectors.revision import current_revision
from tests.factories_catalog import ModelPriceFactory, ProviderAliasFactory
from tests.factories_ladder import (
    NOW,
    OPERATOR,
    ConnectionFactory,
    CooldownFactory,
    QuotaReadingFactory,
    QuotaWindowFactory,
)

pytestmark = pytest.mark.django_db

SECOND = timedelta(seconds=1)
TICK = 20 * SECOND
MODELS = [
    *[(provider, "a-model", 3) for provider in ("claude", "codex", "cursor")],
    *[("openrouter", f"at-{price}", price) for price in (0, "0.5", 3)],
    ("deepseek", "deepseek-chat", "0.3"),
    ("ovhcloud", "a-model", "0.3"),
]


def operators_own(connection_id="demo-claude-1", **fields):
    """Make a connection as an operator does, under a name like the demo's."""
    made = {"provider": "claude", "auth_type": "oauth", "label": "demo: mine", **fields}
    return create_connection(connection_id=connection_id, actor=OPERATOR, reason="mine", now=NOW, **made)


def everything():
    """Return every row that the demo could touch."""
    return [
        list(model.objects.order_by("pk").values())
        for model in (Connection, QuotaWindow, QuotaReading, Cooldown, LadderSettings, RungBudget)
    ]


def window(connection_id, name="5h"):
    return QuotaWindow.objects.get(connection__connection_id=connection_id, window=name)


@pytest.fixture
def catalog():
    call_command("load_facts", verbosity=0)
    for provider, model, price in MODELS:
        ModelPriceFactory(provider=provider, model=model, input_usd_per_million=price)


def watch(*, start, seconds):
    """Return every (connection, state, code, rung) on the ladder and the reset of what is exhausted, tick by tick."""
    seen, resets = set(), []
    for number in range(1, seconds // 20 + 1):
        now = start + number * TICK
        move_demo(now=now)
        for place in build_occupancy(snapshot=get_snapshot(now=now), now=now).places:
            seen.add((place.connection_id, place.state, place.code, place.rung))
            if place.state is State.EXHAUSTED and place.returns_at is not None:
                resets.append(place.returns_at - now)
    return seen, resets


@pytest.mark.usefixtures("catalog")
@pytest.mark.parametrize("minute", [0, 17, 43])
def test_every_state_and_every_rung_shows_within_ten_minutes(minute):
    start = NOW + minute * 60 * SECOND
    start_demo(now=start)
    seen, resets = watch(start=start, seconds=600)
    states = {state for _, state, _, _ in seen}
    assert states == set(State) - {State.BREAKER}
    usable = {rung for _, state, _, rung in seen if state is State.USABLE}
    assert usable == {"subscription", "free", "cheap", "premium"}
    assert ("noauth", State.UNVERIFIED, "quota_unverified", "keyless") in seen
    assert timedelta(0) < min(resets) < timedelta(minutes=5)


@pytest.mark.usefixtures("catalog")
def test_over_an_hour_each_connection_shows_what_it_is_there_for():
    start_demo(now=NOW)
    seen, _ = watch(start=NOW, seconds=3600)
    states = {}
    for name, state, _, _ in seen:
        states.setdefault(name, set()).add(state)
    assert {State.USABLE, State.EXHAUSTED} <= states["demo-claude-1"]
    assert {State.USABLE, State.EXHAUSTED, State.PENDING} <= states["demo-claude-2"]
    assert {State.USABLE, State.EXHAUSTED, State.HELD} <= states["demo-claude-3"]
    assert {State.USABLE, State.COOLDOWN} <= states["demo-codex-1"]
    assert states["demo-codex-2"] == {State.USABLE, State.STALE}
    assert states["demo-cursor-1"] == {State.USABLE, State.UNVERIFIED}
    assert states["demo-kiro-1"] == {State.OFF}
    assert states["demo-deepseek-1"] == {State.USABLE, State.COOLDOWN}


def test_a_second_start_changes_nothing():
    start_demo(now=NOW)
    before, revision = everything(), current_revision()
    change = start_demo(now=NOW + 300 * SECOND)
    assert (change.made, len(change.kept), change.foreign) == ((), len(FLEET), ())
    assert (everything(), current_revision()) == (before, revision)


def test_a_second_move_of_one_instant_changes_nothing():
    start_demo(now=NOW)
    now = NOW + 310 * SECOND
    assert move_demo(now=now) > 0
    assert Cooldown.objects.exists()
    before, history = everything(), Cooldown.history.count()
    assert move_demo(now=now + SECOND) == 0
    assert (everything(), Cooldown.history.count()) == (before, history)


def test_a_late_move_leaves_the_newer_readings_current_spec_4():
    start_demo(now=NOW)
    move_demo(now=NOW + 80 * SECOND)
    newer = window("demo-claude-2").remaining_percent
    move_demo(now=NOW + 70 * SECOND)
    assert window("demo-claude-2").remaining_percent == newer


def test_a_move_reports_every_window_of_what_it_reads_and_never_the_one_read_once_q6():
    start_demo(now=NOW)
    move_demo(now=NOW + 100 * SECOND)
    assert QuotaWindow.objects.filter(is_reported=False).count() == 0
    assert window("demo-claude-1").observed_at == NOW + 100 * SECOND
    assert window("demo-codex-2").observed_at == NOW - 120 * SECOND


def test_where_there_is_no_fleet_a_move_looks_once_and_does_nothing():
    operators_own()
    before, revision = everything(), current_revision()
    with CaptureQueriesContext(database) as queries:
        assert move_demo(now=NOW) == 0
    assert len(queries) == 1
    assert (everything(), current_revision()) == (before, revision)


def test_the_periodic_task_reads_the_fleet_as_it_is_now():
    start_demo(now=clock_now() - 600 * SECOND)
    move_demo_fleet.delay()
    state = read_demo_state()
    assert clock_now() - state.read_at < 30 * SECOND
    assert len(state.connections) == len(FLEET)


def test_a_stop_leaves_nothing_of_it_but_the_books_spec_3():
    before = everything()
    start_demo(now=NOW)
    move_demo(now=NOW + 310 * SECOND)
    assert len(stop_demo(now=NOW + 320 * SECOND)) == len(FLEET)
    assert not Connection.objects.live().exists()
    assert everything()[1:] == before[1:]
    assert read_demo_state().connections == ()
    assert set(Connection.objects.values_list("deleted_at", flat=True)) == {NOW + 320 * SECOND}
    made = Connection.history.filter(connection_id="demo-kiro-1").order_by("pk")
    assert [(row.history_actor, row.history_change_reason) for row in made] == [
        (DEMO.name, "the demo was started"),
        (DEMO.name, "the demo was stopped"),
    ]


def test_a_second_stop_and_a_move_after_it_change_nothing():
    start_demo(now=NOW)
    stop_demo(now=NOW)
    before, revision = everything(), current_revision()
    assert stop_demo(now=NOW + SECOND) == ()
    assert move_demo(now=NOW + SECOND) == 0
    assert (everything(), current_revision()) == (before, revision)


def test_a_start_after_a_stop_inherits_nothing_spec_3():
    start_demo(now=NOW)
    stop_demo(now=NOW)
    change = start_demo(now=NOW + 600 * SECOND)
    assert len(change.made) == len(FLEET)
    assert demo_connections().count() == len(FLEET)
    assert window("demo-codex-2").readings.count() == 1


def test_a_start_brings_back_what_was_deleted_and_leaves_the_rest():
    start_demo(now=NOW)
    gone = Connection.objects.get(connection_id="demo-kiro-1")
    delete_connection(connection=gone, actor=OPERATOR, reason="not needed", now=NOW)
    change = start_demo(now=NOW + SECOND)
    assert change.made == ("kiro/demo-kiro-1",)
    assert len(change.kept) == len(FLEET) - 1


@pytest.mark.parametrize("act", [start_demo, stop_demo])
def test_a_dry_run_writes_nothing(act):
    if act is stop_demo:
        start_demo(now=NOW)
    before, revision = everything(), current_revision()
    assert act(now=NOW + SECOND, dry_run=True)
    assert (everything(), current_revision()) == (before, revision)


def test_an_operators_own_connection_of_a_demo_name_is_never_touched():
    own = operators_own()
    QuotaReadingFactory(window=QuotaWindowFactory(connection=own, window="5h"))
    CooldownFactory(connection=own, cause="operator")
    ConnectionFactory(connection_id="demo-mine", label="demo: mine")
    before = everything()
    change = start_demo(now=NOW)
    assert change.foreign == ("claude/demo-claude-1",)
    move_demo(now=NOW + 310 * SECOND)
    assert len(stop_demo(now=NOW + 320 * SECOND)) == len(FLEET) - 1
    live = Connection.objects.live().values_list("pk", flat=True)
    assert list(live.order_by("pk").values()) == before[0]
    assert everything()[1:] == before[1:]


def test_an_operators_connection_that_took_the_place_of_a_demo_one_is_the_operators():
    start_demo(now=NOW)
    gone = Connection.objects.get(connection_id="demo-claude-2")
    delete_connection(connection=gone, actor=OPERATOR, reason="mine now", now=NOW)
    own = operators_own("demo-claude-2")
    move_demo(now=NOW + 100 * SECOND)
    stop_demo(now=NOW + 110 * SECOND)
    own.refresh_from_db()
    assert own.deleted_at is None
    assert not own.windows.exists()


def test_a_demo_name_under_another_provider_is_left_out_too():
    operators_own("demo-claude-1", provider="groq", auth_type="apikey")
    assert start_demo(now=NOW).foreign == ("claude/demo-claude-1",)


@pytest.mark.parametrize("is_implied", [False, True])
def test_a_keyless_path_that_is_known_already_is_not_the_demos(is_implied):
    own = ConnectionFactory(noauth=True, provider="ovhcloud", is_implied=is_implied)
    assert start_demo(now=NOW).foreign == ("ovhcloud/noauth",)
    stop_demo(now=NOW)
    assert list(Connection.objects.live()) == [own]


def test_a_keyless_path_at_another_provider_is_in_nobodys_way():
    own = ConnectionFactory(noauth=True, provider="pollinations")
    assert start_demo(now=NOW).foreign == ()
    stop_demo(now=NOW)
    assert list(Connection.objects.live()) == [own]


def test_a_demo_connection_that_was_edited_is_still_the_demos():
    start_demo(now=NOW)
    row = Connection.objects.get(connection_id="demo-claude-1")
    update_connection(connection=row, changes={"label": "mine?"}, actor=OPERATOR, reason="to see", now=NOW)
    start_demo(now=NOW + SECOND)
    row.refresh_from_db()
    assert row.label == "mine?"
    stop_demo(now=NOW + SECOND)
    assert not Connection.objects.live().exists()


def test_a_fleet_whose_provider_became_an_alias_moves_and_goes_as_before_spec_1():
    ProviderAliasFactory(alias="ovhcloud", provider="ovh")
    ProviderAliasFactory(alias="codex", provider="openai-codex")
    assert "openai-codex/demo-codex-1" in start_demo(now=NOW).made
    assert start_demo(now=NOW).made == ()
    move_demo(now=NOW + 100 * SECOND)
    assert window("demo-codex-1").observed_at == NOW + 100 * SECOND
    stop_demo(now=NOW + 110 * SECOND)
    assert not Connection.objects.live().exists()


def test_a_cooldown_that_an_operator_cleared_stays_cleared_until_the_next_cycle():
    start_demo(now=NOW)
    row = Connection.objects.get(connection_id="demo-deepseek-1")
    move_demo(now=NOW + 60 * SECOND)
    assert row.cooldowns.get().effective_until == NOW + 140 * SECOND
    clear_cooldowns(connection=row, causes=None, actor=OPERATOR, reason="to see", now=NOW + 100 * SECOND)
    move_demo(now=NOW + 120 * SECOND)
    assert not row.cooldowns.exists()
    move_demo(now=NOW + 300 * SECOND)
    assert row.cooldowns.get().effective_until == NOW + 380 * SECOND
