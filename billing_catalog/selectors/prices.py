"""Reading prices (SPEC 3: append-only, with effective from and to)."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import groupby, pairwise

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


def overlapping_prices(*, provider: str) -> list[ModelPrice]:
    """Return the rows of a provider that begin before the one before them has ended; there should be none."""
    rows = ModelPrice.objects.filter(provider=provider).order_by("model", "effective_from", "pk")
    found: list[ModelPrice] = []
    for _, group in groupby(rows, key=lambda row: row.model):
        found += _overlaps(list(group))
    return found


def _overlaps(rows: Sequence[ModelPrice]) -> list[ModelPrice]:
    return [
        later
        for earlier, later in pairwise(rows)
        if earlier.effective_to is None or earlier.effective_to > later.effective_from
    ]
