"""The list of connections, and adding one (SPEC 5, 2)."""

from typing import Any

import msgspec
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from ladder.forms.connections import AddConnectionForm
from ladder.models import Connection
from ladder.selectors.connection_page import read_deleted_connections
from ladder.selectors.screen import read_labels
from ladder.services.connections import create_connection, resolve_provider
from ladder.views.connection_list import SORTS, Listed, list_asked, list_page, listed_of
from ladder.views.presenting.names import own_labels
from ladder.views.presenting.places import Around, PlaceRow, place_row
from ladder.views.seen import Seen, see_bare
from omniroute_admin.common import clock
from omniroute_admin.common.constraints import field_errors
from omniroute_admin.common.core.screen import iso_text
from omniroute_admin.common.core.words import clock_text
from omniroute_admin.common.errors import Conflict
from omniroute_admin.common.history import Actor
from omniroute_admin.common.views.guard import needs

DELETED_SHOWN = 200


class ListRow(msgspec.Struct, frozen=True):
    """One connection as the list shows it: the words of its lowest rung, and the rungs it stands on."""

    listed: Listed
    row: PlaceRow | None
    rungs: tuple[tuple[str, int], ...]


@needs("connections:read")
@never_cache
@require_safe
def connections_page(request: HttpRequest) -> HttpResponse:
    """Show the stored connections."""
    seen, asked = see_bare(now=clock.now()), list_asked(request.GET)
    rows = listed_of(snapshot=seen.snapshot, places=seen.occupancy.places, labels=own_labels(read_labels()))
    page = list_page(rows=rows, asked=asked)
    context: dict[str, Any] = {
        "section": "connections",
        "asked": asked,
        "page": page,
        "rows": [_row(one, seen) for one in page.rows],
        "sorts": SORTS.items(),
        "previous_query": asked.query(page=page.leaf.page - 1) if page.leaf.page > 1 else None,
        "next_query": asked.query(page=page.leaf.page + 1) if page.leaf.page < page.leaf.pages else None,
        "zone": seen.glance.zone_name,
        "revision": seen.occupancy.revision,
        "now_iso": iso_text(seen.glance.now),
        "now_clock": clock_text(at=seen.glance.now, now=seen.glance.now, zone=seen.glance.zone, seconds=True),
        "deleted": [(one, seen.glance.ago(one.deleted_at)) for one in _deleted() if one.deleted_at],
    }
    return render(request, "ladder/connection/list.html", context)


def _deleted() -> list[Connection]:
    return read_deleted_connections(limit=DELETED_SHOWN)


def _row(one: Listed, seen: Seen) -> ListRow:
    rungs = {rung.rung: rung for rung in seen.occupancy.rungs}
    around = Around(settings=seen.snapshot.facts.settings, glance=seen.glance)
    place = one.places[0] if one.places else None
    return ListRow(
        listed=one,
        row=place_row(place=place, rung=rungs[place.rung], around=around) if place else None,
        rungs=tuple((place.rung, place.rung_index) for place in one.places),
    )


@needs("connections:write")
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def add_connection(request: HttpRequest) -> HttpResponse:
    """Store a connection; sent twice, the second finds it there."""
    form = AddConnectionForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        made = _add(request, form)
        if made is not None:
            return redirect("connection", made.provider, made.connection_id)
    status = 400 if request.method == "POST" else 200
    return render(request, "ladder/connection/add.html", {"section": "connections", "form": form}, status=status)


def _add(request: HttpRequest, form: AddConnectionForm) -> Connection | None:
    values = dict(form.cleaned_data)
    reason = values.pop("reason").strip()
    actor = Actor(name=request.user.get_username(), user_id=request.user.pk)
    try:
        made = create_connection(**values, actor=actor, reason=reason, now=clock.now())
    except ValidationError as error:
        for bad in field_errors(error):
            name = bad.pointer.removeprefix("/")
            form.add_error(name if name in form.fields else None, bad.detail)
        return None
    except Conflict as conflict:
        found = _found(request, values)
        for bad in conflict.errors if found is None else ():
            form.add_error(bad.pointer.removeprefix("/"), bad.detail)
        return found
    messages.success(request, f"{made} is stored.")
    return made


def _found(request: HttpRequest, values: dict[str, Any]) -> Connection | None:
    """Return the connection where it is stored with just these values: the form came twice."""
    rows = Connection.objects.live().filter(
        connection_id=values["connection_id"], provider=resolve_provider(values["provider"])
    )
    row = rows.first()
    if row is None or row.label != values["label"] or row.excluded_models != values["excluded_models"]:
        return None
    messages.info(request, f"{row} is stored already: nothing was changed.")
    return row
