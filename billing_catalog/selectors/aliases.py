"""What a provider's name means (SPEC 1)."""

from collections.abc import Mapping
from typing import Any

from django.db import models

from billing_catalog.models import ProviderAlias
from omniroute_admin.common.core.names import canonical_provider
from omniroute_admin.common.fields import CanonicalField, ProviderField


def alias_map() -> dict[str, str]:
    """Return every alias with the provider it means; both canonical."""
    return dict(ProviderAlias.objects.order_by("alias").values_list("alias", "provider"))


def resolve_provider(*, raw: str) -> str:
    """Return the provider that a name stands for: case, blanks and one alias step (SPEC 1)."""
    return canonical_provider(raw=raw, aliases=alias_map())


def provider_fields(*, model: type[models.Model]) -> list[str]:
    """Return the names of the columns that hold a provider."""
    return [field.name for field in model._meta.concrete_fields if isinstance(field, ProviderField)]


def resolved(
    *, model: type[models.Model], values: dict[str, Any], aliases: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return the values of a row with every name canonical and every provider's alias resolved.

    `aliases` are all there are, where the caller has read them already.
    """
    names = {field.name: field for field in model._meta.concrete_fields if isinstance(field, CanonicalField)}
    given = {name: field.to_python(values[name]) for name, field in names.items() if isinstance(values.get(name), str)}
    if aliases is None:
        aliases = alias_map() if any(name in given for name in provider_fields(model=model)) else {}
    for name in provider_fields(model=model):
        if name in given:
            given[name] = aliases.get(given[name], given[name])
    return values | given
