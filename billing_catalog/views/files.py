"""Import and export of the catalogue: CSV of one sort, JSON of all; a dry run before any write (SPEC 5, 4)."""

from collections.abc import Iterable
from typing import Any

from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from billing_catalog.core.sheets import csv_text, json_text
from billing_catalog.errors import ImportChanged
from billing_catalog.forms.files import CSV, JSON, ConfirmForm, UploadForm, packed, read_sheets
from billing_catalog.selectors.prices import prices_in_force
from billing_catalog.services.imports import Report, import_sheets, preview_import
from billing_catalog.services.kinds import FILES, OFFERED, PRICES, Kind, texts_of
from billing_catalog.views.parts import by_of, frame, glance, say_done
from billing_catalog.views.undo import undo_url
from omniroute_admin.common import clock
from omniroute_admin.common.core.words import count_text
from omniroute_admin.common.views.guard import needs

ALL = "catalogue"
_TYPES = {CSV: "text/csv; charset=utf-8", JSON: "application/json"}


@needs("catalog:read", to_change="catalog:write")
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def files_page(request: HttpRequest) -> HttpResponse:
    """Offer the downloads; show what an uploaded file would change; or write just what was shown."""
    if request.method != "POST":
        return _page(request, upload=UploadForm())
    if "packed" in request.POST:
        return _confirm(request)
    form = UploadForm(request.POST, request.FILES)
    if not form.is_valid():
        return _page(request, upload=form, status=400)
    return _shown(request, {name: form.cleaned_data[name] for name in ("form", "kind", "text")}, UploadForm())


def _shown(
    request: HttpRequest, given: dict[str, str], upload: UploadForm, *, report: Report | None = None
) -> HttpResponse:
    """Show the difference that a file makes, with the form that confirms just it."""
    is_again = report is not None
    report = report or preview_import(sheets=read_sheets(**given), now=clock.now())
    confirm = ConfirmForm(initial={"packed": packed(**given, digest=report.digest)})
    status = 409 if is_again else 200
    return _page(request, upload=upload, report=report, confirm=confirm, is_again=is_again, status=status)


def _confirm(request: HttpRequest) -> HttpResponse:
    form = ConfirmForm(request.POST)
    if "packed" in form.errors:
        upload = UploadForm()
        return _page(request, upload=upload, broken=form.errors["packed"], status=400)
    given = {name: form.cleaned_data["packed"][name] for name in ("form", "kind", "text")}
    sheets = read_sheets(**given)
    if not form.is_valid():
        report = preview_import(sheets=sheets, now=clock.now())
        return _page(request, upload=UploadForm(), report=report, confirm=form, status=400)
    by = by_of(request, form.cleaned_data["reason"])
    try:
        report = import_sheets(sheets=sheets, shown=form.cleaned_data["packed"]["digest"], **by)
    except ImportChanged as changed:
        return _changed(request, given, changed.report)
    counts = " and ".join(f"{len(report.of(what))} {what}" for what in ("new", "changed") if report.of(what))
    say_done(request, what=f"Imported: {counts}.", undo=undo_url(report, at=by["now"]))
    return redirect("catalogue-files")


def _changed(request: HttpRequest, given: dict[str, str], report: Report) -> HttpResponse:
    if not report.is_refused and not report.written:
        say_done(request, what="Imported already: the catalogue says all of it.", undo="")
        return redirect("catalogue-files")
    return _shown(request, given, UploadForm(), report=report)


def _page(
    request: HttpRequest, *, upload: UploadForm, report: Report | None = None, status: int = 200, **more: Any
) -> HttpResponse:
    context: dict[str, Any] = {"upload": upload, "kinds": OFFERED, "report": report, "all": ALL, **more}
    if report is not None:
        context["counts"] = [(what, count_text(len(report.of(what)), "row", "rows"))
                             for what in ("new", "changed", "unchanged", "refused")]  # fmt: skip
        context["fresh"], context["differing"] = report.of("new"), report.of("changed")
        context["refused"] = report.of("refused")
    page = frame(tab="files", title="Import and export", seen=glance())
    return render(request, "billing_catalog/files.html", page | context, status=status)


@needs("catalog:read")
@never_cache
@require_safe
def export_file(request: HttpRequest, name: str, form: str) -> HttpResponse:
    """Download one sort of rows as CSV or JSON, or the whole catalogue as JSON."""
    kinds = list(FILES.values()) if name == ALL else [FILES[name]] if name in FILES else []
    if not kinds or form not in _TYPES or (name == ALL and form == CSV):
        raise Http404("There is no such file.")
    texts = {kind.file: [texts_of(kind, row) for row in _rows(kind)] for kind in kinds}
    columns = {kind.file: kind.sheet for kind in kinds}
    content = csv_text(columns=columns[name], rows=texts[name]) if form == CSV else json_text(
        sheets=texts, columns=columns)  # fmt: skip
    response = HttpResponse(content, content_type=_TYPES[form])
    response["Content-Disposition"] = f'attachment; filename="{name}-{clock.now():%Y-%m-%d}.{form}"'
    return response


def _rows(kind: Kind) -> Iterable[Any]:
    """Return what a file holds of a sort; of prices those in force."""
    rows: QuerySet[Any] = prices_in_force(now=clock.now()) if kind is PRICES else kind.model._default_manager.all()
    return rows.order_by(*kind.identity, "pk") if kind is not PRICES else rows
