"""The page of one connection, what keeps it up to date, and the acts on it (SPEC 5, 2)."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import msgspec
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import NoReverseMatch, reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from ladder.forms.connections import ActFacts, ConnectionAct
from ladder.models import Connection
from ladder.selectors.connection_page import connections_named, cooldowns_of
from ladder.selectors.form_values import LastChange, windows_of
from ladder.selectors.spend import SpendFilter
from ladder.services.connection_acts import ActOutcome
from ladder.services.connections import resolve_provider
from ladder.views.connection_acts import ACTS, Act, Run
from ladder.views.connection_offers import act_facts, offered
from ladder.views.connection_page import Subject, drawn, region_context, subject_of
from ladder.views.connection_query import ConnectionAsked, connection_asked
from ladder.views.picture import sums_of
from ladder.views.polls import answer_held, changed_regions
from ladder.views.regions import out_of_band
from ladder.views.seen import see_bare
from omniroute_admin.common import clock
from omniroute_admin.common.constraints import field_errors
from omniroute_admin.common.core.screen import Moment
from omniroute_admin.common.core.stale import Difference
from omniroute_admin.common.errors import FieldError, ProductError
from omniroute_admin.common.forms import seen_text
from omniroute_admin.common.history import Actor
from omniroute_admin.common.scopes import rights_of_user
from omniroute_admin.common.views.guard import needs

WRITE = "connections:write"
CONFLICT, REFUSED = 409, 400


class ConflictRow(msgspec.Struct, frozen=True):
    """One value that another changed since the form was opened: who, when and why, where the history tells."""

    name: str
    label: str
    difference: Difference
    last: LastChange | None
    at: Moment | None


class Panel(msgspec.Struct, frozen=True):
    """One act in the list: its form, what was seen when it was opened, and the conflict it ran into."""

    act: Act
    form: ConnectionAct
    values: Mapping[str, str]
    is_open: bool
    url: str
    conflict: tuple[ConflictRow, ...] = ()

    @property
    def seen(self) -> str:
        """Return the values that were seen, signed."""
        return seen_text(self.values)


class Sent(msgspec.Struct, frozen=True):
    """A form that was sent and is shown again."""

    key: str
    form: ConnectionAct
    conflict: tuple[ConflictRow, ...] = ()


@needs("connections:read")
@never_cache
@require_safe
def connection_page(request: HttpRequest, provider: str, connection_id: str) -> HttpResponse:
    """Show everything about one connection; one that was deleted keeps its history and its spend."""
    asked = connection_asked(request.GET)
    rows = connections_named(provider=provider, connection_id=connection_id)
    subject = _subject(rows, asked)
    if subject is None:
        return _elsewhere(provider, connection_id, rows)
    if subject.row.provider != provider:
        return redirect("connection", subject.row.provider, connection_id)
    return _page(request, subject)


def _elsewhere(provider: str, connection_id: str, rows: list[Connection]) -> HttpResponse:
    """Lead to the canonical name, where this is another way to write it; else there is nothing here (SPEC 1)."""
    if rows:
        return redirect("connection", rows[0].provider, connection_id)
    name = resolve_provider(provider)
    if name != provider and connections_named(provider=name, connection_id=connection_id):
        return redirect("connection", name, connection_id)
    raise Http404(f"{provider}/{connection_id} is not stored as a connection.")


def _subject(rows: list[Connection], asked: ConnectionAsked) -> Subject | None:
    if not rows:
        return None
    named = SpendFilter(providers=[rows[0].provider], connection_ids=[rows[0].connection_id])
    return subject_of(rows=rows, seen=see_bare(now=clock.now(), spent_by=named), asked=asked)


def _page(request: HttpRequest, subject: Subject, sent: Sent | None = None, *, status: int = 200) -> HttpResponse:
    context = _context(request, subject, sent)
    acts = render_to_string("ladder/connection/_acts.html", context, request=request)
    context |= {"section": "connections", "shows": "connection", "acts": acts}
    return render(request, "ladder/connection/page.html", context, status=status)


def _context(request: HttpRequest, subject: Subject, sent: Sent | None = None) -> dict[str, Any]:
    context = region_context(subject)
    panels = _panels(request, subject, sent)
    acts_sum = _acts_sum(panels)
    context |= {"panels": panels, "whatif_url": _whatif_address()}
    return context | drawn(context=context, subject=subject, acts_sum=acts_sum, request=request)


def _whatif_address() -> str:
    """Return who tells what a change would move, empty where this installation has none."""
    try:
        return reverse("whatif")
    except NoReverseMatch:
        return ""


def _acts_sum(panels: list[Panel]) -> str:
    """Return the sum of what the forms are made of: their text differs with every drawing, as it is signed."""
    told = repr([(panel.act.key, panel.form.facts, panel.values) for panel in panels])
    return sha256(told.encode()).hexdigest()[:12]


def _panels(request: HttpRequest, subject: Subject, sent: Sent | None) -> list[Panel]:
    """Return the acts that this reader may do and that change something here."""
    row = subject.row
    if subject.account is None or WRITE not in rights_of_user(request.user):
        return []
    facts = _facts(subject)
    keys = offered(row=row, facts=facts)
    if sent is not None and sent.key not in keys:
        keys.append(sent.key)
    return [_panel(ACTS[key], row, facts, subject.asked, sent) for key in keys]


def _facts(subject: Subject) -> ActFacts:
    return act_facts(
        row=subject.row,
        windows=sorted(windows_of(subject.row), key=lambda one: not one.is_reported),
        cooldowns=cooldowns_of(connection=subject.row),
        exit_cutoff=subject.settings.exit_cutoff_percent,
        chosen_window=subject.asked.window,
        now=subject.glance.now,
    )


def _panel(act: Act, row: Connection, facts: ActFacts, asked: ConnectionAsked, sent: Sent | None) -> Panel:
    mine = sent if sent is not None and sent.key == act.key else None
    seen = dict(act.seen(row))
    initial = {name: seen[name] for name in act.fills}
    form = mine.form if mine else act.form(facts=facts, initial=initial, auto_id=f"{act.key}-%s")
    return Panel(
        act=act,
        form=form,
        values=seen,
        is_open=mine is not None or asked.act == act.key,
        url=reverse("connection-act", args=[row.provider, row.connection_id, act.key]),
        conflict=mine.conflict if mine else (),
    )


@never_cache
@require_safe
def live_connection(request: HttpRequest, provider: str, connection_id: str) -> HttpResponse:
    """Answer 204 while the picture of the browser holds, else the regions of it that changed.

    A connection that is gone meanwhile tells so in its regions: its page stays.
    """
    answer = answer_held(request, right="connections:read", now=clock.now())
    if answer is not None:
        return answer
    rows = connections_named(provider=provider, connection_id=connection_id)
    subject = _subject(rows, connection_asked(request.GET))
    if subject is None:
        raise Http404(f"{provider}/{connection_id} is not stored as a connection.")
    context = _context(request, subject)
    return render(
        request,
        "ladder/connection/_live.html",
        context | {"shows": "connection", "changed": _changed(request, context)},
    )


def _changed(request: HttpRequest, context: dict[str, Any]) -> list[Any]:
    regions = changed_regions(request, context)
    if sums_of(request.GET.get("v", "")).get("acts") != context["sums"]["acts"]:
        regions["acts"] = render_to_string("ladder/connection/_acts.html", context, request=request)
    return [out_of_band(name=name, html=html) for name, html in regions.items()]


@needs("connections:read", to_change=WRITE)
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def connection_act(request: HttpRequest, provider: str, connection_id: str, act: str) -> HttpResponse:
    """Do one act on a connection, or show its form again with what is wrong."""
    rows = connections_named(provider=provider, connection_id=connection_id)
    row = next((one for one in rows if one.deleted_at is None), None)
    if act not in ACTS or not rows:
        raise Http404(f"There is no act {act} on {provider}/{connection_id}.")
    if row is None:
        messages.info(request, f"{provider}/{connection_id} was deleted already: nothing was changed.")
        return redirect("connection", provider, connection_id)
    if request.method != "POST":
        return _open(row, act)
    return _do(request, row, rows, ACTS[act])


def _open(row: Connection, act: str) -> HttpResponse:
    return redirect(f"{reverse('connection', args=[row.provider, row.connection_id])}?act={act}#a-{act}")


def _do(request: HttpRequest, row: Connection, rows: list[Connection], act: Act) -> HttpResponse:
    subject = _subject(rows, ConnectionAsked(act=act.key, window=request.POST.get("window", "")[:200]))
    if subject is None:
        raise Http404
    form = act.form(request.POST, facts=_facts(subject), auto_id=f"{act.key}-%s")
    outcome = _run(request, row, form, act) if form.is_valid() else None
    if outcome is None:
        return _again(request, subject, Sent(act.key, form), status=REFUSED)
    if outcome.differences:
        conflict = tuple(_conflict_row(act, row, one, subject) for one in outcome.differences)
        return _again(request, subject, Sent(act.key, form, conflict), status=CONFLICT)
    name = f"{row.provider}/{row.connection_id}"
    if outcome.is_done:
        messages.success(request, act.done.format(name=name, window=form.cleaned_data.get("window", "")))
    else:
        messages.info(request, f"{name} stands so already: nothing was changed.")
    return redirect("connection", row.provider, row.connection_id)


def _again(request: HttpRequest, subject: Subject, sent: Sent, *, status: int) -> HttpResponse:
    """Show the page with a form that was refused, over the state as it is now: what it is held against next."""
    row = subject.row
    now = _subject(connections_named(provider=row.provider, connection_id=row.connection_id), subject.asked)
    return _page(request, now or subject, sent, status=status)


def _run(request: HttpRequest, row: Connection, form: ConnectionAct, act: Act) -> ActOutcome | None:
    """Do the act; None where it is refused, the form naming every bad field."""
    actor = Actor(name=request.user.get_username(), user_id=request.user.pk)
    kept = frozenset(
        name.removeprefix("keep:")
        for name in request.POST
        if name.startswith("keep:") and request.POST[name] == "theirs"
    )
    try:
        return act.run(Run(row=row, form=form, actor=actor, now=clock.now(), kept=kept))
    except ValidationError as error:
        _tell(form, field_errors(error))
    except ProductError as error:
        _tell(form, error.errors or [FieldError("", error.detail)])
    return None


def _tell(form: ConnectionAct, errors: Any) -> None:
    """Put refusals beside their fields; one of a field that the form does not have stands above them."""
    for error in errors:
        name = error.pointer.removeprefix("/")
        if name == "overage_override_reason":
            name = "reason"
        form.add_error(name if name in form.fields else None, error.detail)


def _conflict_row(act: Act, row: Connection, difference: Difference, subject: Subject) -> ConflictRow:
    last = act.last_change(row, difference.name)
    return ConflictRow(
        name=difference.name,
        label=act.label(difference.name),
        difference=difference,
        last=last,
        at=subject.glance.ago(last.at) if last else None,
    )
