"""`/healthz` (alive) and `/readyz` (can decide), for load balancers and container engines, without a key (SPEC 4)."""

from django.db import Error
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from omniroute_admin.common.clock import now
from omniroute_admin.selectors.health import PeriodicState, periodic_work, unapplied_migrations

STARTED_AT = now()
"""When this process was started: the web server loads every view before its first request."""


@never_cache
@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """Answer 200 as long as the process answers at all; the database is not asked."""
    return JsonResponse({"status": "alive"})


@never_cache
@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """Answer 200 where a decision is possible, else 503 with the reason.

    Periodic work is reported and does not count: decisions go on without it (SPEC 6).
    """
    try:
        missing = unapplied_migrations()
        if missing:
            return _not_ready("migrations_missing", f"run manage.py migrate: {len(missing)} to apply")
        work = periodic_work(now=now(), started_at=STARTED_AT)
    except Error:
        return _not_ready("database_unreachable", "the database does not answer")
    is_late = work.state is PeriodicState.LATE
    beat = {"last_beat_at": work.last_beat_at, "is_late": is_late, "state": work.state}
    return JsonResponse({"status": "ready", "periodic_work": beat})


def _not_ready(code: str, detail: str) -> JsonResponse:
    return JsonResponse({"status": "not_ready", "code": code, "detail": detail}, status=503)
