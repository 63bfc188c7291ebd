from datetime import timedelta

import pytest

from ladder.core.values import CooldownCause
from ladder.models import Cooldown
from ladder.services.cooldowns import clear_cooldowns, set_cooldown
from omniroute_admin.common.selectors.revision import current_revision
from tests.factories import ConnectionFactory, CooldownFactory
from tests.factories_ladder import NOW, OPERATOR, REPORTER

pytestmark = pytest.mark.django_db

MINUTE = timedelta(minutes=1)


@pytest.fixture
def connection():
    return ConnectionFactory()


def report(connection, *, asked=10, effective=None, at=0, model=None, cause=CooldownCause.QUOTA, now=NOW, **fields):
    """Set a cooldown; ends and the instant of the report are minutes after NOW, None meaning until cleared."""
    told = {"set_by": "router", "origin": f"report {at}", "failure_count": 1} | fields
    return set_cooldown(
        connection=connection,
        model=model,
        cause=cause,
        asked_until=None if asked is None else NOW + asked * MINUTE,
        effective_until=None if asked is None else NOW + (asked if effective is None else effective) * MINUTE,
        reported_at=NOW + at * MINUTE,
        actor=REPORTER,
        reason="",
        now=now,
        **told,
    )


def test_two_instants_are_kept_and_why_by_whom_and_from_which_report_c2(connection):
    kept = report(connection, asked=30, effective=20)
    row = Cooldown.objects.get()
    assert row == kept
    assert (row.asked_until, row.effective_until) == (NOW + 30 * MINUTE, NOW + 20 * MINUTE)
    assert (row.cause, row.set_by, row.origin, row.reported_at) == ("quota", "router", "report 0", NOW)
    assert row.history.get().history_actor == REPORTER.name


def test_a_longer_cooldown_extends_the_first_c5(connection):
    report(connection, asked=10)
    report(connection, asked=30, at=1, failure_count=2)
    row = Cooldown.objects.get()
    assert (row.effective_until, row.origin, row.failure_count) == (NOW + 30 * MINUTE, "report 1", 2)


def test_a_shorter_cooldown_does_not_shorten_it_but_counts_as_the_last_report_c5(connection):
    report(connection, asked=30)
    report(connection, asked=10, at=1, failure_count=2)
    row = Cooldown.objects.get()
    assert (row.asked_until, row.effective_until) == (NOW + 30 * MINUTE, NOW + 30 * MINUTE)
    assert (row.origin, row.reported_at, row.failure_count) == ("report 0", NOW + MINUTE, 2)


def test_until_cleared_is_longer_than_any_instant_c5(connection):
    report(connection, asked=30, cause=CooldownCause.AUTH)
    report(connection, asked=None, cause=CooldownCause.AUTH, at=1)
    report(connection, asked=60, cause=CooldownCause.AUTH, at=2)
    assert Cooldown.objects.get().effective_until is None


def test_one_that_is_over_is_replaced(connection):
    report(connection, asked=30, effective=2)
    report(connection, asked=10, at=2, now=NOW + 2 * MINUTE)
    row = Cooldown.objects.get()
    assert (row.asked_until, row.effective_until, row.origin) == (NOW + 10 * MINUTE, NOW + 10 * MINUTE, "report 2")


def test_one_is_kept_per_connection_model_and_cause_c3(connection):
    for other in (connection, ConnectionFactory()):
        for model in (None, "opus"):
            for cause in (CooldownCause.QUOTA, CooldownCause.BAN):
                report(other, model=model, cause=cause)
                report(other, model=model, cause=cause, at=1)
    assert Cooldown.objects.count() == 8


def test_the_same_report_twice_changes_nothing(connection):
    report(connection)
    before = current_revision()
    report(connection)
    assert (current_revision(), Cooldown.history.count()) == (before, 1)


def test_clearing_is_an_operators_act_with_a_history_c3(connection):
    for cause in ("quota", "auth"):
        CooldownFactory(connection=connection, cause=cause)
    other = CooldownFactory()
    before = current_revision()
    fields = {"connection": connection, "actor": OPERATOR, "reason": "paid the bill", "now": NOW}
    assert clear_cooldowns(causes=[CooldownCause.AUTH], **fields) == 1
    assert set(Cooldown.objects.values_list("cause", flat=True)) == {"quota"}
    assert clear_cooldowns(causes=None, **fields) == 1
    assert list(Cooldown.objects.all()) == [other]
    acts = Cooldown.history.filter(history_type="-")
    assert {(act.history_actor, act.history_change_reason, act.history_date) for act in acts} == {
        (OPERATOR.name, "paid the bill", NOW)
    }
    assert current_revision() == before + 2


def test_clearing_nothing_leaves_the_revision(connection):
    before = current_revision()
    assert clear_cooldowns(connection=connection, causes=None, actor=OPERATOR, reason="", now=NOW) == 0
    assert current_revision() == before
