"""The audit page, its export, and the page of one version, from which one goes back to it (SPEC 5, 7)."""

from collections.abc import Iterable
from typing import Any

import msgspec
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from ladder.views.paging import leaf_of
from ladder.views.presenting.pruned import PrunedWords, pruned_words
from omniroute_admin.common import clock
from omniroute_admin.common.core.changes import ACTS, HistoryEntry
from omniroute_admin.common.core.roles import AUDIT_READ, role_words
from omniroute_admin.common.core.screen import Glance, Moment, iso_text
from omniroute_admin.common.core.words import clock_text
from omniroute_admin.common.errors import ProductError
from omniroute_admin.common.forms import ActForm, seen_text
from omniroute_admin.common.history import Actor
from omniroute_admin.common.kinds import all_kinds, find_kind
from omniroute_admin.common.scopes import rights_of_user
from omniroute_admin.common.selectors.history import Asked, count_acts, count_entries, find_acts, find_entries
from omniroute_admin.common.selectors.horizons import Pruned, audit_horizons
from omniroute_admin.common.selectors.versions import VersionSeen, see_version
from omniroute_admin.common.services.rollback import roll_back
from omniroute_admin.common.views.guard import needs, require_right
from omniroute_admin.common.zone import display_zone
from omniroute_admin.views.asked import AuditAsked, audit_asked_of
from omniroute_admin.views.exports import csv_lines, json_lines

PAGE_SIZE = 50
_EXPORTS = {"csv": ("text/csv; charset=utf-8", csv_lines), "json": ("application/json", json_lines)}
_STANDS = "Nothing was written: it stands like this version already."


class Line(msgspec.Struct, frozen=True):
    """One change as a list shows it: when, told for people, and the change.

    Of an act that made many alike it is the last: `more` tells how many others there are, `query` asks for all of them.
    """

    when: Moment
    entry: HistoryEntry
    more: int = 0
    query: str = ""


@needs(AUDIT_READ)
@never_cache
@require_safe
def audit_page(request: HttpRequest) -> HttpResponse:
    """Show who changed what, the newest first, by the filters of the address.

    What one act did to many is one line; only where one instant is asked for every change stands there.
    """
    asked, zone = audit_asked_of(request.GET), display_zone()
    wanted = asked.asked(zone)
    total = count_entries(asked=wanted)
    leaf = leaf_of(total=total if asked.at else count_acts(asked=wanted), page=asked.page, size=PAGE_SIZE)
    context = {
        "section": "audit",
        "zone": zone.key,
        "asked": asked,
        "days": {name: day.isoformat() for name, day in asked.days.items()},
        "kinds": [(kind.key, kind.word, kind.key in asked.kinds) for kind in all_kinds()],
        "acts": ACTS,
        "leaf": leaf,
        "total": total,
        "lines": _lines(asked, wanted, leaf.part.start),
        "query": asked.query(),
        "previous": asked.query(page=leaf.page - 1) if leaf.page > 1 else None,
        "next": asked.query(page=leaf.page + 1) if leaf.page < leaf.pages else None,
        "pruned": _pruned(),
    }
    return render(request, "history/audit.html", context)


def _pruned() -> PrunedWords | None:
    """Return what the retention period removed of the history, None where it removed nothing."""
    found = [one for one in audit_horizons().values() if one.removed]
    if not found:
        return None
    before, moved = max(one.before for one in found), max(one.moved_at for one in found)
    count = sum(one.removed for one in found)
    glance = Glance(now=clock.now(), zone=display_zone())
    return pruned_words(Pruned(before, moved, count), glance=glance, count=count)


@needs(AUDIT_READ)
@never_cache
@require_safe
def audit_export(request: HttpRequest, form: str) -> StreamingHttpResponse:
    """Send every change that the filters leave as a file."""
    content_type, lines = _EXPORTS[form]
    body: Iterable[Any] = lines(audit_asked_of(request.GET).asked(display_zone()))
    response = StreamingHttpResponse(body, content_type=content_type)
    response["Content-Disposition"] = f'attachment; filename="audit-{clock.now():%Y-%m-%d}.{form}"'
    return response


@needs(AUDIT_READ)
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def version_page(request: HttpRequest, kind: str, history_id: int) -> HttpResponse:
    """Show one version field by field, and what going back to it would change; sent, go back."""
    seen = see_version(kind=kind, history_id=history_id, now=clock.now())
    if seen is None:
        raise Http404("The history has no such version.")
    if request.method != "POST":
        return _version(request, seen, form=_new_form(seen))
    if seen.outlook.right:
        require_right(request.user, seen.outlook.right)
    form = ActForm(request.POST)
    return _go_back(request, seen, form) if form.is_valid() else _version(request, seen, form=form, status=400)


def lines_of(entries: Iterable[HistoryEntry]) -> list[Line]:
    """Return changes as a list shows them, in the zone that screens tell times in."""
    now, zone = clock.now(), display_zone()
    return [
        Line(
            when=Moment(
                iso=iso_text(one.at), clock=clock_text(at=one.at, now=now, zone=zone, seconds=True), words="", tick=""
            ),
            entry=one,
        )
        for one in entries
    ]


def _lines(asked: AuditAsked, wanted: Asked, offset: int) -> list[Line]:
    if asked.at:
        return lines_of(find_entries(asked=wanted, limit=PAGE_SIZE, offset=offset))
    acts = find_acts(asked=wanted, limit=PAGE_SIZE, offset=offset)
    lines = lines_of(act.entry for act in acts)
    return [
        msgspec.structs.replace(line, more=act.count - 1, query=asked.query_of_act(act)) if act.count > 1 else line
        for line, act in zip(lines, acts, strict=True)
    ]


def _go_back(request: HttpRequest, seen: VersionSeen, form: ActForm) -> HttpResponse:
    entry = seen.entry
    try:
        outcome = roll_back(
            kind=entry.kind,
            history_id=entry.history_id,
            seen=form.cleaned_data["seen"],
            actor=Actor(name=request.user.get_username(), user_id=request.user.pk),
            reason=form.cleaned_data["reason"],
            now=clock.now(),
        )
    except (ProductError, ValidationError) as error:
        return _version(request, seen, form=form, refused=_words(error), status=409)
    if outcome == "stale":
        return _stale(request, entry, began=form.cleaned_data["seen"], reason=form.cleaned_data["reason"])
    messages.success(request, _STANDS if outcome == "stands already" else f"{entry.what}: rolled back.")
    return redirect(request.path)


def _stale(request: HttpRequest, entry: HistoryEntry, *, began: dict[str, str], reason: str) -> HttpResponse:
    """Show what another saved meanwhile; the same form sent again means what it shows now."""
    again = see_version(kind=entry.kind, history_id=entry.history_id, now=clock.now())
    if again is None:
        raise Http404("The history has no such version.")
    form = ActForm(initial={"seen": seen_text(again.outlook.seen), "reason": reason})
    meanwhile = [
        (_label(entry.kind, name), began.get(name, "gone"), value)
        for name, value in again.outlook.seen.items()
        if began.get(name) != value
    ]
    return _version(request, again, form=form, meanwhile=meanwhile, status=409)


def _label(kind: str, name: str) -> str:
    known = find_kind(kind)
    return known.fields[name].label if known is not None and name in known.fields else "the row"


def _new_form(seen: VersionSeen) -> ActForm:
    return ActForm(initial={"seen": seen_text(seen.outlook.seen)})


def _version(
    request: HttpRequest,
    seen: VersionSeen,
    *,
    form: ActForm,
    refused: str = "",
    meanwhile: list[tuple[str, str, str]] | None = None,
    status: int = 200,
) -> HttpResponse:
    outlook = seen.outlook
    context = {
        "section": "audit",
        "zone": display_zone().key,
        "line": lines_of([seen.entry])[0],
        "outlook": outlook,
        "last": lines_of([outlook.last])[0] if outlook.last else None,
        "may": outlook.right in rights_of_user(request.user),
        "needed": role_words(outlook.right) if outlook.right else "",
        "others": lines_of(seen.others),
        "form": form,
        "refused": refused,
        "meanwhile": meanwhile,
    }
    return render(request, "history/version.html", context, status=status)


def _words(error: ProductError | ValidationError) -> str:
    """Return what a service refused, in one line."""
    if isinstance(error, ValidationError):
        return " ".join(error.messages)
    return " ".join([error.detail, *(f"{bad.sentence()}." for bad in error.errors)])
