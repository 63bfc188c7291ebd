"""What is in use that nobody curated: consumed as metered until somebody does (B5; SPEC 5, 4)."""

from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

import msgspec
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from billing_catalog.models import BillingEntry
from ladder.core.values import Rung
from ladder.selectors.catalogue_use import Pair, Uncurated, find_uncurated
from ladder.views.paging import leaf_of, page_number
from omniroute_admin.common import clock
from omniroute_admin.common.core.screen import Glance, Moment
from omniroute_admin.common.core.words import money_text
from omniroute_admin.common.views.guard import needs
from omniroute_admin.common.zone import display_zone

PAGE_SIZE = 50


class Spent(msgspec.Struct, frozen=True):
    """Money spent on a rung, in words."""

    rung: str
    index: int
    usd: str


class Line(msgspec.Struct, frozen=True):
    """One line of the list; `url` opens the form that curates it, `is_entry` that of the entry that says unknown."""

    row: Uncurated
    total: str
    spent: tuple[Spent, ...]
    used: Moment | None
    url: str
    is_entry: bool


@needs("catalog:read")
@never_cache
@require_safe
def uncurated_page(request: HttpRequest) -> HttpResponse:
    """List the providers and auth types in use of which the catalogue answers unknown, the most money first."""
    seen = Glance(now=clock.now(), zone=display_zone())
    found = find_uncurated(now=seen.now)
    leaf = leaf_of(total=len(found), page=page_number(request.GET.get("page", "")), size=PAGE_SIZE)
    keys: dict[Pair, int] = {
        (row.provider, row.auth_type): row.pk for row in BillingEntry.objects.filter(billing="unknown")
    }
    context: dict[str, Any] = {
        "section": "catalogue",
        "tab": "uncurated",
        "title": "In use but uncurated",
        "zone": seen.zone_name,
        "lines": [_line(row, keys, seen) for row in found[leaf.part]],
        "leaf": leaf,
        "total": money_text(sum((row.spent_usd for row in found), start=Decimal(0))),
    }
    return render(request, "ladder/uncurated.html", context)


def _line(row: Uncurated, keys: dict[Pair, int], seen: Glance) -> Line:
    key = keys.get(row.entry) if row.entry is not None else None
    spent = tuple(Spent(one.rung, Rung[one.rung.upper()], money_text(one.usd)) for one in row.spent)
    return Line(
        row=row,
        total=money_text(row.spent_usd),
        spent=spent,
        used=seen.ago(row.last_used) if row.last_used else None,
        url=_new_url(row) if key is None else reverse("catalogue-row", args=["billing", key]),
        is_entry=key is not None,
    )


def _new_url(row: Uncurated) -> str:
    given = {"provider": row.provider, "auth_type": row.auth_type or ""}
    return f"{reverse('catalogue-new', args=['billing'])}?{urlencode(given)}"
