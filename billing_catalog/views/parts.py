"""What the catalogue's pages share: who acts, the zone, pages of a list, and the way back after a change."""

from collections.abc import Iterable
from typing import Any

from django.contrib import messages
from django.core.paginator import Page, Paginator
from django.db import models
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html

from billing_catalog.services.kinds import By, Kind
from omniroute_admin.common import clock
from omniroute_admin.common.core.screen import Glance
from omniroute_admin.common.history import Actor
from omniroute_admin.common.zone import display_zone

PAGE_SIZE = 50


def glance() -> Glance:
    """Return when and where a page is looked at."""
    return Glance(now=clock.now(), zone=display_zone())


def by_of(request: HttpRequest, reason: str) -> By:
    """Return who writes, why and when."""
    return By(actor=Actor(name=request.user.get_username(), user_id=request.user.pk), reason=reason, now=clock.now())


def frame(*, tab: str, title: str, seen: Glance) -> dict[str, Any]:
    """Return what every page of the catalogue is drawn with."""
    return {"section": "catalogue", "tab": tab, "title": title, "zone": seen.zone_name, "glance": seen}


def leaf_of(request: HttpRequest, rows: QuerySet[Any]) -> dict[str, Any]:
    """Return the page of a list that is asked for, and the queries of those beside it; a strange page is the first."""
    leaf: Page[Any] = Paginator(rows, PAGE_SIZE).get_page(request.GET.get("page"))
    query = request.GET.copy()
    turns = {}
    for name, is_there in (("previous", leaf.has_previous()), ("next", leaf.has_next())):
        query["page"] = str(leaf.number + (1 if name == "next" else -1))
        turns[f"{name}_query"] = query.urlencode() if is_there else None
    return {"leaf": leaf, **turns}


def chosen(request: HttpRequest, name: str, known: Iterable[str]) -> frozenset[str]:
    """Return the values of a filter that are known."""
    return frozenset(request.GET.getlist(name)) & frozenset(known)


def word_of(request: HttpRequest, name: str, known: Iterable[str]) -> str:
    """Return one known word of the query, else none."""
    word = request.GET.get(name, "")
    return word if word in set(known) else ""


def text_of(request: HttpRequest, name: str) -> str:
    """Return a text to look for: without zeros, which no column holds, and not without end."""
    return request.GET.get(name, "").replace("\x00", "").strip()[:200]


def soft_reverse(name: str, *args: Any) -> str:
    """Return the address of a page that another part of the console has; empty where there is none."""
    try:
        return reverse(name, args=args)
    except NoReverseMatch:
        return ""


def say_done(request: HttpRequest, *, what: str, undo: str) -> None:
    """Tell that a change was saved, with the way back."""
    link = format_html(' <a href="{}">Undo</a>', undo) if undo else ""
    messages.success(request, format_html('<span dir="auto">{}</span>{}', what, link))


def version_before(row: models.Model, *, key: str, steps: int = 1) -> str:
    """Return the address of the version of a row `steps` before its last one, where one goes back to it."""
    past = type(row).history.filter(id=row.pk).order_by("-history_id")  # type: ignore[attr-defined]
    ids = list(past.values_list("history_id", flat=True)[: steps + 1])
    return soft_reverse("history-version", key, ids[steps]) if len(ids) > steps else ""


def way_back(kind: Kind, row: models.Model, *, was_made: bool) -> str:
    """Return where a change of a row is undone: the version before it, or the page that deletes what was made."""
    if was_made:
        return reverse("catalogue-delete", args=[kind.key, row.pk])
    return version_before(row, key=kind.key)
