"""One address that tells what a change would move before it is saved, for every form that asks it (SPEC 5, 3)."""

from datetime import datetime

from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from ladder.views.trial import try_out
from ladder.views.trials import TRIALS, settings_trial
from ladder.views.tuning import preview_of, show_preview
from omniroute_admin.common import clock
from omniroute_admin.common.views.guard import needs, require_right


@needs("pools:read")
@never_cache
@require_POST
def whatif(request: HttpRequest) -> HttpResponse:
    """Answer with what the form that is sent would move; nothing is stored.

    A script gets the fragment for `#whatif`, a browser without one a page.
    """
    kind = request.POST.get("kind", "")
    if kind not in TRIALS:
        return HttpResponseBadRequest(f"kind is one of: {', '.join(TRIALS)}.", content_type="text/plain")
    right, read = TRIALS[kind]
    require_right(request.user, right)
    now, is_script = clock.now(), "HX-Request" in request.headers
    if kind == "settings":
        return _settings(request, is_script=is_script, now=now)
    _, view = try_out(trial=read(request.POST), now=now)
    return render(request, "ladder/_whatif.html" if is_script else "ladder/whatif.html", {"whatif": view})


def _settings(request: HttpRequest, *, is_script: bool, now: datetime) -> HttpResponse:
    if not is_script:
        return show_preview(request, now=now)
    return render(request, "ladder/_tuning_preview.html", preview_of(settings_trial(request.POST), now=now))
