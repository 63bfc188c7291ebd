"""Settings as a file in OmniRoute's form: taken out, and read in as a form that shows what differs (SPEC 2)."""

import msgspec
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe
from msgspec import UNSET

from ladder.api.settings import omniroute_document
from ladder.forms.tuning import LABELS, TuningForm, inputs_of
from ladder.selectors.settings import read_stored_settings
from ladder.selectors.tuning import amount_text, texts_of
from ladder.services.settings import OmnirouteSettings
from ladder.views.presenting.tuning import value_words
from ladder.views.tuning import show_settings
from omniroute_admin.common import clock
from omniroute_admin.common.bodies import decode
from omniroute_admin.common.core.numbers import decimal_text
from omniroute_admin.common.errors import ProductError
from omniroute_admin.common.forms import seen_text
from omniroute_admin.common.selectors.revision import read_snapshot
from omniroute_admin.common.views.guard import needs

MOST_BYTES = 64 * 1024
_OMNIROUTE = msgspec.json.Decoder(OmnirouteSettings)
_BOM = b"\xef\xbb\xbf"


@needs("settings:read")
@never_cache
@require_safe
def export(request: HttpRequest) -> HttpResponse:
    """Return the settings as a file."""
    with read_snapshot():
        document = omniroute_document(read_stored_settings())
    body = msgspec.json.format(msgspec.json.encode(document), indent=2)
    headers = {"Content-Disposition": 'attachment; filename="omniroute-settings.json"'}
    return HttpResponse(body + b"\n", content_type="application/json", headers=headers)


@needs("settings:write")
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def read_in(request: HttpRequest) -> HttpResponse:
    """Show what a file would change; saving it is the page's own save, with a reason."""
    if request.method != "POST":
        return redirect("tuning")
    now, errors = clock.now(), []
    try:
        named = _texts(_content(request.FILES.get("file")))
    except ProductError as refused:
        errors = [error.sentence() for error in refused.errors] or [refused.detail]
        return show_settings(request, now=now, extra={"refused": errors}, status=400)
    stored = texts_of(read_stored_settings())
    form = TuningForm({**inputs_of({**stored, **named}), "seen": seen_text(stored)})
    form.is_valid()
    form.errors.pop("reason", None)
    differing = [
        (LABELS[name], value_words(name, stored[name]), value_words(name, text))
        for name, text in named.items()
        if text != stored[name]
    ]
    imported = {"differing": differing, "same": len(named) - len(differing)}
    return show_settings(request, now=now, form=form, began=stored, extra={"imported": imported})


def _content(file: UploadedFile | None) -> bytes:
    """Return what was uploaded.

    Raises:
        BadRequest: nothing was, or it is larger than any such file.
    """
    if file is None:
        raise _refused("Choose a file first.")
    if (file.size or 0) > MOST_BYTES:
        raise _refused(f"The file has more than {MOST_BYTES // 1024} KB; settings have a few lines.")
    return file.read().removeprefix(_BOM)


def _refused(detail: str) -> ProductError:
    return ProductError(detail)


def _texts(content: bytes) -> dict[str, str]:
    """Return the settings that a file names, as texts; what it leaves out stays as it is stored."""
    ladder = decode(body=content, decoder=_OMNIROUTE).subscription_ladder
    named = {
        "exit_cutoff_percent": ladder.exit_cutoff_percent,
        "reentry_min_remaining_percent": ladder.reentry_min_remaining_percent,
    }
    texts = {name: decimal_text(value) for name, value in named.items() if not isinstance(value, msgspec.UnsetType)}
    if isinstance(ladder.rung_budget_usd, msgspec.UnsetType):
        return texts
    for rung in ("cheap", "premium"):
        amount = getattr(ladder.rung_budget_usd, rung)
        if amount is not UNSET:
            texts[f"{rung}_amount"] = amount_text(amount)
    return texts
