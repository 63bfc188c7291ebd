"""How periodic tasks ended, as it is kept."""

from datetime import timedelta

import pytest

from omniroute_admin.common.models import TaskRun
from omniroute_admin.services.heartbeats import record_run
from tests.factories_ladder import NOW

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)


def test_success_and_failure_are_kept_apart_and_failures_are_counted() -> None:
    record_run(task="t", is_success=True, took_seconds=0.0401, now=NOW)
    record_run(task="t", is_success=False, took_seconds=1, now=NOW + MINUTE)
    record_run(task="t", is_success=False, took_seconds=2, now=NOW + 2 * MINUTE)
    record_run(task="t", is_success=True, took_seconds=0.25, now=NOW + 3 * MINUTE)
    record_run(task="other", is_success=True, took_seconds=0, now=NOW)
    run = TaskRun.objects.get(name="t")
    assert (run.succeeded_at, run.failed_at) == (NOW + 3 * MINUTE, NOW + 2 * MINUTE)
    assert (run.failures, run.took_milliseconds) == (2, 250)
    assert TaskRun.objects.get(name="other").failures == 0
