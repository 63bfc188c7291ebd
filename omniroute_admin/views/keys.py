"""The page of keys: who holds one, what it may, and making and revoking them (SPEC 4; 5, 8)."""

from datetime import datetime
from typing import Any

import msgspec
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.cache import add_never_cache_headers
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods, require_safe

from ladder.views.paging import leaf_of, page_number
from omniroute_admin.common import clock
from omniroute_admin.common.core.roles import KEYS_WRITE
from omniroute_admin.common.core.screen import Glance, Moment
from omniroute_admin.common.errors import ProductError
from omniroute_admin.common.history import Actor
from omniroute_admin.common.models import ApiKey
from omniroute_admin.common.scopes import rights_of_user
from omniroute_admin.common.selectors.key_list import KEY_STATES, LIVE, keys_in, state_of_key
from omniroute_admin.common.sent import note_sent
from omniroute_admin.common.services.keys import create_key, revoke_key
from omniroute_admin.common.services.revision import deciding_write
from omniroute_admin.common.views.guard import needs
from omniroute_admin.common.zone import display_zone
from omniroute_admin.forms import NewKeyForm, RevokeForm

PAGE_SIZE = 50
_SHAPES = {LIVE: ("usable", "usable"), "expired": ("stale", "stale"), "revoked": ("off", "off")}
_HIGHEST_ID = 2**31 - 1


class KeyRow(msgspec.Struct, frozen=True):
    """One key as the list shows it; what has no instant is None."""

    key: Any
    state: str
    shape: str
    tone: str
    made: Moment
    expires: Moment | None
    used: Moment | None
    revoked: Moment | None


@needs(KEYS_WRITE)
@never_cache
@require_safe
def keys_page(request: HttpRequest) -> HttpResponse:
    """List the keys, the newest first, by state."""
    state = request.GET.get("state", "")
    state = state if state in KEY_STATES else ""
    now = clock.now()
    found = keys_in(state=state, now=now)
    leaf = leaf_of(total=found.count(), page=page_number(request.GET.get("page", "1")), size=PAGE_SIZE)
    context = {
        "section": "keys",
        "zone": display_zone().key,
        "state": state,
        "states": KEY_STATES,
        "leaf": leaf,
        "rows": [row_of(key, now=now) for key in found[leaf.part]],
    }
    return render(request, "keys/keys.html", context)


@needs(KEYS_WRITE)
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def new_key_page(request: HttpRequest) -> HttpResponse:
    """Ask for a new key; sent, make it and show its text, this once.

    The answer to the form shows it, as an address of its own would have to keep the text until it is asked for.
    """
    now = clock.now()
    sent = request.POST if request.method == "POST" else None
    form = NewKeyForm(sent, rights=rights_of_user(request.user), zone=display_zone(), now=now)
    if form.is_valid():
        return _make(request, form, now=now)
    return _new(request, form, status=400 if form.is_bound else 200)


@needs(KEYS_WRITE)
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def revoke_page(request: HttpRequest, key_id: int) -> HttpResponse:
    """Ask whether a key is to be revoked, and why; sent, revoke it. One that is revoked stays as it is."""
    key = get_object_or_404(ApiKey.objects.defer("secret_hash"), pk=min(key_id, _HIGHEST_ID))
    now = clock.now()
    form = RevokeForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and key.revoked_at is not None:
        messages.info(request, f"{key.name} was revoked before; nothing was changed.")
        return redirect("keys")
    if form.is_valid():
        revoke_key(key=key, actor=_actor(request), reason=form.cleaned_data["reason"], now=now)
        messages.success(request, f"{key.name} is revoked. It is refused from now on.")
        return redirect("keys")
    context = {"section": "keys", "zone": display_zone().key, "row": row_of(key, now=now), "form": form}
    return render(request, "keys/revoke.html", context, status=400 if form.is_bound else 200)


def row_of(key: ApiKey, *, now: datetime) -> KeyRow:
    """Return a key as the list shows it."""
    glance, state = Glance(now=now, zone=display_zone()), state_of_key(key=key, now=now)
    shape, tone = _SHAPES[state]
    return KeyRow(
        key=key,
        state=state,
        shape=shape,
        tone=tone,
        made=glance.ago(key.created_at),
        expires=_moment(glance, key.expires_at),
        used=_moment(glance, key.last_used_at),
        revoked=_moment(glance, key.revoked_at),
    )


def _moment(glance: Glance, at: datetime | None) -> Moment | None:
    if at is None:
        return None
    return glance.until(at) if at > glance.now else glance.ago(at)


@sensitive_variables("secret")
def _make(request: HttpRequest, form: NewKeyForm, *, now: datetime) -> HttpResponse:
    data = form.cleaned_data
    try:
        with deciding_write():
            note_sent(request, form_name=data["form_name"])
            key, secret = create_key(
                name=data["name"],
                scopes=data["scopes"],
                expires_at=data["expires_at"],
                actor=_actor(request),
                reason=data["reason"],
                now=now,
            )
    except (ProductError, ValidationError) as error:
        detail = error.detail if isinstance(error, ProductError) else " ".join(error.messages)
        return _new(request, form, refused=detail, status=409)
    context = {"section": "keys", "zone": display_zone().key, "row": row_of(key, now=now), "secret": secret}
    response = render(request, "keys/made.html", context)
    add_never_cache_headers(response)
    return response


def _new(request: HttpRequest, form: NewKeyForm, *, refused: str = "", status: int = 200) -> HttpResponse:
    context = {"section": "keys", "zone": display_zone().key, "form": form, "refused": refused}
    return render(request, "keys/new.html", context, status=status)


def _actor(request: HttpRequest) -> Actor:
    return Actor(name=request.user.get_username(), user_id=request.user.pk)
