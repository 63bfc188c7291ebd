"""Reading prices (SPEC 3: append-only, with effective from and to)."""

from collections.abc import Iterable
from datetime import datetime

from django.db.models import F, Q, QuerySet

from billing_catalog.models import ModelPrice


def prices_in_force(*, now: datetime) -> QuerySet[ModelPrice]:
    """Return the price rows that act at an instant, in the order of a stored pool (SPEC 4)."""
    return ModelPrice.objects.filter(
        Q(effective_to__isnull=True) | Q(effective_to__gt=now), effective_from__lte=now
    ).order_by(F("rank").asc(nulls_last=True), "provider", "model")


def prices_ahead(*, now: datetime, providers: Iterable[str]) -> list[ModelPrice]:
    """Return the rows of some providers that act now or later, the earliest first."""
    rows = ModelPrice.objects.filter(Q(effective_to__isnull=True) | Q(effective_to__gt=now))
    return list(rows.filter(provider__in=list(providers)).order_by("provider", "model", "effective_from"))
