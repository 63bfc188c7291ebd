"""Lists of the catalogue: filtered and ordered by the database, a page at a time (SPEC 5, 4)."""

from collections.abc import Collection, Mapping
from datetime import date, datetime, timedelta
from typing import Any

import msgspec
from django.db.models import F, Q, QuerySet

from billing_catalog.core.review import OLD_AFTER_DAYS, ReviewAge
from billing_catalog.models import BillingEntry, ModelPrice
from billing_catalog.selectors.prices import prices_in_force

MAY_BILL = Q(billing="subscription") & ~Q(overage="hard-stop")
"""A plan that bills past its allowance, or may."""


class EntryQuery(msgspec.Struct, frozen=True):
    """Which billing entries are asked for, and in which order; an empty filter asks for all."""

    text: str = ""
    provider: str = ""
    billing: Collection[str] = frozenset()
    overage: Collection[str] = frozenset()
    review: Collection[str] = frozenset()
    origin: Collection[str] = frozenset()
    sort: str = ""


ENTRY_ORDERS: Mapping[str, tuple[Any, ...]] = {
    "": ("provider", F("auth_type").asc(nulls_first=True), "pk"),
    "review": (F("reviewed_on").asc(nulls_first=True), "provider", "pk"),
    "changed": ("-updated_at", "-pk"),
}


def entries_asked(*, asked: EntryQuery, today: date) -> QuerySet[BillingEntry]:
    """Return the billing entries that are asked for."""
    rows = BillingEntry.objects.all()
    if asked.text:
        fields = ("provider", "auth_type", "reason", "source_url", "reviewed_by")
        rows = rows.filter(_any_holds(fields, asked.text))
    if asked.provider:
        rows = rows.filter(provider=asked.provider)
    for name in ("billing", "overage", "origin"):
        if chosen := getattr(asked, name):
            rows = rows.filter(**{f"{name}__in": chosen})
    if asked.review:
        rows = rows.filter(_reviewed(asked.review, today))
    return rows.order_by(*ENTRY_ORDERS.get(asked.sort, ENTRY_ORDERS[""]))


def _reviewed(ages: Collection[str], today: date) -> Q:
    edge = today - timedelta(days=OLD_AFTER_DAYS)
    ways = {
        ReviewAge.NEVER: Q(reviewed_on__isnull=True),
        ReviewAge.OLD: Q(reviewed_on__lt=edge),
        ReviewAge.FRESH: Q(reviewed_on__gte=edge),
    }
    found = Q(pk__in=[])
    for age, way in ways.items():
        found = found | way if age in ages else found
    return found


def _any_holds(fields: Collection[str], text: str) -> Q:
    found = Q(pk__in=[])
    for name in fields:
        found |= Q(**{f"{name}__icontains": text})
    return found


def rows_holding(*, rows: QuerySet[Any], fields: Collection[str], text: str) -> QuerySet[Any]:
    """Return the rows of which one of the fields holds a text, in any case."""
    return rows.filter(_any_holds(fields, text)) if text else rows


class PriceQuery(msgspec.Struct, frozen=True):
    """Which current prices are asked for; `known` is "" for all, `yes` with an input price, `no` without, `zero`."""

    text: str = ""
    provider: str = ""
    source: str = ""
    known: str = ""
    sort: str = ""


PRICE_ORDERS: Mapping[str, tuple[Any, ...]] = {
    "": (F("rank").asc(nulls_last=True), "provider", "model", "pk"),
    "model": ("model", "provider", "pk"),
    "cheapest": (F("input_usd_per_million").asc(nulls_last=True), "provider", "model", "pk"),
    "dearest": (F("input_usd_per_million").desc(nulls_first=True), "provider", "model", "pk"),
    "since": ("-effective_from", "provider", "model", "pk"),
}

_KNOWN = {
    "yes": Q(input_usd_per_million__isnull=False),
    "no": Q(input_usd_per_million__isnull=True),
    "zero": Q(input_usd_per_million=0),
}


def prices_asked(*, asked: PriceQuery, now: datetime) -> QuerySet[ModelPrice]:
    """Return the prices in force that are asked for."""
    rows = rows_holding(rows=prices_in_force(now=now), fields=("model", "provider"), text=asked.text)
    if asked.provider:
        rows = rows.filter(provider=asked.provider)
    if asked.source:
        rows = rows.filter(source=asked.source)
    return rows.filter(_KNOWN.get(asked.known, Q())).order_by(*PRICE_ORDERS.get(asked.sort, PRICE_ORDERS[""]))


def price_choices(*, now: datetime) -> tuple[list[str], list[str]]:
    """Return the providers that have a price in force, and the sources of those prices."""
    pairs = list(prices_in_force(now=now).order_by().values_list("provider", "source").distinct())
    return sorted({provider for provider, _ in pairs}), sorted({source for _, source in pairs})


def prices_of_model(*, provider: str, model: str) -> list[ModelPrice]:
    """Return every price a model ever had or will have, the latest first."""
    return list(ModelPrice.objects.filter(provider=provider, model=model).order_by("-effective_from", "-pk"))
