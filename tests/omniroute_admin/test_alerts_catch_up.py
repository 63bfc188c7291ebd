"""SPEC 6: the broker stops. Alerts are late then, and each is raised and resolved once all the same."""

import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from ladder.models import Alert, AlertDelivery
from omniroute_admin.common import clock
from omniroute_admin.programs import programs_to_run
from tests.factories import AlertRuleFactory
from tests.ladder.services.alerting import SECRET, a_plan, hooks, kinds
from tests.processes import running, until


@pytest.mark.redis
@pytest.mark.skipif(shutil.which("redis-server") is None, reason="redis-server is not installed")
def test_redis_stops_and_what_happened_meanwhile_is_told_once_afterwards(
    tmp_path: Path, database_url: str, settings: Any
) -> None:
    socket = tmp_path / "redis.sock"
    redis = ["redis-server", "--port", "0", "--unixsocket", str(socket), "--save", "", "--dir", str(tmp_path)]
    AlertRuleFactory()
    with hooks(settings, "hook") as receiver, ExitStack() as stack:
        own = {
            "DATABASE_URL": database_url,
            "VAR_DIR": str(tmp_path),
            "CELERY_BROKER_URL": f"redis+socket://{socket}",
            "ALERT_CHANNEL_HOOK": f"http://{receiver.place}/hook",
            "ALERT_WEBHOOK_SECRET": SECRET,
        }
        with running(redis, tmp_path / "redis.log"):
            until(socket.exists, "Redis")
            _, *celery = programs_to_run(host="127.0.0.1", port=1, workers=1)
            for program in celery:
                stack.enter_context(running(program.command, tmp_path / f"{program.name}.log", **own))
            until(lambda: kinds(receiver) == ["raised"] or None, "the raise")
        a_plan(clock.now())
        assert Alert.objects.filter(resolved_at=None).count() == 1
        with running(redis, tmp_path / "redis.log"):
            until(lambda: kinds(receiver) == ["raised", "resolved"] or None, "the resolve")
            sent = AlertDelivery.objects.filter(state="sent", attempts=1)
            until(lambda: sent.count() == 2 or None, "both noted")
    assert kinds(receiver) == ["raised", "resolved"]
    assert Alert.objects.get().resolved_at is not None
