"""The tuning page: settings, what they would move before they are saved, and the save itself (SPEC 5, 3)."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from ladder.choices import PERIOD_CHOICES, WEEKDAY_CHOICES
from ladder.core.values import PAID_RUNGS, Budget, Rung
from ladder.forms.tuning import LABELS, SettingsForm, TuningForm, inputs_of, with_inputs, with_theirs
from ladder.mapping import rung_named
from ladder.models import RungBudget
from ladder.selectors.ledger import budgets_of
from ladder.selectors.saves import read_last_saves, read_saves
from ladder.selectors.settings import StoredSettings, read_budget_rows, read_stored_settings
from ladder.selectors.tuning import Texts, read_usual_gap, settings_with, texts_of
from ladder.services.settings import zone_names
from ladder.services.tuning import Saved, StaleTuningError, save_tuning
from ladder.views.presenting.tuning import Mark, age_words, band, budget_line, clashes, marks, value_words
from ladder.views.trial import try_out
from ladder.views.trials import SettingsTrial, settings_trial
from omniroute_admin.common import clock
from omniroute_admin.common.core.roles import AUDIT_READ
from omniroute_admin.common.core.screen import Glance
from omniroute_admin.common.core.stale import find_changes
from omniroute_admin.common.core.words import count_text
from omniroute_admin.common.errors import ProductError
from omniroute_admin.common.forms import read_seen, seen_text
from omniroute_admin.common.history import Actor
from omniroute_admin.common.scopes import rights_of_user
from omniroute_admin.common.views.guard import needs
from omniroute_admin.common.zone import display_zone


@needs("settings:read", to_change="settings:write")
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def tuning_page(request: HttpRequest) -> HttpResponse:
    """Show the settings, or save what was changed of them."""
    if request.method == "POST":
        return _save(request, now=clock.now())
    return show_settings(request, now=clock.now())


def show_settings(
    request: HttpRequest,
    *,
    now: datetime,
    form: SettingsForm | None = None,
    began: Texts | None = None,
    extra: Mapping[str, Any] | None = None,
    status: int = 200,
) -> HttpResponse:
    """Show the page: as the settings are stored, or a form that was sent and what it was opened with."""
    rows = read_budget_rows()
    stored = read_stored_settings(budgets=rows)
    began = texts_of(stored) if began is None else began
    form = TuningForm(initial=inputs_of(began)) if form is None else form
    sent = {**began, **form.texts()} if form.is_bound else began
    wanted = settings_with(stored=stored, changes=find_changes(began=began, sent=sent))
    context = {
        "section": "tuning",
        "form": form,
        "seen": seen_text(began),
        "periods": PERIOD_CHOICES,
        "weekdays": WEEKDAY_CHOICES,
        "zones": sorted(zone_names()),
        "zone": display_zone().key,
        "reason": form.data.get("reason", "") if form.is_bound else "",
        **_history(request, Glance(now=now, zone=display_zone())),
        **beside_fields(form=form, began=began, sent=sent, wanted=wanted, rows=rows, now=now),
        **(extra or {}),
    }
    return render(request, "ladder/tuning.html", context, status=status)


_SHOWN_SAVES = 6


def _history(request: HttpRequest, glance: Glance) -> dict[str, Any]:
    """Return the last saves, for those who may read who did what and why."""
    if AUDIT_READ not in rights_of_user(request.user):
        return {}
    entries = [{"entry": entry, "at": glance.ago(entry.at)} for entry in read_saves(limit=_SHOWN_SAVES)]
    return {"shows_history": True, "entries": entries, "last": next(iter(entries), None)}


def beside_fields(
    *,
    form: SettingsForm,
    began: Texts,
    sent: Texts,
    wanted: StoredSettings,
    rows: Sequence[RungBudget],
    now: datetime,
) -> dict[str, Any]:
    """Return what stands beside the fields and follows what is typed: marks, drawing, windows, the number to save."""
    glance = Glance(now=now, zone=display_zone())
    moved = {rung_named(row.rung): wanted.budgets[row.rung] for row in rows if _is_moved(row, wanted)}
    problems = form.problems() if form.is_bound else {}
    told = marks(began=began, sent=sent, problems=problems)
    return {
        "marks": told,
        "count": len(find_changes(began=began, sent=sent)),
        "band": band(
            exit_cutoff=Decimal(sent["exit_cutoff_percent"]), reentry=Decimal(sent["reentry_min_remaining_percent"])
        ),
        "age": age_words(seconds=int(sent["max_reading_age_seconds"]), gap=read_usual_gap()),
        "budgets": _budgets(budgets_of(rows=rows, now=now, instead=moved), form, moved, told, glance),
        "wrong": [(name, LABELS[name], words) for name, words in problems.items()],
    }


def _is_moved(row: RungBudget, wanted: StoredSettings) -> bool:
    """Tell whether a budget would have another window; its amount alone moves none (M4)."""
    new = wanted.budgets[row.rung]
    return (new.period, new.week_starts_on, new.zone) != (row.period, row.week_starts_on, row.zone)


def _budgets(
    budgets: Mapping[Rung, Budget],
    form: SettingsForm,
    moved: Mapping[Rung, Any],
    told: Mapping[str, Mark],
    glance: Glance,
) -> list[dict[str, Any]]:
    return [
        {
            "rung": rung.word,
            "index": int(rung),
            "line": budget_line(budget=budgets[rung], glance=glance, is_moved=rung in moved),
            "is_moved": rung in moved,
            "fields": {name: form[f"{rung.word}_{name}"] for name in _BUDGET_FIELDS},
            "marks": [told[f"{rung.word}_{name}"] for name in _BUDGET_FIELDS[1:]],
        }
        for rung in PAID_RUNGS
    ]


_BUDGET_FIELDS = ("kind", "amount", "period", "week_starts_on", "zone")


def _save(request: HttpRequest, *, now: datetime) -> HttpResponse:
    began = read_seen(request.POST.get("seen", ""))
    if began is None or began.keys() != LABELS.keys():
        return _not_whole(request, now=now)
    sent = with_theirs(request.POST, began)
    form = TuningForm(sent, began=began)
    if not form.is_valid():
        return show_settings(request, now=now, form=form, began=began, status=400)
    actor = Actor(name=request.user.get_username(), user_id=request.user.pk)
    try:
        saved = save_tuning(
            began=began, sent=form.texts(), actor=actor, reason=form.cleaned_data["reason"].strip(), now=now
        )
    except StaleTuningError as stale:
        return _ask_which(request, sent, stale, now=now)
    except ProductError as refused:
        form.add_error(None, refused.detail)
        return show_settings(request, now=now, form=form, began=began, status=400)
    messages.success(request, _told(saved))
    return redirect("tuning")


def _told(saved: Saved) -> str:
    if saved.is_repeated:
        return "Saved already: everything stands as you sent it."
    if not saved.changes:
        return "Nothing was changed, so nothing was saved."
    changes = (
        f"{LABELS[name]} {value_words(name, old)} → {value_words(name, new)}"
        for name, (old, new) in saved.changes.items()
    )
    return f"Saved {count_text(len(saved.changes), 'change', 'changes')}: {'; '.join(changes)}."


def _not_whole(request: HttpRequest, *, now: datetime) -> HttpResponse:
    form = TuningForm(request.POST)
    form.is_valid()
    form.errors.pop("seen", None)
    form.add_error(None, "This form is not whole any more. Open the page again.")
    return show_settings(request, now=now, form=form, status=400)


def _ask_which(request: HttpRequest, sent: QueryDict, stale: StaleTuningError, *, now: datetime) -> HttpResponse:
    """Show what the other person changed, and ask which to keep where both did; nothing is saved (SPEC 5, 3)."""
    untouched = {one.name: one.stored for one in stale.differences if not one.is_touched}
    form = TuningForm(with_inputs(sent, untouched))
    form.is_valid()
    saves = read_last_saves(names=[one.name for one in stale.differences])
    extra = {
        "clashes": clashes(stale.differences),
        "others": " and ".join(dict.fromkeys(save.who for save in saves)) or "Somebody",
        "saved_at": Glance(now=now, zone=display_zone()).ago(saves[0].at) if saves else None,
    }
    return show_settings(request, now=now, form=form, began=stale.stored, extra=extra, status=409)


def preview_of(tried: SettingsTrial, *, now: datetime) -> dict[str, Any]:
    """Return what a preview of the page's form is drawn from."""
    _, view = try_out(trial=tried.trial, now=now)
    beside = beside_fields(
        form=tried.form, began=tried.began, sent=tried.sent, wanted=tried.wanted, rows=read_budget_rows(), now=now
    )
    return {"whatif": view, **beside}


def show_preview(request: HttpRequest, *, now: datetime) -> HttpResponse:
    """Show the page as its form was sent, with what it would move: for a browser without script."""
    tried = settings_trial(request.POST)
    form = TuningForm(with_theirs(request.POST, tried.began), began=tried.began)
    form.is_valid()
    form.errors.pop("reason", None)
    _, view = try_out(trial=tried.trial, now=now)
    return show_settings(request, now=now, form=form, began=tried.began, extra={"whatif": view})
