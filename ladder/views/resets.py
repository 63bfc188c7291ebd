"""Keep usage or reset: starting the count of a budget again, asked apart and told beforehand (M9, SPEC 5, 3)."""

from datetime import datetime
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from ladder.core.values import PAID_RUNGS, Rung
from ladder.models import RungBudget
from ladder.selectors.ledger import read_budgets
from ladder.selectors.settings import read_counted_from
from ladder.services.budgets import reset_budget
from ladder.views.presenting.tuning import budget_line
from ladder.views.trial import Trial, try_out
from omniroute_admin.common import clock
from omniroute_admin.common.core.screen import Glance, iso_text
from omniroute_admin.common.forms import ActForm, seen_text
from omniroute_admin.common.history import Actor
from omniroute_admin.common.views.guard import needs
from omniroute_admin.common.zone import display_zone


class _CountedFromError(Exception):
    """Somebody reset the count since the page was opened: it counts from `at` (None: from the window's start)."""

    def __init__(self, at: datetime | None) -> None:
        super().__init__("The count was started again in between.")
        self.at = at


@needs("settings:write")
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def reset_page(request: HttpRequest, rung: str) -> HttpResponse:
    """Ask whether to keep the usage of a paid rung's window or to count from now on, and do so."""
    paid = next((one for one in PAID_RUNGS if one.word == rung), None)
    if paid is None:
        raise Http404("Only cheap and premium have a budget.")
    now = clock.now()
    if request.method != "POST":
        return _show(request, paid, form=ActForm(), now=now)
    form = ActForm(request.POST)
    if not form.is_valid():
        return _show(request, paid, form=form, now=now, status=400)
    return _reset(request, paid, form=form, now=now)


def _reset(request: HttpRequest, rung: Rung, *, form: ActForm, now: datetime) -> HttpResponse:
    began = form.cleaned_data["seen"].get("counted_from")

    def check(row: RungBudget) -> None:
        if _text(row.counted_from) != began:
            raise _CountedFromError(row.counted_from)

    actor = Actor(name=request.user.get_username(), user_id=request.user.pk)
    try:
        reset_budget(rung=rung.word, actor=actor, reason=form.cleaned_data["reason"].strip(), now=now, check=check)
    except _CountedFromError as reset:
        told = f" at {Glance(now=now, zone=display_zone()).ago(reset.at).clock}" if reset.at else ""
        messages.info(request, f"The count of {rung.word} was started again already{told}: nothing more was done.")
    else:
        messages.success(request, f"The count of {rung.word} starts again now. Every row of the ledger stays.")
    return redirect("tuning")


def _text(at: datetime | None) -> str:
    return iso_text(at) if at else ""


def _show(request: HttpRequest, rung: Rung, *, form: ActForm, now: datetime, status: int = 200) -> HttpResponse:
    glance = Glance(now=now, zone=display_zone())
    budget = read_budgets(now=now, rungs=[rung])[rung]
    _, view = try_out(trial=Trial(resets=[rung]), now=now)
    context: dict[str, Any] = {
        "section": "tuning",
        "rung": rung.word,
        "index": int(rung),
        "line": budget_line(budget=budget, glance=glance, is_moved=False),
        "until": glance.in_zone(budget.zone).until(budget.window_end) if budget.window_end else None,
        "window_zone": budget.zone,
        "form": form,
        "seen": seen_text({"counted_from": _text(read_counted_from(rung=rung.word))}),
        "whatif": view,
        "zone": glance.zone_name,
    }
    return render(request, "ladder/reset.html", context, status=status)
