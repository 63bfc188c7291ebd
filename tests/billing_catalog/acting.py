"""Who acts and when, in the tests of the catalogue, and what must never be there afterwards."""

from datetime import UTC, datetime
from itertools import pairwise

from billing_catalog.models import ModelPrice
from omniroute_admin.common.history import Actor

NOW = datetime(2026, 8, 22, 12, tzinfo=UTC)
ACTOR = Actor(name="key orl_abcdefgh")


def overlapping_prices(*, provider: str) -> list[ModelPrice]:
    """Return the prices of a provider that begin before the one before them has ended (SPEC 3)."""
    rows = ModelPrice.objects.filter(provider=provider).order_by("model", "effective_from", "pk")
    return [
        later
        for earlier, later in pairwise(rows)
        if earlier.model == later.model
        and (earlier.effective_to is None or earlier.effective_to > later.effective_from)
    ]
