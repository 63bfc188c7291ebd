"""The programs of an embedded installation, as `quickstart` runs them."""

import os
import sys

from django.conf import settings

from omniroute_admin.supervisor import Program


def programs_to_run(*, host: str, port: int, workers: int) -> list[Program]:
    """Return the three programs of the embedded installation. The scheduler is one of its own.

    Inside the worker a dead scheduler would go unnoticed.
    """
    celery = [sys.executable, "-m", "celery", "--quiet", "--app", "omniroute_admin.celery"]
    level = ["--loglevel", settings.LOG_LEVEL]
    quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    # Its lines in the form of all others: LOG_FORMAT.
    logs = ["--log-config", str(settings.BASE_DIR / "omniroute_admin" / "granian_log.json")]
    web = ["--interface", "rsgi", "--loop", "uvloop", "--workers", str(workers), "--respawn-failed-workers"]
    bound = ["--host", host, "--port", str(port), "--no-ws", "--workers-kill-timeout", "5"]
    return [
        Program("web", [sys.executable, "-m", "granian", *web, *bound, *logs, "omniroute_admin.rsgi:application"]),
        Program("worker", [*celery, "worker", "--pool", "solo", *quiet, *level]),
        # Without a file for its process id none can be left by a killed one and keep the next from starting.
        Program("beat", [*celery, "beat", "--pidfile=", *level]),
    ]


def child_environment() -> dict[str, str]:
    """Return the children's environment: this process's own, with the project on the import path."""
    paths = [str(settings.BASE_DIR), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "DJANGO_SETTINGS_MODULE": "omniroute_admin.settings"}
