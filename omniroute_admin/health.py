"""`/healthz` (alive) and `/readyz` (can decide), for load balancers and container engines, without a key (SPEC 4)."""

from collections.abc import Callable

from django.db import Error
from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from omniroute_admin.common import clock
from omniroute_admin.common.selectors.heartbeat import PeriodicState, periodic_work
from omniroute_admin.selectors.health import unapplied_migrations


class HealthUnderAnyName:
    """Lets a health check ask under any host name: a load balancer knows the address of this process only.

    Its answer depends on no name. Stands first in the list, before anything that looks at the name.
    """

    # Whoever collects metrics knows as little, and shows a key.
    _PATHS = frozenset({"/healthz", "/readyz", "/metrics"})

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer the request, a health check under this machine's own name."""
        if request.path_info in self._PATHS:
            request.META["HTTP_HOST"] = "localhost"
        return self.get_response(request)


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
        work = periodic_work(now=clock.now(), started_at=clock.STARTED_AT)
    except Error:
        return _not_ready("database_unreachable", "the database does not answer")
    is_late = work.state is PeriodicState.LATE
    beat = {"last_beat_at": work.last_beat_at, "is_late": is_late, "state": work.state}
    return JsonResponse({"status": "ready", "periodic_work": beat})


def _not_ready(code: str, detail: str) -> JsonResponse:
    return JsonResponse({"status": "not_ready", "code": code, "detail": detail}, status=503)
