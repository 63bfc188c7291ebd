"""What an alias would rewrite, before it does (SPEC 1)."""

import msgspec

from billing_catalog.models import ModelPrice
from billing_catalog.selectors.aliases import provider_fields
from billing_catalog.selectors.clashes import models_with_providers, superseded_prices


class Rewrite(msgspec.Struct, frozen=True):
    """How many rows of one sort would move to the provider; of prices, how many would be removed instead."""

    what: str
    moved: int
    removed: int = 0


def rewrites_of(*, alias: str, provider: str) -> tuple[Rewrite, ...]:
    """Return what stands under a canonical name and would move; sorts of which there is nothing are left out."""
    found = []
    for model in models_with_providers():
        count = sum(
            model._default_manager.filter(**{name: alias}).order_by().count() for name in provider_fields(model=model)
        )
        removed = superseded_prices(alias=alias, provider=provider).count() if model is ModelPrice else 0
        if count:
            found.append(Rewrite(str(model._meta.verbose_name_plural), count - removed, removed))
    return tuple(found)
