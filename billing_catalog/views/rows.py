"""The page of one curated row: its form, what an edit would move, its history, deleting, reviewing (SPEC 5, 4)."""

from typing import Any

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db import models
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from billing_catalog.errors import RowChanged
from billing_catalog.forms.rows import ActOnRowForm, RowForm, labelled
from billing_catalog.models import BillingEntry
from billing_catalog.selectors.rewrites import Rewrite, rewrites_of
from billing_catalog.services.editing import Saved, add_row, remove_row, save_row
from billing_catalog.services.kinds import ALIASES, BILLING, EDITED, Kind
from billing_catalog.views.parts import by_of, frame, glance, say_done, soft_reverse, version_before, way_back
from billing_catalog.views.presenting import entry_line, today
from omniroute_admin.common.errors import NotFound, ProductError
from omniroute_admin.common.selectors.history import HistoryEntry, entries_of
from omniroute_admin.common.views.guard import needs

SHOWN_VERSIONS = 8
LIST_OF = {
    "billing": "catalogue",
    "tier-override": "catalogue-tier-overrides",
    "free-provider": "catalogue-free-providers",
    "alias": "catalogue-aliases",
    "price-source": "catalogue-price-sources",
}
"""The name of the address of each sort's list."""
WHATIF = frozenset({"billing", "tier-override", "free-provider"})
"""The sorts whose edits move connections, as the preview knows them."""
STILL_TRUE = "Reviewed: still true."
LONGEST_NAME = 100
"""Of a reviewer; an account may have a longer one."""


@needs("catalog:write")
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def new_row(request: HttpRequest, kind_key: str) -> HttpResponse:
    """Show the form of a new row, filled with what the address says, or write the row."""
    kind = _kind(kind_key)
    if request.method != "POST":
        given = {name: request.GET[name].replace("\x00", "")[:500] for name in kind.names if name in request.GET}
        return _form_page(request, kind, None, RowForm.opened(kind=kind, row=None, given=given))
    form = RowForm(request.POST, kind=kind)
    return _written(request, kind, None, form)


@needs("catalog:read", to_change="catalog:write")
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def row_page(request: HttpRequest, kind_key: str, pk: int) -> HttpResponse:
    """Show a row with its form, or write what was changed of it."""
    kind = _kind(kind_key)
    row = kind.model._default_manager.filter(pk=pk).first()
    if row is None:
        return _gone(request, kind)
    if request.method != "POST":
        return _form_page(request, kind, row, RowForm.opened(kind=kind, row=row))
    return _written(request, kind, row, RowForm(request.POST, kind=kind, row=row))


@needs("catalog:write")
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def delete_page(request: HttpRequest, kind_key: str, pk: int) -> HttpResponse:
    """Ask whether a row shall be deleted, and why; or delete it."""
    kind = _kind(kind_key)
    row = kind.model._default_manager.filter(pk=pk).first()
    form = ActOnRowForm(request.POST) if request.method == "POST" else None
    if row is None:
        return _gone(request, kind)
    changed: list[Any] = []
    if form is not None and form.is_valid():
        try:
            return _deleted(request, kind, row, form)
        except RowChanged as error:
            changed, form = labelled(kind, error.differences), None
    status = 409 if changed else 400 if form is not None else 200
    form = form or ActOnRowForm.opened(kind=kind, row=row)
    context = {"kind": kind, "row": row, "form": form, "changed": changed, "back": row_url(kind, row)}
    context |= {"whatif_url": soft_reverse("whatif") if kind.key in WHATIF else ""}
    page = frame(tab=kind.key, title=f"Delete {row}", seen=glance())
    return render(request, "billing_catalog/delete.html", page | context, status=status)


@needs("catalog:write")
@require_POST
def mark_reviewed(request: HttpRequest, pk: int) -> HttpResponse:
    """Note that the sender reviewed a billing entry today."""
    row = BILLING.model._default_manager.filter(pk=pk).first()
    if row is None:
        return _gone(request, BILLING)
    form = ActOnRowForm(request.POST)
    if not form.is_valid():
        return _form_page(request, BILLING, row, RowForm.opened(kind=BILLING, row=row), review=form, status=400)
    began: dict[str, str] = form.cleaned_data["seen"]
    marks = {"reviewed_on": today(glance()).isoformat(), "reviewed_by": request.user.get_username()[:LONGEST_NAME]}
    return _saved_or_shown(request, BILLING, row, RowForm.opened(kind=BILLING, row=row), began, began | marks,
                           form.cleaned_data["reason"])  # fmt: skip


def row_url(kind: Kind, row: models.Model) -> str:
    """Return the address of a row's page."""
    return reverse("catalogue-row", args=[kind.key, row.pk])


def _kind(key: str) -> Kind:
    if key not in EDITED:
        raise Http404(f"The catalogue has no {key}.")
    return EDITED[key]


def _gone(request: HttpRequest, kind: Kind) -> HttpResponse:
    """Lead to the list from a row that is not there: deleted meanwhile, or sent twice, or an old bookmark."""
    messages.info(request, f"This {kind.one} is not there any more.")
    return redirect(LIST_OF[kind.key])


def _written(request: HttpRequest, kind: Kind, row: models.Model | None, form: RowForm) -> HttpResponse:
    if not form.is_valid():
        return _form_page(request, kind, row, form, status=400)
    rewrites = _unconfirmed(request, kind, row, form)
    if rewrites:
        return _form_page(request, kind, row, form, rewrites=rewrites)
    return _saved_or_shown(request, kind, row, form, form.cleaned_data["seen"], form.sent, form.cleaned_data["reason"])


def _saved_or_shown(
    request: HttpRequest,
    kind: Kind,
    row: models.Model | None,
    form: RowForm,
    began: dict[str, str],
    sent: dict[str, str],
    reason: str,
) -> HttpResponse:
    try:
        by = by_of(request, reason)
        if row is None:
            saved = add_row(kind=kind, sent=sent, **by)
        else:
            saved = save_row(kind=kind, row_id=row.pk, began=began, sent=sent, **by)
    except RowChanged as error:
        return _conflict(request, kind, row, form, error)
    except NotFound:
        return _gone(request, kind)
    except (ValidationError, ProductError) as error:
        if row is not None and not form.is_bound:
            return _not_marked(request, kind, row, error)
        form.refuse(error)
        return _form_page(request, kind, row, form, status=400)
    _say(request, kind, saved, was_made=row is None)
    return redirect(row_url(kind, saved.row) if saved.row is not None else LIST_OF[kind.key])


def _not_marked(
    request: HttpRequest, kind: Kind, row: models.Model, error: ValidationError | ProductError
) -> HttpResponse:
    """Say why an entry could not be marked as reviewed: something else in it has to be mended first."""
    words = " ".join(error.messages) if isinstance(error, ValidationError) else error.detail
    messages.error(request, f"Not saved: {words}")
    return redirect(row_url(kind, row))


def _conflict(
    request: HttpRequest, kind: Kind, row: models.Model | None, form: RowForm, error: RowChanged
) -> HttpResponse:
    again = form.again(error) if form.is_bound else form
    return _form_page(request, kind, row, again, changed=labelled(kind, error.differences), status=409)


def _say(request: HttpRequest, kind: Kind, saved: Saved, *, was_made: bool) -> None:
    if saved.row is None:
        return
    if saved.is_written:
        undo = way_back(kind, saved.row, was_made=was_made)
        say_done(request, what=f"Saved {kind.one} {saved.row}.", undo=undo)
    else:
        say_done(request, what=f"Saved already: {kind.one} {saved.row} says just that.", undo="")


def _deleted(request: HttpRequest, kind: Kind, row: models.Model, form: ActOnRowForm) -> HttpResponse:
    name, by = str(row), by_of(request, form.cleaned_data["reason"])
    saved = remove_row(kind=kind, row_id=row.pk, began=form.cleaned_data["seen"], **by)
    if not saved.is_written:
        return _gone(request, kind)
    say_done(request, what=f"Deleted {kind.one} {name}.", undo=version_before(row, key=kind.key))
    return redirect(LIST_OF[kind.key])


def _unconfirmed(request: HttpRequest, kind: Kind, row: models.Model | None, form: RowForm) -> tuple[Rewrite, ...]:
    """Return what an alias would rewrite, unless the sender has seen just that."""
    if kind is not ALIASES:
        return ()
    found = rewrites_of(alias=form.sent["alias"], provider=form.sent["provider"])
    return () if request.POST.get("rewrites") == rewrites_mark(found) else found


def rewrites_mark(rewrites: tuple[Rewrite, ...]) -> str:
    """Return a mark of what was shown to be rewritten."""
    return ";".join(f"{one.what} {one.moved} {one.removed}" for one in rewrites)


def _form_page(
    request: HttpRequest,
    kind: Kind,
    row: models.Model | None,
    form: RowForm,
    *,
    status: int = 200,
    changed: list[Any] | None = None,
    rewrites: tuple[Rewrite, ...] = (),
    review: ActOnRowForm | None = None,
) -> HttpResponse:
    seen = glance()
    versions = _versions(kind, row)
    context: dict[str, Any] = {
        "kind": kind,
        "row": row,
        "form": form,
        "changed": changed or [],
        "rewrites": rewrites,
        "rewrites_mark": rewrites_mark(rewrites),
        "back": reverse(LIST_OF[kind.key]),
        "versions": [(one, seen.ago(one.at), soft_reverse("history-version", kind.key, one.history_id))
                     for one in versions],
        "last": versions[0] if versions else None,
        "whatif_url": soft_reverse("whatif") if kind.key in WHATIF else "",
    }  # fmt: skip
    if isinstance(row, BillingEntry):
        review = review or ActOnRowForm.opened(kind=kind, row=row, reason=STILL_TRUE)
        context |= {"line": entry_line(row, seen=seen), "review": review}
    title = str(row) if row is not None else f"New {kind.one}"
    page = frame(tab=kind.key, title=title, seen=seen)
    return render(request, "billing_catalog/row.html", page | context, status=status)


def _versions(kind: Kind, row: models.Model | None) -> list[HistoryEntry]:
    return [] if row is None else entries_of(kind=kind.key, rows=[row.pk], limit=SHOWN_VERSIONS)
