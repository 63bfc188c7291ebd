"""The lists of the catalogue: billing entries, tier overrides, free providers, aliases, price sources (SPEC 5, 4)."""

from collections.abc import Mapping
from typing import Any

import msgspec
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from billing_catalog.choices import BILLING_CHOICES, ORIGIN_CHOICES, OVERAGE_CHOICES
from billing_catalog.core.review import OLD_AFTER_DAYS, ReviewAge
from billing_catalog.models import BillingEntry
from billing_catalog.selectors.listing import ENTRY_ORDERS, EntryQuery, entries_asked, rows_holding
from billing_catalog.services.kinds import ALIASES, FREE_PROVIDERS, PRICE_SOURCES, TIER_OVERRIDES, Kind
from billing_catalog.views.parts import chosen, frame, glance, leaf_of, text_of, word_of
from billing_catalog.views.presenting import entry_line, today
from omniroute_admin.common.views.guard import needs

FILTERS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "billing": tuple(BILLING_CHOICES),
    "overage": tuple(OVERAGE_CHOICES),
    "review": (
        (ReviewAge.NEVER.value, "never reviewed"),
        (ReviewAge.OLD.value, f"older than {OLD_AFTER_DAYS} days"),
        (ReviewAge.FRESH.value, f"within {OLD_AFTER_DAYS} days"),
    ),
    "origin": tuple(ORIGIN_CHOICES),
}
SORTS = (("", "Provider"), ("review", "Oldest review first"), ("changed", "Last changed first"))


@needs("catalog:read")
@never_cache
@require_safe
def billing_list(request: HttpRequest) -> HttpResponse:
    """List the billing entries, each with its marks and the age of its review."""
    seen, asked = glance(), _asked(request)
    turned = leaf_of(request, entries_asked(asked=asked, today=today(seen)))
    context = {
        "asked": asked,
        "lines": [entry_line(row, seen=seen) for row in turned["leaf"]],
        "filters": _filters(asked),
        "sorts": SORTS,
        "providers": list(BillingEntry.objects.order_by("provider").values_list("provider", flat=True).distinct()),
        "is_filtered": asked != EntryQuery(sort=asked.sort),
    }
    page = frame(tab="billing", title="Billing entries", seen=seen)
    return render(request, "billing_catalog/billing.html", page | turned | context)


def _asked(request: HttpRequest) -> EntryQuery:
    known = {name: chosen(request, name, [word for word, _ in words]) for name, words in FILTERS.items()}
    return EntryQuery(
        text=text_of(request, "q"),
        provider=text_of(request, "provider"),
        sort=word_of(request, "sort", ENTRY_ORDERS),
        **known,
    )


class Chip(msgspec.Struct, frozen=True):
    """One value of a filter."""

    name: str
    value: str
    word: str
    is_checked: bool


def _filters(asked: EntryQuery) -> dict[str, list[Chip]]:
    return {
        name: [Chip(name, value, word, value in getattr(asked, name)) for value, word in words]
        for name, words in FILTERS.items()
    }


LEADS = {
    TIER_OVERRIDES.key: "An override decides the economic tier before any price: of the whole provider first, then of "
    "the models a pattern matches; of several that match, the one made first.",
    FREE_PROVIDERS.key: "Every model of these providers is free, whatever it costs, unless an override says otherwise.",
    ALIASES.key: "Another name of a provider. Adding one rewrites every row that stands under that name, once.",
    PRICE_SOURCES.key: "Which price list serves which provider, and who sells seats: there a price of 0 is no price.",
}
SEARCHED = {
    TIER_OVERRIDES.key: ("provider", "model_pattern", "tier"),
    FREE_PROVIDERS.key: ("provider", "reason"),
    ALIASES.key: ("alias", "provider"),
    PRICE_SOURCES.key: ("provider", "price_list", "capability_list"),
}
EMPTY_WORDS = {
    TIER_OVERRIDES.key: {"model_pattern": "the whole provider"},
    PRICE_SOURCES.key: {"price_list": "none", "capability_list": "none"},
}


@needs("catalog:read")
@never_cache
@require_safe
def row_list(request: HttpRequest, kind: Kind) -> HttpResponse:
    """List the rows of one of the smaller sorts."""
    seen, text = glance(), text_of(request, "q")
    rows = kind.model._default_manager.order_by("provider", "pk")
    turned = leaf_of(request, rows_holding(rows=rows, fields=SEARCHED[kind.key], text=text))
    context = {
        "kind": kind,
        "lead": LEADS[kind.key],
        "text": text,
        "lines": [_line(kind, row, seen) for row in turned["leaf"]],
    }
    page = frame(tab=kind.key, title=kind.many.capitalize(), seen=seen)
    return render(request, "billing_catalog/rows.html", page | turned | context)


def _line(kind: Kind, row: Any, seen: Any) -> dict[str, Any]:
    words = EMPTY_WORDS.get(kind.key, {})
    cells = []
    for column in kind.columns:
        value = getattr(row, column.name)
        shown = {True: "yes", False: "no"}[value] if isinstance(value, bool) else value or ""
        cells.append({"label": column.label, "text": shown, "empty": words.get(column.name, ""),
                      "is_code": column.form in {"name", "pattern"}})  # fmt: skip
    return {"row": row, "first": cells[0], "cells": cells[1:], "changed": seen.ago(row.updated_at)}
