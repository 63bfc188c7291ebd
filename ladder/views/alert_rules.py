"""Rules of alerts made, changed, paused, deleted and tried out; and a delivery that was given up, sent again."""

from collections.abc import Callable
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from ladder.core.alerts.rules import AlertKind
from ladder.forms.alerts import KIND_WORDS, RuleForm, UsualForm, WhyForm, values_of
from ladder.models import AlertDelivery, AlertRule
from ladder.selectors.alerts import channels
from ladder.services.alert_rules import (
    USUAL,
    add_usual_rules,
    create_rule,
    delete_rule,
    send_test,
    try_again,
    update_rule,
)
from ladder.views.alerts import channel_words
from ladder.views.presenting.alerts import rule_line
from omniroute_admin.common import clock
from omniroute_admin.common.core.screen import iso_text
from omniroute_admin.common.errors import BadRequest, ProductError
from omniroute_admin.common.forms import seen_text
from omniroute_admin.common.history import Actor
from omniroute_admin.common.views.guard import needs
from omniroute_admin.common.zone import display_zone

READ, WRITE = "settings:read", "settings:write"
_HIGHEST_ID = 2**63 - 1
_NEW = ""


class _ChangedError(ProductError):
    """Somebody changed the rule since the form was opened."""

    status = 409


@needs(WRITE)
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def new_rule(request: HttpRequest) -> HttpResponse:
    """Ask what kind of rule it is to be, then for the rest, and make it."""
    kind = _kind(request.GET.get("kind", ""))
    if kind is None:
        context = _context(kinds=[(one.value, *words) for one, words in KIND_WORDS.items()])
        return render(request, "alerts/kinds.html", context, status=400 if request.method == "POST" else 200)
    start = {"name": KIND_WORDS[kind][0], "quiet_zone": display_zone().key, "seen": seen_text({"at": _NEW})}
    form = _form(request, kind=kind, initial=start)

    def save(by: dict[str, Any]) -> AlertRule:
        return create_rule(kind=kind.value, **form.values(), **by)

    return _ask(request, form, save=save)


@needs(READ, to_change=WRITE)
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def rule_page(request: HttpRequest, pk: int) -> HttpResponse:
    """Show a rule and change it; the second of two who change it at once is told."""
    rule = _rule(pk)
    seen = {"seen": seen_text({"at": iso_text(rule.updated_at)})}
    form = _form(request, kind=AlertKind(rule.looks_for), initial=values_of(rule) | seen, rule=rule)

    def check(row: AlertRule) -> None:
        if form.cleaned_data["seen"].get("at") != iso_text(row.updated_at):
            raise _ChangedError("Somebody changed this rule since the form was opened. Open it again.")

    def save(by: dict[str, Any]) -> AlertRule:
        return update_rule(rule=rule, changes=form.values(), check=check, **by)

    return _ask(request, form, save=save, rule=rule)


@needs(WRITE)
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def pause_rule(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask whether a rule is to be paused, or to go on, and do so."""
    rule = _rule(pk)
    form = WhyForm(request.POST if request.method == "POST" else None)
    if not form.is_valid():
        return _sure(request, rule, form, act="pause" if rule.is_enabled else "go on")
    update_rule(rule=rule, changes={"is_enabled": not rule.is_enabled}, **_by(request, form))
    done = "is paused; what it raised is resolved at the next look" if rule.is_enabled else "goes on"
    messages.success(request, f"{rule.name} {done}.")
    return redirect("alerts")


@needs(WRITE)
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def delete_rule_page(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask whether a rule is to be deleted, and do so."""
    rule = _rule(pk)
    form = WhyForm(request.POST if request.method == "POST" else None)
    if not form.is_valid():
        return _sure(request, rule, form, act="delete")
    delete_rule(rule=rule, **_by(request, form))
    messages.success(request, f"{rule.name} is deleted. What it raised stays in the log.")
    return redirect("alerts")


@needs(WRITE)
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def usual_rules(request: HttpRequest) -> HttpResponse:
    """Ask by which channel the usual rules are to tell, and make those that are not there."""
    offered = [(name, f"{name} ({kind})") for name, kind in channel_words(channels())]
    form = UsualForm(request.POST if request.method == "POST" else None, channels=offered)
    if not form.is_valid():
        context = _context(form=form, usual=[name for name, *_ in USUAL])
        return render(request, "alerts/usual.html", context, status=400 if form.is_bound else 200)
    made = add_usual_rules(channel=form.cleaned_data["channel"], **_by(request, form))
    messages.success(request, f"Rules made: {len(made)}. Those that were there stay as they are.")
    return redirect("alerts")


@needs(WRITE)
@require_POST
def test_rule(request: HttpRequest, pk: int) -> HttpResponse:
    """Put a test to each channel of a rule in the queue; the log shows what becomes of it."""
    rule = _rule(pk)
    tests = send_test(rule=rule, actor=_actor(request), now=clock.now())
    if tests:
        messages.success(request, f"A test of {rule.name} is on its way to {', '.join(rule.channels)}: see the log.")
    else:
        messages.info(request, f"{rule.name} has no channel: there is nothing to test.")
    return redirect(f"{reverse('alerts')}#log")


@needs(WRITE)
@require_POST
def send_again(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Put a delivery that was given up in the queue again, with its counterpart."""
    if try_again(delivery=get_object_or_404(AlertDelivery, pk=pk), now=clock.now()):
        messages.success(request, "It is in the queue again: see the log.")
    else:
        messages.info(request, "It is on its way already, or was sent: nothing was changed.")
    return redirect(f"{reverse('alerts')}#log")


def _ask(
    request: HttpRequest, form: RuleForm, *, save: Callable[[dict[str, Any]], AlertRule], rule: AlertRule | None = None
) -> HttpResponse:
    """Show the form, or save what it says; what is refused stands in it, beside the field where there is one."""
    if not form.is_valid():
        return _show(request, form, rule=rule, status=400 if form.is_bound else 200)
    try:
        saved = save(_by(request, form))
    except BadRequest as error:
        for bad in error.errors:
            name = bad.pointer.strip("/")
            form.add_error(name if name in form.fields else None, bad.detail)
        return _show(request, form, rule=rule, status=400)
    except (ProductError, ValidationError) as error:
        form.add_error(None, error.detail if isinstance(error, ProductError) else error.messages)
        return _show(request, form, rule=rule, status=409)
    messages.success(request, f"{saved.name} is saved.")
    return redirect("alerts")


def _show(request: HttpRequest, form: RuleForm, *, rule: AlertRule | None, status: int) -> HttpResponse:
    words, hint = KIND_WORDS[form.kind]
    context = _context(form=form, rule=rule, words=words, hint=hint, has_channels=bool(channels()))
    return render(request, "alerts/rule.html", context, status=status)


def _sure(request: HttpRequest, rule: AlertRule, form: WhyForm, *, act: str) -> HttpResponse:
    context = _context(line=rule_line(rule, channels=channels()), form=form, act=act)
    return render(request, "alerts/sure.html", context, status=400 if form.is_bound else 200)


def _form(request: HttpRequest, *, kind: AlertKind, initial: dict[str, Any], rule: AlertRule | None = None) -> RuleForm:
    offered = dict(channel_words(channels()))
    gone = [name for name in (rule.channels if rule else []) if name not in offered]
    choices = [(name, f"{name} ({word})") for name, word in offered.items()]
    choices += [(name, f"{name} (not in the environment)") for name in gone]
    sent = request.POST if request.method == "POST" else None
    return RuleForm(sent, kind=kind, channels=choices, initial=initial)


def _context(**more: Any) -> dict[str, Any]:
    return {"section": "alerts", "zone": display_zone().key} | more


def _kind(word: str) -> AlertKind | None:
    return next((kind for kind in AlertKind if kind.value == word), None)


def _rule(pk: int) -> AlertRule:
    return get_object_or_404(AlertRule, pk=min(pk, _HIGHEST_ID))


def _actor(request: HttpRequest) -> Actor:
    return Actor(name=request.user.get_username(), user_id=request.user.pk)


def _by(request: HttpRequest, form: Any) -> dict[str, Any]:
    now: datetime = clock.now()
    return {"actor": _actor(request), "reason": form.cleaned_data["reason"].strip(), "now": now}
