"""Short ways to look at a small ladder in tests: a plan with a cheap key beside it, read, looked at, told in words."""

from datetime import timedelta
from decimal import Decimal

from ladder.core.values import CooldownCause
from ladder.models import Connection, RungFlip
from ladder.services.connections import create_connection
from ladder.services.cooldowns import set_cooldown
from ladder.services.reading_items import reading_item
from ladder.services.readings import record_readings
from ladder.services.settings import BudgetChanges, BudgetsChanges, SettingsChanges, update_settings
from ladder.services.timeline import note_flips
from omniroute_admin.common.selectors.revision import current_revision
from tests.factories import BillingEntryFactory, ModelPriceFactory
from tests.factories_ladder import NOW, OPERATOR, REPORTER

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
TICK = timedelta(microseconds=1)
AT_ONCE = timedelta(0)
BY = {"actor": OPERATOR, "reason": "a test"}


def make_plan():
    """A plan that is read at NOW, with a reset in an hour, and a cheap key beside it; the first look has been taken."""
    BillingEntryFactory(provider="claude", auth_type=None, billing="subscription", overage="hard-stop")
    BillingEntryFactory(provider="openrouter", auth_type=None, billing="metered", overage="meters-to-paid")
    ModelPriceFactory(provider="claude", model="opus", input_usd_per_million=Decimal(5))
    ModelPriceFactory(provider="openrouter", model="deepseek", input_usd_per_million=Decimal("0.5"))
    for connection_id, provider in (("plan", "claude"), ("key", "openrouter")):
        create_connection(connection_id=connection_id, provider=provider, auth_type="oauth", now=NOW, **BY)
    read(50, NOW)
    look(NOW)
    return Connection.objects.get(connection_id="plan")


def read(percent, at, *, reset_at=NOW + 60 * MINUTE):
    item = reading_item(
        connection_id="plan", window="5h", observed_at=at, remaining_percent=Decimal(percent), reset_at=reset_at
    )
    record_readings(items=[item], complete_for=[], actor=REPORTER, now=at)


def rest(row, *, until, cause=CooldownCause.RATE_LIMIT, now=NOW):
    set_cooldown(
        connection=row,
        model=None,
        cause=cause,
        asked_until=until,
        effective_until=until,
        set_by="router",
        origin="a report",
        reported_at=now,
        failure_count=1,
        actor=REPORTER,
        reason="",
        now=now,
    )


def told(flip):
    who = "rung" if flip.connection is None else flip.connection.connection_id
    return (flip.at - NOW, who, flip.rung, f"{flip.from_state}>{flip.to_state}", flip.code, flip.cause)


def look(at):
    """Look at an instant and return what was noted. No look moves the revision; the same again finds nothing."""
    before, known = current_revision(), set(RungFlip.objects.values_list("pk", flat=True))
    count = note_flips(now=at)
    new = [told(flip) for flip in RungFlip.objects.order_by("id") if flip.pk not in known]
    assert (count, note_flips(now=at), current_revision()) == (len(new), 0, before)
    return new


def on_plan(after, states, code, cause):
    return (after, "plan", "subscription", states, code, cause)


def climbs(after, cause):
    """The ladder goes from the plan to the next rung that has anyone."""
    return [
        (after, "rung", "subscription", "serving>idle", None, cause),
        (after, "rung", "cheap", "idle>serving", None, cause),
    ]


def comes_back(after, cause):
    return [
        (after, "rung", "subscription", "idle>serving", None, cause),
        (after, "rung", "cheap", "serving>idle", None, cause),
    ]


def change_settings(now, **changes):
    update_settings(changes=SettingsChanges(**changes), now=now, **BY)


def budget(amount, now):
    change_settings(now, rung_budgets=BudgetsChanges(cheap=BudgetChanges(amount_usd=amount)))
