"""What is done to a key that is there: edited, rotated, revoked; each asks why (SPEC 4; 5, 8)."""

from datetime import timedelta
from typing import Any

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods

from omniroute_admin.common import clock
from omniroute_admin.common.core.roles import KEYS_WRITE
from omniroute_admin.common.errors import ProductError
from omniroute_admin.common.models import ApiKey
from omniroute_admin.common.scopes import rights_of_user
from omniroute_admin.common.selectors.key_list import keys_in
from omniroute_admin.common.sent import note_sent
from omniroute_admin.common.services.key_rotation import rotate_key, why_not_rotated
from omniroute_admin.common.services.keys import edit_key, revoke_key
from omniroute_admin.common.services.revision import deciding_write
from omniroute_admin.common.views.guard import needs
from omniroute_admin.common.zone import display_zone
from omniroute_admin.forms import EditKeyForm, RevokeForm, RotateForm
from omniroute_admin.views.keys import actor_of, refused, row_of, show_once

_HIGHEST_ID = 2**31 - 1
_EDITED = ("name", "scopes", "calls_per_minute", "expires_at", "seen", "reason")


@needs(KEYS_WRITE)
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def edit_page(request: HttpRequest, key_id: int) -> HttpResponse:
    """Show what can be changed of a key; sent, change it. Who does answers for the key from then on."""
    key, now = _key(key_id), clock.now()
    sent = request.POST if request.method == "POST" else None
    form = EditKeyForm(sent, key=key, rights=rights_of_user(request.user), zone=display_zone(), now=now)
    if not form.is_valid():
        return _show(request, "keys/edit.html", key, form, status=400 if form.is_bound else 200)
    given = {name: form.cleaned_data[name] for name in _EDITED}
    try:
        kept = edit_key(key_id=key.pk, **given, actor=actor_of(request), now=now)
    except (ProductError, ValidationError) as error:
        return refused(error, lambda **more: _show(request, "keys/edit.html", key, form, **more))
    messages.success(request, f"{kept.name} is changed. What it may counts from now on.")
    return redirect("keys")


@needs(KEYS_WRITE)
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_variables("secret")
def rotate_page(request: HttpRequest, key_id: int) -> HttpResponse:
    """Ask how long the old key goes on, and why; sent, make the new one and show its text, this once."""
    key, now = _key(key_id), clock.now()
    form = RotateForm(request.POST if request.method == "POST" else None)
    if not form.is_valid():
        return _show(request, "keys/rotate.html", key, form, status=400 if form.is_bound else 200)
    data = form.cleaned_data
    how: dict[str, Any] = {"overlap": timedelta(hours=data["overlap"]), "anyway": data["anyway"]}
    try:
        with deciding_write():
            note_sent(request, form_name=data["form_name"])
            by = {"actor": actor_of(request), "reason": data["reason"], "now": now}
            old, new, secret = rotate_key(key_id=key.pk, **how, **by)
    except (ProductError, ValidationError) as error:
        return refused(error, lambda **more: _show(request, "keys/rotate.html", key, form, **more))
    return show_once(request, key=new, secret=secret, now=now, old=old)


@needs(KEYS_WRITE)
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def revoke_page(request: HttpRequest, key_id: int) -> HttpResponse:
    """Ask whether a key is to be revoked, and why; sent, revoke it. One that is revoked stays as it is."""
    key = _key(key_id)
    now = clock.now()
    form = RevokeForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and key.revoked_at is not None:
        messages.info(request, f"{key.name} was revoked before; nothing was changed.")
        return redirect("keys")
    if form.is_valid():
        revoke_key(key=key, actor=actor_of(request), reason=form.cleaned_data["reason"], now=now)
        messages.success(request, f"{key.name} is revoked. It is refused from now on.")
        return redirect("keys")
    context = {"section": "keys", "zone": display_zone().key, "row": row_of(key, now=now), "form": form}
    return render(request, "keys/revoke.html", context, status=400 if form.is_bound else 200)


def _key(key_id: int) -> ApiKey:
    now = clock.now()
    return get_object_or_404(keys_in(state="", now=now), pk=min(key_id, _HIGHEST_ID))


def _show(
    request: HttpRequest, page: str, key: ApiKey, form: Any, *, refused: str = "", status: int = 200
) -> HttpResponse:
    now = clock.now()
    context = {
        "row": row_of(key, now=now),
        "form": form,
        "refused": refused,
        "known": why_not_rotated(key=key, now=now),
    }
    return render(request, page, {"section": "keys", "zone": display_zone().key, **context}, status=status)
