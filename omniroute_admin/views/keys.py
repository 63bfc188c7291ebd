"""The page of keys: who holds one, what it may, and making one (SPEC 4; 5, 8)."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import add_never_cache_headers
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods, require_safe

from ladder.views.paging import leaf_of, page_number
from omniroute_admin.common import clock
from omniroute_admin.common.core.roles import KEYS_WRITE
from omniroute_admin.common.core.screen import Glance, Moment
from omniroute_admin.common.errors import Forbidden, ProductError
from omniroute_admin.common.history import Actor
from omniroute_admin.common.models import ApiKey
from omniroute_admin.common.scopes import rights_of_user
from omniroute_admin.common.selectors.key_list import (
    ENDED_STATES,
    EXPIRED,
    KEY_STATES,
    LIVE,
    REPLACED,
    REVOKED,
    is_unused,
    keys_in,
    state_of_key,
)
from omniroute_admin.common.sent import note_sent
from omniroute_admin.common.services.keys import create_key
from omniroute_admin.common.services.revision import deciding_write
from omniroute_admin.common.views.guard import needs
from omniroute_admin.common.zone import display_zone
from omniroute_admin.forms import NewKeyForm

PAGE_SIZE = 50
_ENDED = ("off", "off")
_SHAPES = {LIVE: ("usable", "usable"), EXPIRED: ("stale", "stale"), REPLACED: _ENDED, REVOKED: _ENDED}


class KeyRow(msgspec.Struct, frozen=True):
    """One key as the list shows it; what has no instant is None.

    `lost` are the scopes it was given and has not, as its maker has them no more. `goes_on` is the end of a key that
    was rotated.
    """

    key: Any
    state: str
    shape: str
    tone: str
    made: Moment
    expires: Moment | None
    used: Moment | None
    revoked: Moment | None
    goes_on: Moment | None
    lost: list[str]
    is_unused: bool

    @property
    def has_ended(self) -> bool:
        """Tell whether no edit brings it back."""
        return self.state in ENDED_STATES


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
        goes_on=_moment(glance, key.replaced_until),
        lost=[scope for scope in key.scopes if scope not in key.granted],
        is_unused=state == LIVE and is_unused(key=key, now=now),
    )


def _moment(glance: Glance, at: datetime | None) -> Moment | None:
    if at is None:
        return None
    return glance.until(at) if at > glance.now else glance.ago(at)


@sensitive_variables("secret")
def _make(request: HttpRequest, form: NewKeyForm, *, now: datetime) -> HttpResponse:
    data = form.cleaned_data
    named = {name: data[name] for name in ("name", "scopes", "expires_at", "calls_per_minute", "reason")}
    try:
        with deciding_write():
            note_sent(request, form_name=data["form_name"])
            key, secret = create_key(**named, actor=actor_of(request), now=now)
    except (ProductError, ValidationError) as error:
        return refused(error, lambda **more: _new(request, form, **more))
    return show_once(request, key=key, secret=secret, now=now)


def show_once(
    request: HttpRequest, *, key: ApiKey, secret: str, now: datetime, old: ApiKey | None = None
) -> HttpResponse:
    """Return the one page that shows the text of a key; `old` is the one it takes the place of."""
    rows = {"row": row_of(key, now=now), "old": None if old is None else row_of(old, now=now)}
    response = render(
        request, "keys/made.html", {"section": "keys", "zone": display_zone().key, "secret": secret, **rows}
    )
    add_never_cache_headers(response)
    return response


def refused(error: ProductError | ValidationError, show: Callable[..., HttpResponse]) -> HttpResponse:
    """Show a form again with what the service refused: 403 where it is beyond the sender's rights, else 409."""
    if isinstance(error, ValidationError):
        return show(refused=" ".join(error.messages), status=409)
    words = " ".join([error.detail, *(f"{bad.sentence()}." for bad in error.errors)])
    response = show(refused=words, status=403 if isinstance(error, Forbidden) else 409)
    response.denied = error.code  # type: ignore[attr-defined] # for the log
    return response


def _new(request: HttpRequest, form: NewKeyForm, *, refused: str = "", status: int = 200) -> HttpResponse:
    context = {"section": "keys", "zone": display_zone().key, "form": form, "refused": refused}
    return render(request, "keys/new.html", context, status=status)


def actor_of(request: HttpRequest) -> Actor:
    """Return the signed-in user as who acts."""
    return Actor(name=request.user.get_username(), user_id=request.user.pk)
