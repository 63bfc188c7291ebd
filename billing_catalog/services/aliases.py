"""Write aliases: adding one rewrites the rows that used it, in the same transaction (SPEC 1)."""

from collections.abc import Sequence
from datetime import datetime
from typing import TypedDict

from django.apps import apps
from django.core.exceptions import ValidationError
from django.db import IntegrityError, models, transaction
from simple_history.models import HistoricalChanges

from billing_catalog.errors import AliasClash, AliasInTheWay
from billing_catalog.models import ModelPrice, ProviderAlias
from billing_catalog.selectors.aliases import provider_fields
from billing_catalog.selectors.prices import overlapping_prices
from billing_catalog.services.bulk import update_rows
from billing_catalog.services.rows import create_row, delete_row, update_row
from omniroute_admin.common.core.names import canonical_name, is_provider
from omniroute_admin.common.errors import field
from omniroute_admin.common.history import Actor
from omniroute_admin.common.services.revision import deciding_write

"""What a history row holds of a reason, in characters."""

NAMED_AT_MOST = 20
"""How many rows in the way an error names; the rest is counted."""


class AliasValues(TypedDict, total=False):
    """The fields of an alias: the other name, and the provider it means."""

    alias: str
    provider: str


def create_alias(*, values: AliasValues, actor: Actor, reason: str, now: datetime) -> ProviderAlias:
    """Make a name mean a provider, and rewrite every row that stands under that name (SPEC 1).

    Raises:
        ValidationError: names every bad field.
        AliasInTheWay: the provider is an alias itself, or another alias means this name.
        AliasClash: rows under both names exclude each other; nothing is changed.
    """
    _check(values=values, but=None)
    with deciding_write():
        alias = create_row(model=ProviderAlias, values=values, actor=actor, reason=reason, now=now)
        _rewrite(alias=alias, actor=actor, reason=reason, now=now)
    return alias


def update_alias(
    *, alias: ProviderAlias, changes: AliasValues, actor: Actor, reason: str, now: datetime
) -> ProviderAlias:
    """Change an alias, and rewrite the rows under the name it now has; rows rewritten before stay as they are.

    Raises:
        ValidationError, AliasInTheWay, AliasClash: as `create_alias` does.
        NotFound: the alias is gone.
    """
    after: AliasValues = {"alias": alias.alias, "provider": alias.provider, **changes}
    _check(values=after, but=alias)
    with deciding_write():
        changed = update_row(row=alias, changes=changes, actor=actor, reason=reason, now=now)
        _rewrite(alias=changed, actor=actor, reason=reason, now=now)
    return changed


def delete_alias(*, alias: ProviderAlias, actor: Actor, reason: str, now: datetime) -> None:
    """Stop resolving a name; the rows that were rewritten stay with the provider.

    Raises:
        NotFound: the alias is gone.
    """
    delete_row(row=alias, actor=actor, reason=reason, now=now)


def _check(*, values: AliasValues, but: ProviderAlias | None) -> None:
    """Refuse names that no provider can have, and chains of aliases (SPEC 1: one step)."""
    names = {name: canonical_name(text) for name, text in values.items() if isinstance(text, str)}
    bad = {name: ["Letters, digits and ._:@+- only."] for name, text in names.items() if text and not is_provider(text)}
    if bad:
        raise ValidationError(bad)
    others = ProviderAlias.objects.exclude(pk=but.pk) if but else ProviderAlias.objects.all()
    onward = others.filter(alias=names.get("provider", "")).first()
    if onward:
        detail = f"{onward.alias} is itself an alias, of {onward.provider}; name that one."
        raise AliasInTheWay(detail, errors=[field("provider", detail)])
    backward = others.filter(provider=names.get("alias", "")).first()
    if backward:
        detail = f"{backward.alias} is an alias of {backward.provider}: that alias has to be changed first."
        raise AliasInTheWay(detail, errors=[field("alias", detail)])


def _rewrite(*, alias: ProviderAlias, actor: Actor, reason: str, now: datetime) -> None:
    reason = reason or f"{alias.alias} is an alias of {alias.provider}"
    for model in _models_with_providers():
        for name in provider_fields(model=model):
            rows = list(model._default_manager.filter(**{name: alias.alias}).order_by("pk"))
            if rows:
                _move(rows=rows, name=name, alias=alias, actor=actor, reason=reason, now=now)
    if overlaps := overlapping_prices(provider=alias.provider):
        raise _clash(alias=alias, rows=overlaps)


def _models_with_providers() -> list[type[models.Model]]:
    # Found by column type: a higher app's rows are covered without this app knowing them.
    return [
        model
        for model in apps.get_models()
        if provider_fields(model=model) and not issubclass(model, HistoricalChanges) and not model._meta.proxy
    ]


def _move(
    *, rows: Sequence[models.Model], name: str, alias: ProviderAlias, actor: Actor, reason: str, now: datetime
) -> None:
    for row in rows:
        setattr(row, name, alias.provider)
    try:
        with transaction.atomic():
            update_rows(model=type(rows[0]), rows=rows, fields=[name], actor=actor, reason=reason, now=now)
    except IntegrityError as error:
        raise _clash(alias=alias, rows=[row for row in rows if _is_in_the_way(row)]) from error


def _is_in_the_way(row: models.Model) -> bool:
    try:
        row.validate_unique()
        row.validate_constraints()
    except ValidationError:
        return True
    return False


def _clash(*, alias: ProviderAlias, rows: Sequence[models.Model]) -> AliasClash:
    named = [_name(row) for row in rows]
    listed = "; ".join(named[:NAMED_AT_MOST])
    more = f"; and {len(named) - NAMED_AT_MOST} more" if len(named) > NAMED_AT_MOST else ""
    detail = (
        f"{alias.alias} cannot mean {alias.provider}: both have rows that exclude each other. "
        f"Delete one of each first: {listed}{more}."
    )
    return AliasClash(detail, errors=[field("alias", text) for text in named[:NAMED_AT_MOST]])


def _name(row: models.Model) -> str:
    if isinstance(row, ModelPrice):
        return f"price {row.pk} ({row.provider}/{row.model} from {row.effective_from.isoformat()})"
    return f"{row._meta.verbose_name} {row.pk} ({row})"
