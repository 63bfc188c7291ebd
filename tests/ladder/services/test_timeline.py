"""SPEC 3, the timeline, told as a story: one flip per change, at the write's instant, with its cause; written once."""

from decimal import Decimal

import pytest
from django.db import connection as database
from django.test.utils import CaptureQueriesContext

from ladder.core.values import CooldownCause
from ladder.models import Breaker, Connection, LadderSettings, RungFlip, TimelineCursor
from ladder.selectors.timeline import flips_between
from ladder.services.connections import create_connection, delete_connection, update_connection
from ladder.services.cooldowns import clear_cooldowns
from ladder.services.timeline import note_flips
from ladder.services.windows import mark_exhausted, update_window
from omniroute_admin.common.services.revision import deciding_write
from tests.factories import BreakerFactory, ModelPriceFactory, TierOverrideFactory
from tests.factories_ladder import NOW
from tests.ladder.services.looking import (
    AT_ONCE,
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


@pytest.fixture
def plan():
    """A plan that is read at NOW, with a reset in an hour, and a cheap key beside it; the first look has been taken."""
    return make_plan()


def test_the_first_look_takes_the_picture_and_notes_nothing(plan):
    assert RungFlip.objects.count() == 0
    assert TimelineCursor.objects.get().at == NOW


def test_a_reading_that_ages_out_flips_at_the_exact_microsecond_by_time_q3(plan):
    assert look(NOW + 180 * SECOND) == []
    age_out = 180 * SECOND + TICK
    assert look(NOW + 400 * SECOND) == [on_plan(age_out, "usable>stale", "quota_stale", "time")]


def test_a_look_that_comes_hours_late_tells_every_instant_that_passed_q1_q3(plan):
    rest(plan, until=NOW + MINUTE)
    assert look(NOW + SECOND) == [
        on_plan(AT_ONCE, "usable>cooldown", "cooldown", "cooldown"),
        *climbs(AT_ONCE, "cooldown"),
    ]
    assert look(NOW + 300 * MINUTE) == [
        on_plan(MINUTE, "cooldown>usable", None, "cooldown"),
        *comes_back(MINUTE, "cooldown"),
        on_plan(180 * SECOND + TICK, "usable>stale", "quota_stale", "time"),
        on_plan(60 * MINUTE, "stale>pending", "reset_pending", "reset"),
    ]


def test_a_plan_used_up_climbs_its_reset_brings_it_back_and_a_reading_proves_it(plan):
    read(1, NOW + SECOND)
    assert look(NOW + 5 * SECOND) == [
        on_plan(SECOND, "usable>exhausted", "quota_exhausted", "reading"),
        *climbs(SECOND, "reading"),
    ]
    stale, reset = 181 * SECOND + TICK, 60 * MINUTE
    assert look(NOW + 61 * MINUTE) == [
        on_plan(stale, "exhausted>stale", "quota_stale", "time"),
        *comes_back(stale, "time"),
        on_plan(reset, "stale>pending", "reset_pending", "reset"),
    ]
    read(4, NOW + 62 * MINUTE, reset_at=NOW + 300 * MINUTE)
    later = 62 * MINUTE
    assert look(NOW + later + SECOND) == [
        on_plan(later, "pending>held", "held_for_reentry", "reading"),
        *climbs(later, "reading"),
    ]
    read(60, NOW + 63 * MINUTE, reset_at=NOW + 300 * MINUTE)
    later = 63 * MINUTE
    assert look(NOW + later + SECOND) == [on_plan(later, "held>usable", None, "reading"), *comes_back(later, "reading")]


def test_a_reading_that_only_confirms_flips_nothing_and_keeps_the_old_one_from_ageing_out(plan):
    for minute in range(1, 10):
        read(50, NOW + minute * MINUTE)
    assert look(NOW + 10 * MINUTE) == []


def test_a_cooldown_that_an_operator_sets_or_clears_is_an_operators_act_c3(plan):
    rest(plan, until=NOW + 50 * MINUTE)
    look(NOW + SECOND)
    clear_cooldowns(connection=plan, causes=None, now=NOW + 2 * SECOND, **BY)
    later = 2 * SECOND
    assert look(NOW + 3 * SECOND) == [
        on_plan(later, "cooldown>usable", None, "operator"),
        *comes_back(later, "operator"),
    ]
    rest(plan, until=None, cause=CooldownCause.OPERATOR, now=NOW + 4 * SECOND)
    assert look(NOW + 5 * SECOND)[0] == on_plan(4 * SECOND, "usable>cooldown", "cooldown", "operator")


def test_a_quota_cooldown_that_readings_lifted_is_told_as_a_readings_c3(plan):
    rest(plan, until=NOW + 50 * MINUTE, cause=CooldownCause.QUOTA)
    look(NOW + SECOND)
    read(60, NOW + 2 * SECOND)
    clear_cooldowns(connection=plan, causes=[CooldownCause.QUOTA], now=NOW + 2 * SECOND, **BY)
    assert look(NOW + 3 * SECOND)[0] == on_plan(2 * SECOND, "cooldown>usable", None, "reading")


def test_a_breaker_flips_when_it_opens_and_at_the_instant_it_closes(plan):
    with deciding_write():
        BreakerFactory(provider="claude", open_until=NOW + MINUTE)
    assert look(NOW + SECOND)[0] == on_plan(SECOND, "usable>breaker", "breaker_open", "cooldown")
    assert look(NOW + 2 * MINUTE)[0] == on_plan(MINUTE, "breaker>usable", None, "cooldown")
    assert Breaker.objects.count() == 1


def test_a_changed_setting_is_the_cause_even_of_a_held_state_it_makes_q5(plan):
    read(4, NOW + SECOND)
    assert look(NOW + 2 * SECOND) == []
    change_settings(NOW + 3 * SECOND, exit_cutoff_percent=Decimal(10))
    later = 3 * SECOND
    assert look(NOW + 4 * SECOND) == [
        on_plan(later, "usable>exhausted", "quota_exhausted", "setting"),
        *climbs(later, "setting"),
    ]
    change_settings(NOW + 5 * SECOND, exit_cutoff_percent=Decimal(2))
    assert look(NOW + 6 * SECOND)[0] == on_plan(5 * SECOND, "exhausted>usable", None, "setting")
    assert LadderSettings.objects.get().exit_cutoff_percent == 2


def test_an_operator_who_pauses_mutes_or_marks_is_the_cause(plan):
    update_connection(connection=plan, changes={"is_enabled": False}, now=NOW + SECOND, **BY)
    assert look(NOW + SECOND)[0] == on_plan(SECOND, "usable>off", "connection_disabled", "operator")
    update_connection(connection=plan, changes={"is_enabled": True}, now=NOW + 2 * SECOND, **BY)
    assert look(NOW + 2 * SECOND)[0] == on_plan(2 * SECOND, "off>usable", None, "operator")
    mark_exhausted(connection=plan, window=None, reset_at=None, now=NOW + 3 * SECOND, **BY)
    assert look(NOW + 3 * SECOND)[0] == on_plan(3 * SECOND, "usable>exhausted", "quota_exhausted", "operator")
    update_window(window=plan.windows.get(), changes={"is_muted": True}, now=NOW + 4 * SECOND, **BY)
    assert look(NOW + 4 * SECOND)[0] == on_plan(4 * SECOND, "exhausted>unverified", "quota_unverified", "operator")


def test_a_budget_of_zero_switches_a_rung_off_and_is_the_cause_m1(plan):
    budget(Decimal(0), NOW + SECOND)
    off = (SECOND, "key", "cheap", "usable>off", "rung_disabled", "budget")
    assert look(NOW + 2 * SECOND) == [off]
    budget(None, NOW + 3 * SECOND)
    assert look(NOW + 4 * SECOND) == [(3 * SECOND, "key", "cheap", "off>usable", None, "budget")]


def test_a_recurated_tier_moves_a_connection_between_rungs_g(plan):
    with deciding_write():
        TierOverrideFactory(provider="openrouter", model_pattern=None, tier="premium")
    assert look(NOW + SECOND) == [
        (SECOND, "key", "cheap", "usable>", None, "catalogue"),
        (SECOND, "key", "premium", ">usable", None, "catalogue"),
    ]


def test_a_price_that_starts_by_itself_moves_a_connection_at_its_instant_t(plan):
    with deciding_write():
        ModelPriceFactory(provider="openrouter", model="later", input_usd_per_million=9, effective_from=NOW + MINUTE)
    assert look(NOW + 5 * SECOND) == []
    assert look(NOW + 2 * MINUTE) == [(MINUTE, "key", "premium", ">usable", None, "catalogue")]


def test_a_connection_that_is_made_or_deleted_comes_and_goes_and_a_new_one_of_its_id_is_another_spec_3(plan):
    create_connection(connection_id="more", provider="claude", auth_type="oauth", now=NOW, **BY)
    made = (AT_ONCE, "more", "subscription", ">unverified", "quota_unverified", "operator")
    assert look(NOW + SECOND) == [made]
    old = Connection.objects.get(connection_id="more")
    delete_connection(connection=old, now=NOW + 2 * SECOND, **BY)
    create_connection(connection_id="more", provider="claude", auth_type="oauth", now=NOW + 2 * SECOND, **BY)
    assert look(NOW + 3 * SECOND) == [
        (2 * SECOND, "more", "subscription", "unverified>", None, "operator"),
        (2 * SECOND, "more", "subscription", ">unverified", "quota_unverified", "operator"),
    ]
    assert list(RungFlip.objects.order_by("id").values_list("connection", flat=True))[1] == old.pk


def test_where_nothing_changed_nothing_is_written(plan):
    before = TimelineCursor.objects.values().get()
    with CaptureQueriesContext(
        database,
    ) as queries:
        assert note_flips(now=NOW + 100 * SECOND) == 0
    assert [query["sql"].split()[0] for query in queries] == ["SELECT", "SELECT"]
    assert TimelineCursor.objects.values().get() == before


def test_a_clock_within_the_tolerated_skew_waits_and_one_set_back_starts_anew_spec_6(plan):
    look(NOW + 400 * SECOND)
    update_connection(connection=plan, changes={"is_enabled": False}, now=NOW, **BY)
    assert look(NOW + 341 * SECOND) == []
    off = on_plan(100 * SECOND, "stale>off", "connection_disabled", "operator")
    assert off in look(NOW + 100 * SECOND)
    update_connection(connection=plan, changes={"is_enabled": True}, now=NOW, **BY)
    assert look(NOW + 101 * SECOND)[0] == on_plan(100 * SECOND + TICK, "off>usable", None, "operator")


def test_an_instant_that_a_clock_set_back_reaches_again_stands_as_it_was_noted(plan):
    look(NOW + 400 * SECOND)
    assert look(NOW + 100 * SECOND) == [on_plan(100 * SECOND, "stale>usable", None, "time")]
    assert note_flips(now=NOW + 400 * SECOND) == 1
    assert RungFlip.objects.filter(to_state="stale").count() == 1


def die_at_the_flips(execute, sql, params, many, context):
    if 'INTO "ladder_rungflip"' in sql:
        raise ConnectionError("the process dies here")
    return execute(sql, params, many, context)


def test_a_look_that_dies_while_it_writes_loses_nothing_and_writes_nothing_twice(plan):
    before = TimelineCursor.objects.values().get()
    with pytest.raises(ConnectionError), database.execute_wrapper(die_at_the_flips):
        note_flips(now=NOW + 400 * SECOND)
    assert (TimelineCursor.objects.values().get(), RungFlip.objects.count()) == (before, 0)
    assert look(NOW + 405 * SECOND) == [on_plan(180 * SECOND + TICK, "usable>stale", "quota_stale", "time")]


def test_flips_are_read_by_span_kind_and_connection(plan):
    read(1, NOW + SECOND)
    look(NOW + 5 * SECOND)
    look(NOW + 10 * MINUTE)
    span = {"start": NOW + SECOND, "end": NOW + 181 * SECOND + TICK}
    assert flips_between(**span).count() == 3
    assert [flip.rung for flip in flips_between(kind="rung", **span)] == ["subscription", "cheap"]
    assert [flip.to_state for flip in flips_between(connection=plan, **span)] == ["exhausted"]
    assert flips_between(start=NOW, end=span["start"]).count() == 0
