"""Which price lists serve which provider (T), and which providers are in use."""

from collections.abc import Iterable

import msgspec
from django.apps import apps
from simple_history.models import HistoricalChanges

from billing_catalog.models import PriceSource
from billing_catalog.selectors.aliases import alias_map, provider_fields
from omniroute_admin.common.core.names import canonical_provider, is_provider


class Lists(msgspec.Struct, frozen=True):
    """The two lists that serve a provider, by their ids; empty for none."""

    price_list: str
    capability_list: str


def lists_by_provider(*, price_lists: Iterable[str], capability_lists: Iterable[str]) -> dict[str, Lists]:
    """Return the lists of every provider that a list serves: those the table names, all others under their own name.

    A capability list that the table names beside a price list is another spelling of that one, no provider.
    """
    rows = list(PriceSource.objects.all())
    priced, capable = set(price_lists), set(capability_lists)
    spellings = {row.capability_list for row in rows if row.price_list}
    aliases = alias_map()
    served: dict[str, Lists] = {}
    for name in sorted(priced | (capable - spellings)):
        provider = canonical_provider(raw=name, aliases=aliases)
        if is_provider(provider):
            served[provider] = Lists(name if name in priced else "", name if name in capable else "")
    for row in rows:
        served[row.provider] = Lists(row.price_list, row.capability_list)
    return served


def providers_in_use() -> set[str]:
    """Return the providers that rows of other apps name: those that a router really has.

    Rows that were deleted from routing but kept for the books do not count.
    """
    names: set[str] = set()
    for model in apps.get_models():
        if model._meta.app_label == PriceSource._meta.app_label or issubclass(model, HistoricalChanges):
            continue
        rows = model._default_manager.order_by()
        if any(field.name == "deleted_at" for field in model._meta.concrete_fields):
            rows = rows.filter(deleted_at__isnull=True)
        for name in provider_fields(model=model):
            names.update(rows.values_list(name, flat=True).distinct())
    return {name for name in names if name}
