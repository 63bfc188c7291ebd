"""Which rows would exclude each other if two names meant one provider (SPEC 1)."""

from collections.abc import Iterator, Sequence

from django.apps import apps
from django.db import models
from django.db.models import Q, QuerySet
from simple_history.models import HistoricalChanges

from billing_catalog.models import ModelPrice
from billing_catalog.selectors.aliases import provider_fields


def models_with_providers() -> list[type[models.Model]]:
    """Return the models whose rows name a provider, those of higher apps among them, histories not."""
    # Found by column type: a higher app's rows are covered without this app knowing them.
    return [
        model
        for model in apps.get_models()
        if provider_fields(model=model) and not issubclass(model, HistoricalChanges) and not model._meta.proxy
    ]


def clashing_rows(*, alias: str, provider: str) -> list[models.Model]:
    """Return, as they are stored, the rows of both names that could not stand under one; prices have their own rule."""
    found: dict[tuple[type[models.Model], int], models.Model] = {}
    for model in models_with_providers():
        if model is not ModelPrice:
            for row in _clashes(model=model, names=(alias, provider)):
                found[model, row.pk] = row
    return list(found.values())


def superseded_prices(*, alias: str, provider: str) -> QuerySet[ModelPrice]:
    """Return the prices under an alias of models that the provider prices too, now or at any other time."""
    own = ModelPrice.objects.filter(provider=provider).order_by().values("model")
    return ModelPrice.objects.filter(provider=alias, model__in=own).order_by("pk")


def _clashes(*, model: type[models.Model], names: Sequence[str]) -> Iterator[models.Model]:
    for name, others, condition in _identities(model):
        rows = model._default_manager.filter(condition or Q(), **{f"{name}__in": names}).order_by("pk")
        groups: dict[tuple[object, ...], list[models.Model]] = {}
        for row in rows:
            key = tuple(getattr(row, other) for other in others)
            if None not in key:  # to a database, two nulls are never the same
                groups.setdefault(key, []).append(row)
        for group in groups.values():
            if len(group) > 1:
                yield from group


def _identities(model: type[models.Model]) -> Iterator[tuple[str, list[str], Q | None]]:
    """Yield what may stand only once per provider: its column, the columns beside it, and among which rows."""
    for name in provider_fields(model=model):
        if model._meta.get_field(name).unique:  # type: ignore[union-attr]
            yield name, [], None
        for constraint in model._meta.constraints:
            if isinstance(constraint, models.UniqueConstraint) and name in constraint.fields:
                others = [model._meta.get_field(one).attname for one in constraint.fields if one != name]  # type: ignore[union-attr]
                yield name, others, constraint.condition
