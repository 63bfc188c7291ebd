"""The page that takes an import back (SPEC 5, 4)."""

from datetime import UTC, datetime, timedelta
from http import HTTPStatus

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from billing_catalog.errors import ImportChanged
from billing_catalog.forms.files import UndoForm
from billing_catalog.services.imports import Report
from billing_catalog.services.kinds import ALIASES
from billing_catalog.services.undo import MOST_ROWS, preview_undo, undo_import
from billing_catalog.views.parts import by_of, frame, glance, say_done
from omniroute_admin.common.views.guard import needs

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def undo_url(report: Report, *, at: datetime) -> str:
    """Return where an import is taken back; empty where an alias rewrote rows, or a page cannot undo so many."""
    rewrites = any(one.kind == ALIASES.file for one in (*report.of("new"), *report.of("changed")))
    if rewrites or report.written > MOST_ROWS:
        return ""
    return reverse("catalogue-undo", args=[(at - _EPOCH) // timedelta(microseconds=1)])


@needs("catalog:write")
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def undo_page(request: HttpRequest, micros: int) -> HttpResponse:
    """Show what would be taken back of an import, or take it back."""
    at = _instant(micros)
    report = preview_undo(at=at)
    if not report.outcomes:
        raise Http404("Nothing was imported at that instant.")
    if request.method != "POST":
        return _page(request, at, report, UndoForm(initial={"digest": report.digest}))
    form = UndoForm(request.POST)
    return _undone(request, at, form) if form.is_valid() else _page(request, at, report, form, status=400)


def _undone(request: HttpRequest, at: datetime, form: UndoForm) -> HttpResponse:
    reason = form.cleaned_data["reason"]
    try:
        report = undo_import(at=at, shown=form.cleaned_data["digest"], **by_of(request, reason))
    except ImportChanged as changed:
        again = UndoForm(initial={"digest": changed.report.digest, "reason": reason})
        return _page(request, at, changed.report, again, status=HTTPStatus.CONFLICT)
    already = "already: nothing was changed" if report.is_undone else ""
    say_done(request, what=f"The import is taken back {already}".rstrip() + ".", undo="")
    return redirect("catalogue-files")


def _page(request: HttpRequest, at: datetime, report: Report, form: UndoForm, *, status: int = 200) -> HttpResponse:
    seen = glance()
    context = {
        "report": report,
        "form": form,
        "is_again": status == HTTPStatus.CONFLICT,
        "at": seen.ago(at),
        "refused": report.of("refused"),
        "differing": report.of("changed"),
        "removed": report.of("removed"),
    }
    page = frame(tab="files", title="Take an import back", seen=seen)
    return render(request, "billing_catalog/undo.html", page | context, status=status)


def _instant(micros: int) -> datetime:
    try:
        return _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        raise Http404("Nothing was imported at that instant.") from None
