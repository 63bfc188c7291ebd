"""Budgets: windows of local days (M3), editing (M4), resetting (M9), and what spend closes (M1, M2)."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from ladder.api.pools import known_pool
from ladder.core.pool import build_pool
from ladder.core.values import PoolOptions, Rung
from ladder.models import RungBudget, UsageEvent
from ladder.selectors.ledger import read_budgets
from ladder.selectors.state import get_snapshot
from ladder.services.budgets import reset_budget
from ladder.services.settings import BudgetChanges, BudgetsChanges, SettingsChanges, update_settings
from omniroute_admin.common.errors import NotFound
from omniroute_admin.common.selectors.revision import current_revision
from tests.factories_ladder import NOW, OPERATOR
from tests.ladder.services.booking import HOUR, SECOND, event, make_ladder, record, set_budget, spent, usd

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)
TICK = timedelta(microseconds=1)
BERLIN = ZoneInfo("Europe/Berlin")
BY = {"actor": OPERATOR, "reason": "a test"}


@pytest.fixture(autouse=True)
def ladder(db):
    make_ladder()


def local(text):
    return datetime.fromisoformat(text).replace(tzinfo=BERLIN).astimezone(UTC)


def change_budget(now=NOW, **fields):
    changes = SettingsChanges(rung_budgets=BudgetsChanges(cheap=BudgetChanges(**fields)))
    return update_settings(changes=changes, **BY, now=now)


def reset(now, rung="cheap"):
    return reset_budget(rung=rung, **BY, now=now)


def state_of(model, now):
    """Return how a pool answers for the paid connection and a model: its rung, or the code that keeps it out."""
    pool = build_pool(
        snapshot=get_snapshot(now=now),
        pool_id=known_pool("auto/thrifty"),
        candidates=None,
        options=PoolOptions(explain=True),
        now=now,
    )
    found = [entry.rung for entry in pool.candidates if entry.model == model]
    return found or [(left.code, left.returns_at) for left in pool.excluded if left.model == model]


@pytest.mark.parametrize(("day", "hours"), [("2026-03-29", 23), ("2026-10-25", 25), ("2026-06-01", 24)])
def test_a_local_day_is_one_day_of_23_or_25_hours_too_m3(day, hours):
    set_budget(zone="Europe/Berlin")
    start = local(f"{day} 00:00:00")
    end = start + hours * HOUR
    costs = {"before": start - TICK, "first": start, "last": end - TICK, "after": end}
    told = datetime(2026, 11, 1, tzinfo=UTC)
    record(*(event(name, f"0.{number}1", at=at) for number, (name, at) in enumerate(costs.items())), now=told)
    # 0.11 and 0.21 are of the day.
    assert (spent(now=start), spent(now=end - TICK)) == (usd("0.32"), usd("0.32"))
    assert (spent(now=start - TICK), spent(now=end)) == (usd("0.01"), usd("0.31"))
    budget = read_budgets(now=start + HOUR)[Rung.CHEAP]
    assert (budget.window_start, budget.window_end) == (start, end)


def test_zero_none_and_an_amount_are_three_different_things_m1():
    now = NOW + 30 * SECOND
    record(event(cost="1.00"))
    set_budget(amount=None)
    assert state_of("small", now) == ["cheap"]
    change_budget(amount_usd=usd("0"))
    assert state_of("small", now) == [("rung_disabled", None)]
    change_budget(amount_usd=usd("1.000001"))
    assert state_of("small", now) == ["cheap"]
    change_budget(amount_usd=usd("1"))
    end = datetime(2026, 8, 23, tzinfo=UTC)
    assert state_of("small", now) == [("budget_spent", end)]
    assert state_of("small", end) == ["cheap"]
    change_budget(amount_usd=None)
    assert state_of("small", now) == ["cheap"]


def test_a_decision_after_the_event_that_spends_the_budget_sees_it_m2():
    set_budget(amount="1.00")
    now = NOW + 30 * SECOND
    assert state_of("small", now) == ["cheap"]
    record(event("e1", "0.60"))
    assert state_of("small", now) == ["cheap"]
    record(event("e2", "0.40"))
    assert state_of("small", now)[0][0] == "budget_spent"
    record(event("e3", "0.39", corrects_event_id="e2"))
    assert state_of("small", now) == ["cheap"]


def test_spend_at_2359_of_the_25_hour_day_closes_the_rung_till_its_midnight_m3():
    set_budget(amount="1.00", zone="Europe/Berlin")
    late, midnight = local("2026-10-25 23:59:00"), local("2026-10-26 00:00:00")
    assert midnight - local("2026-10-25 00:00:00") == 25 * HOUR
    record(event(cost="1.00", at=late), now=late)
    assert state_of("small", late) == [("budget_spent", midnight)]
    assert state_of("small", midnight - TICK) == [("budget_spent", midnight)]
    assert state_of("small", midnight) == ["cheap"]


def test_a_window_turns_although_nothing_is_written_m3():
    set_budget(amount="1.00")
    midnight = datetime(2026, 8, 23, tzinfo=UTC)
    record(event("e1", "0.99", at=midnight - SECOND), event("e2", "0.01", at=midnight), now=midnight - SECOND)
    assert state_of("small", midnight - SECOND) == ["cheap"]
    record(event("e3", "0.99", at=midnight), now=midnight - SECOND)
    assert state_of("small", midnight - SECOND) == ["cheap"]
    assert state_of("small", midnight)[0][0] == "budget_spent"


def test_changing_the_amount_keeps_window_and_usage_m4():
    set_budget(amount="1.00")
    record(event(cost="0.60"))
    before = read_budgets(now=NOW)[Rung.CHEAP]
    change_budget(amount_usd=usd("5"))
    after = read_budgets(now=NOW)[Rung.CHEAP]
    assert (after.window_start, after.window_end, after.spent_usd) == (
        before.window_start,
        before.window_end,
        before.spent_usd,
    )


def test_changing_period_weekday_or_zone_works_the_window_out_anew_m4():
    """2026-08-22 is a Saturday."""
    set_budget(amount="1.00")
    ago = {"today": 0, "thursday": 2, "monday": 5, "last-sunday": 6, "july": 30}
    record(*(event(name, f"0.{10 + number}", at=NOW - days * DAY) for number, (name, days) in enumerate(ago.items())))
    told = {"daily": spent()}
    change_budget(period="weekly")
    told["weekly"] = spent()
    change_budget(week_starts_on="thursday")
    told["from thursday"] = spent()
    change_budget(period="monthly")
    told["monthly"] = spent()
    change_budget(period="daily", zone="Pacific/Kiritimati")  # already Sunday there, since 10:00 UTC
    told["there"] = spent(now=NOW)
    assert told == {
        "daily": usd("0.10"),
        "weekly": usd("0.10") + usd("0.11") + usd("0.12"),
        "from thursday": usd("0.10") + usd("0.11"),
        "monthly": usd("0.10") + usd("0.11") + usd("0.12") + usd("0.13"),
        "there": usd("0.10"),
    }


def test_a_reset_starts_the_count_again_and_keeps_every_row_m9():
    set_budget(amount="1.00")
    record(event("e1", "1.00"))
    at = NOW + HOUR
    assert state_of("small", at)[0][0] == "budget_spent"
    budget = reset(at)
    assert (budget.spent_usd, budget.window_start) == (0, at)
    assert state_of("small", at) == ["cheap"]
    assert UsageEvent.objects.count() == 1
    record(event("e2", "0.10", at=at), event("e3", "0.20", at=at - TICK), now=at + HOUR)
    assert spent(now=at) == usd("0.10")


def test_a_reset_moves_no_later_window_m9():
    set_budget(amount="1.00")
    before = read_budgets(now=NOW)[Rung.CHEAP].window_end
    reset(NOW + HOUR)
    assert read_budgets(now=NOW + 2 * HOUR)[Rung.CHEAP].window_end == before
    later = read_budgets(now=NOW + DAY)[Rung.CHEAP]
    assert (later.window_start, later.window_end) == (before, before + DAY)


def test_a_reset_is_of_one_rung_and_is_history_with_who_and_why_m9():
    before = current_revision()
    reset(NOW + HOUR)
    assert current_revision() == before + 1
    cheap, premium = (RungBudget.objects.get(rung=rung) for rung in ("cheap", "premium"))
    assert (cheap.counted_from, premium.counted_from) == (NOW + HOUR, None)
    act = cheap.history.latest("history_id")
    assert (act.history_actor, act.history_change_reason, act.history_date) == (OPERATOR.name, "a test", NOW + HOUR)


def test_the_correction_of_what_was_before_a_reset_counts_there_m9():
    record(event("e1", "1.00"))
    reset(NOW + HOUR)
    record(event("c1", "3.00", at=NOW + 2 * HOUR, corrects_event_id="e1"), now=NOW + 2 * HOUR)
    assert spent(now=NOW + 2 * HOUR) == 0


@pytest.mark.parametrize("rung", ["subscription", "free", "seventh", ""])
def test_a_rung_without_a_budget_has_nothing_to_reset(rung):
    with pytest.raises(NotFound):
        reset(NOW, rung)
