"""The rows and versions of the catalogue that an event may be judged by. Every body of events asks these queries."""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

from django.db import models
from django.db.models import Q, QuerySet

from billing_catalog.mapping import PRICE_COLUMNS
from billing_catalog.models import BillingEntry, FreeProvider, ModelPrice, PriceSource, TierOverride
from omniroute_admin.common.selectors.compiled import Compiled

_FIELDS: dict[type[models.Model], list[str]] = {
    BillingEntry: ["provider", "auth_type", "billing", "overage"],
    TierOverride: ["provider", "tier", "model_pattern"],
    FreeProvider: ["provider"],
    PriceSource: ["provider", "sells_seats"],
}
Names = Sequence[str] | None
"""Providers by every name that ever meant them; None for all."""


class Kept:
    """A query about the rows of a model that speak of some providers; its SQL is made once for each number of names."""

    def __init__(self, build: Callable[[type[models.Model], Names], "QuerySet[Any, Any]"]) -> None:
        """Take what makes the query."""
        self._build = build
        self._compiled = {model: Compiled(partial(build, model)) for model in _FIELDS}

    def rows(self, *, model: type[models.Model], names: Collection[str] | None) -> list[tuple[Any, ...]]:
        """Return the rows that speak of these providers, by every name that ever meant them; of all for None."""
        return list(self._build(model, None)) if names is None else self._compiled[model].rows(sorted(names))


def every_price() -> "QuerySet[Any, Any]":
    """Return all prices there ever were, in the order of the fields of a `Price`."""
    return ModelPrice.objects.order_by("id").values_list(*PRICE_COLUMNS)


def prices_of(*, providers: Collection[str], models: Collection[str]) -> list[tuple[Any, ...]]:
    """Return the prices that there ever were of some models of some providers."""
    return _PRICES.rows([*sorted(providers), *sorted(models)], len(providers)) if providers and models else []


def _prices(texts: Sequence[str], providers: int) -> "QuerySet[Any, Any]":
    """Return the query of the prices; the providers come first among the texts."""
    return every_price().filter(provider__in=texts[:providers], model__in=texts[providers:])


def _present(model: type[models.Model], names: Names) -> "QuerySet[Any, Any]":
    """Return the query of the rows that speak of these providers now: id and what it says."""
    rows = model._default_manager.order_by("id")
    return (rows if names is None else rows.filter(provider__in=names)).values_list("id", *_FIELDS[model])


def _ever(model: type[models.Model], names: Names) -> "QuerySet[Any, Any]":
    """Return the query of the rows that there are now, of those that ever spoke of these providers."""
    rows = model._default_manager.order_by("id")
    if names is not None:
        rows = rows.filter(Q(provider__in=names) | Q(id__in=_ids(model, names)))
    return rows.values_list("id", *_FIELDS[model])


def _written(model: type[models.Model], names: Names) -> "QuerySet[Any, Any]":
    """Return the query of every version of the rows that ever spoke of these providers: id, when, act, values."""
    rows = _versions(model).order_by("history_id")
    if names is not None:
        rows = rows.filter(id__in=_ids(model, names))
    return rows.values_list("id", "history_date", "history_type", *_FIELDS[model])


def _ids(model: type[models.Model], names: Sequence[str]) -> "QuerySet[Any, Any]":
    return _versions(model).filter(provider__in=names).order_by().values("id")


def _versions(model: type[models.Model]) -> "QuerySet[Any, Any]":
    found: QuerySet[Any, Any] = model.history.model.objects.all()  # type: ignore[attr-defined]
    return found


PRESENT, EVER, WRITTEN = Kept(_present), Kept(_ever), Kept(_written)
_PRICES = Compiled(_prices)
