"""The movement of the demo fleet is a function of the instant: the same everywhere, with resets ahead."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from ladder.core.demo.fleet import FLEET
from ladder.core.demo.moves import STEP, cooldowns_at, first_readings, readings_at, step_of
from ladder.core.values import CooldownCause

NOW = datetime(2026, 8, 22, 12, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)
instants = st.timedeltas(timedelta(0), timedelta(days=30_000)).map(
    lambda after: datetime(2020, 1, 1, tzinfo=UTC) + after
)


def seen_at(instant):
    return {(one.connection_id, one.window): one for one in readings_at(fleet=FLEET, instant=instant)}


def percent_at(window, seconds, connection_id):
    reading = seen_at(NOW + seconds * SECOND).get((connection_id, window))
    return reading and reading.remaining_percent


@given(instant=instants, offset=st.timedeltas(timedelta(0), STEP - timedelta(microseconds=1)))
@settings(deadline=None)
def test_every_process_within_one_step_sees_the_same(instant, offset):
    assert readings_at(fleet=FLEET, instant=step_of(instant)) == readings_at(
        fleet=FLEET, instant=step_of(instant) + offset
    )


@given(instant=instants)
@settings(deadline=None)
def test_percent_is_remaining_and_every_reset_lies_ahead_spec_1(instant):
    for one in seen_at(instant).values():
        assert one.observed_at == step_of(instant) <= instant
        assert one.remaining_percent is None or 0 <= one.remaining_percent <= 100
        assert one.reset_at is None or one.reset_at > one.observed_at


@given(instant=instants)
@settings(deadline=None)
def test_a_connection_is_seen_whole_or_not_at_all(instant):
    seen = Counter(name for name, _ in seen_at(instant))
    assert all(seen[one.connection_id] in {0, len(one.windows)} for one in FLEET)


def test_a_window_is_used_up_bit_by_bit_and_back_after_its_reset():
    # Noon lies on a cycle's beginning of six minutes.
    seen = [percent_at("5h", seconds, "demo-claude-2") for seconds in (0, 60, 120, 170, 180, 270, 350, 360, 420)]
    percents = (None, "99", "50", "9.16", "1", "0.5", "0.05", None, "99")
    assert seen == [None if one is None else Decimal(one) for one in percents]


def test_a_window_that_dips_to_one_percent_comes_back_to_four():
    seen = {percent_at("5h", seconds, "demo-claude-3") for seconds in range(0, 480, 10)}
    assert {Decimal(1), Decimal(4)} <= seen
    assert max(seen) == 100


def test_the_reset_is_the_end_of_the_cycle_and_weeks_begin_on_mondays():
    seen = seen_at(NOW + 100 * SECOND)
    assert seen["demo-claude-2", "5h"].reset_at == NOW + 360 * SECOND
    assert seen["demo-claude-2", "weekly"].reset_at == datetime(2026, 8, 24, tzinfo=UTC)


def test_what_is_read_once_is_in_no_later_reading():
    once = first_readings(fleet=FLEET, observed_at=NOW)
    assert {one.connection_id for one in once} == {"demo-codex-2"}
    assert not any(name == "demo-codex-2" for name, _ in seen_at(NOW))


def cooldowns(seconds):
    found = cooldowns_at(fleet=FLEET, instant=NOW + seconds * SECOND, within=50 * SECOND)
    return {one.cause: one for one in found}


def test_a_quota_cooldown_is_cut_at_the_reset_and_a_rate_limit_is_not_c1():
    # Noon lies on the beginning of both cycles.
    quota = cooldowns(315)[CooldownCause.QUOTA]
    assert quota.reported_at == NOW + 310 * SECOND
    assert quota.asked_until == quota.reported_at + 1800 * SECOND
    assert quota.effective_until == NOW + 540 * SECOND == seen_at(NOW + 315 * SECOND)["demo-codex-1", "5h"].reset_at
    limit = cooldowns(60)[CooldownCause.RATE_LIMIT]
    assert limit.effective_until == limit.asked_until == NOW + 140 * SECOND


def test_a_cooldown_is_reported_when_it_begins_and_not_again():
    reported = [seconds for seconds in range(0, 240, 10) if CooldownCause.RATE_LIMIT in cooldowns(seconds)]
    assert reported == [60, 70, 80, 90, 100]


def test_every_connection_of_the_fleet_is_marked_as_demo():
    assert all(one.label.startswith("demo: ") for one in FLEET)
    assert [one.connection_id for one in FLEET if not one.connection_id.startswith("demo-")] == ["noauth"]
