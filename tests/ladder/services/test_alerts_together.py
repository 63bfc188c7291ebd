"""Many workers at once: a condition is raised and resolved once, and a delivery is sent once."""

import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection, connections

from ladder.models import Alert, AlertDelivery
from ladder.services.alert_sending import send_next
from ladder.services.alerts import look_for_alerts
from omniroute_admin.common import clock
from tests.factories import AlertDeliveryFactory, AlertRuleFactory
from tests.factories_ladder import NOW
from tests.ladder.services.alerting import SECOND, SECRET, a_plan, bodies, hooks, look, read, send_all
from tests.processes import environment, until
from tests.shared import ROOT

pytestmark = pytest.mark.django_db(transaction=True)

WORKERS, ROUNDS = 4, 6


def together(act):
    """Let every worker act, round after round at the same time; what each returned, round by round."""
    gate = Barrier(WORKERS, timeout=60)

    def work(number):
        found = []
        try:
            for turn in range(ROUNDS):
                gate.wait()
                found.append(act(number, turn, gate))
        finally:
            connections.close_all()
        return found

    with ThreadPoolExecutor(WORKERS) as pool:
        return list(pool.map(work, range(WORKERS)))


def test_lookers_at_the_same_time_raise_and_resolve_each_condition_once():
    window = a_plan(NOW)
    rules = [AlertRuleFactory(channels=["hook", "mail"]) for _ in range(3)]

    def act(number, turn, gate):
        at = NOW + turn * SECOND
        if number == 0:
            read(window, 1 if turn % 2 == 0 else 90, at)
        gate.wait()
        return look_for_alerts(now=at)

    together(act)
    # Whoever lost the last race left it to the next look.
    look(NOW + ROUNDS * SECOND)
    for rule in rules:
        alerts = list(Alert.objects.filter(rule=rule).order_by("raised_at"))
        assert len(alerts) == ROUNDS // 2
        assert all(alert.resolved_at for alert in alerts)
    notices = Counter(AlertDelivery.objects.values_list("kind", "channel"))
    assert set(notices.values()) == {len(rules) * ROUNDS // 2}


def one_after_statement(number, at):
    """Look, and behind one statement let another look do all of its work; return how many statements there were."""
    done = []

    def other():
        try:
            look_for_alerts(now=at)
        finally:
            connections.close_all()

    def wrapper(execute, sql, params, many, context):
        found = execute(sql, params, many, context)
        # A look that writes holds the others off by itself.
        if len(done) == number and not (connection.in_atomic_block or sql.startswith("BEGIN")):
            with ThreadPoolExecutor(1) as pool:
                pool.submit(other).result(timeout=60)
        done.append(sql)
        return found

    with connection.execute_wrapper(wrapper):
        look_for_alerts(now=at)
    return len(done)


@pytest.mark.parametrize("looked_before", [True, False])
def test_a_look_whole_behind_any_statement_of_another_raises_and_resolves_once(looked_before):
    window, rule = a_plan(NOW), AlertRuleFactory(channels=["hook"])
    if looked_before:
        read(window, 1, NOW)
        look(NOW)
    number, total, raised = 0, 1, int(looked_before)
    while number < total:
        at = NOW + (number + 1) * SECOND
        is_over = Alert.objects.filter(resolved_at=None).exists()
        read(window, 90 if is_over else 1, at)
        raised += not is_over
        total = one_after_statement(number, at)
        look(at)
        assert (Alert.objects.count(), Alert.objects.filter(resolved_at=None).exists()) == (raised, not is_over), number
        number += 1
    assert number > 3
    assert AlertDelivery.objects.filter(kind="raised").count() == raised == Alert.objects.filter(rule=rule).count()


def test_senders_at_the_same_time_send_each_delivery_once(settings):
    with hooks(settings, "hook") as receiver:
        for _ in range(12):
            AlertDeliveryFactory()

        def act(number, turn, gate):
            return send_next(now=NOW)

        sent = [one for found in together(act) for one in found if one is not None]
        assert send_all(NOW) == [""] * (12 - len(sent))
    ids = [body["id"] for body in bodies(receiver)]
    assert (len(ids), len(set(ids))) == (12, 12)
    assert set(AlertDelivery.objects.values_list("state", "attempts")) == {("sent", 1)}


SEND = "from ladder.tasks import send_alerts; send_alerts()"
"""What a worker runs; eager or not, the task's own body."""


def worker(receiver, database_url, folder):
    command = [sys.executable, str(ROOT / "manage.py"), "shell", "--no-imports", "--command", SEND]
    own = environment(
        DATABASE_URL=database_url,
        VAR_DIR=str(folder),
        ALERT_CHANNEL_HOOK=f"http://{receiver.place}/hook",
        ALERT_WEBHOOK_SECRET=SECRET,
    )
    return subprocess.Popen(command, env=own, stderr=subprocess.PIPE, text=True)


def test_processes_at_the_same_time_send_each_delivery_once(settings, database_url, tmp_path):
    with hooks(settings, "hook") as receiver:
        for _ in range(6):
            AlertDeliveryFactory(at=clock.now(), next_attempt_at=clock.now())
        workers = [worker(receiver, database_url, tmp_path) for _ in range(2)]
        assert [one.communicate(timeout=90)[1] for one in workers] == ["", ""]
    ids = [body["id"] for body in bodies(receiver)]
    assert (len(ids), len(set(ids))) == (6, 6)
    assert set(AlertDelivery.objects.values_list("state", flat=True)) == {"sent"}


def test_a_worker_killed_while_it_sends_loses_nothing_and_its_notice_keeps_its_id(settings, database_url, tmp_path):
    with hooks(settings, "hook") as receiver:
        row = AlertDeliveryFactory(at=clock.now(), next_attempt_at=clock.now())
        receiver.may_answer.clear()
        sender = worker(receiver, database_url, tmp_path)
        until(lambda: receiver.requests, "the request of the worker")
        sender.kill()
        sender.communicate()
        row.refresh_from_db()
        assert (row.state, row.attempts) == ("queued", 1)
        receiver.may_answer.set()
        assert send_all(clock.now()) == [], "the attempt may still be under way"
        assert send_all(row.next_attempt_at) == [""]
    assert [body["id"] for body in bodies(receiver)] == [str(row.pk)] * 2
