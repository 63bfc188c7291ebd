"""/healthz says alive, /readyz says able to decide (SPEC 4), and every page is under the strict policy."""

from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.conf import settings
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client

from omniroute_admin.common import clock
from omniroute_admin.common.selectors.heartbeat import periodic_work
from omniroute_admin.services.heartbeats import record_beat
from omniroute_admin.tasks import beat_heartbeat

NOW = datetime(2026, 8, 22, 12, 0, tzinfo=UTC)


def test_alive_needs_no_database(client: Client) -> None:
    answer = client.get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "alive"})
    assert "no-store" in answer["Cache-Control"]


@pytest.mark.django_db
@pytest.mark.parametrize(("age", "state"), [(0, "starting"), (60, "starting"), (61, "late")])
def test_ready_without_periodic_work_says_so_and_is_ready_all_the_same(client: Client, age: int, state: str) -> None:
    with time_machine.travel(clock.STARTED_AT + timedelta(seconds=age), tick=False):
        answer = client.get("/readyz")
    assert answer.status_code == 200
    work = {"last_beat_at": None, "is_late": state == "late", "state": state}
    assert answer.json() == {"status": "ready", "periodic_work": work}


@pytest.mark.django_db
def test_a_heartbeat_shows_that_periodic_work_runs(client: Client) -> None:
    beat_heartbeat.delay()
    work = client.get("/readyz").json()["periodic_work"]
    assert work["last_beat_at"] is not None
    assert (work["is_late"], work["state"]) == (False, "running")


@pytest.mark.django_db
@pytest.mark.parametrize(("missed", "state"), [(0, "running"), (3, "running"), (4, "late")])
def test_a_heartbeat_is_late_after_more_than_three_missed_ones(missed: int, state: str) -> None:
    record_beat(name="beat", now=NOW - timedelta(days=1))
    record_beat(name="beat", now=NOW)
    looked_at = NOW + missed * timedelta(seconds=settings.HEARTBEAT_SECONDS)
    work = periodic_work(now=looked_at, started_at=NOW - timedelta(hours=1))
    assert (work.last_beat_at, work.state) == (NOW, state)


@pytest.mark.django_db
def test_the_last_beat_before_a_restart_makes_nobody_late_in_the_first_minute() -> None:
    record_beat(name="beat", now=NOW - timedelta(days=1))
    states = [periodic_work(now=NOW + timedelta(seconds=s), started_at=NOW).state for s in (-1, 0, 60, 61)]
    assert states == ["late", "starting", "starting", "late"]


@pytest.mark.django_db
def test_a_missing_migration_is_not_ready(client: Client) -> None:
    MigrationRecorder(connection).record_unapplied("common", "0001_initial")
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["code"]) == (503, "migrations_missing")


@pytest.mark.django_db(transaction=True)
def test_a_database_out_of_reach_is_not_ready_and_yet_alive(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    connection.close()
    monkeypatch.setitem(connection.settings_dict, "NAME", "/nowhere/at-all")
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["code"]) == (503, "database_unreachable")
    assert "nowhere" not in answer.content.decode()
    assert client.get("/healthz").status_code == 200
    connection.close()


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_a_health_page_takes_no_post(client: Client, path: str) -> None:
    assert client.post(path).status_code == 405


def test_the_content_policy_allows_nothing_inline_and_nothing_foreign(client: Client) -> None:
    policy = client.get("/healthz")["Content-Security-Policy"]
    directives = {part.split()[0]: part.split()[1:] for part in policy.split(";")}
    assert directives["default-src"] == directives["script-src"] == directives["style-src"] == ["'self'"]
    assert directives["frame-ancestors"] == directives["object-src"] == ["'none'"]
    assert "unsafe" not in policy
    assert "http" not in policy


@pytest.mark.django_db
@pytest.mark.parametrize("host", ["10.0.0.7:8080", "elsewhere.example", "a b", ""])
@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_a_health_check_may_ask_under_any_host_name(
    client: Client, caplog: pytest.LogCaptureFixture, path: str, host: str
) -> None:
    """A load balancer knows the address of a process and not its name; pages stay bound to the names allowed."""
    answer = client.get(path, headers={"host": host})
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/json")
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert caplog.records == []
    assert client.get("/login", headers={"host": "elsewhere.example"}).status_code == 400
