"""Write aliases: adding one rewrites the rows that used it, in the same transaction (SPEC 1)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TypedDict

from django.core.exceptions import ValidationError
from django.db import models

from billing_catalog.errors import AliasClash, AliasInTheWay
from billing_catalog.models import LoadedFact, ModelPrice, ProviderAlias
from billing_catalog.selectors.aliases import provider_fields
from billing_catalog.selectors.clashes import clashing_rows, models_with_providers, superseded_prices
from billing_catalog.services.bulk import delete_rows, update_rows
from billing_catalog.services.prices import ENDED_PRICE, ended_key
from billing_catalog.services.rows import create_row, delete_row, refused_as_conflict, update_row
from omniroute_admin.common.core.names import canonical_name
from omniroute_admin.common.errors import FieldError, field
from omniroute_admin.common.fields import PROVIDER_NAME
from omniroute_admin.common.history import Actor
from omniroute_admin.common.services.revision import deciding_write

NAMED_AT_MOST = 20
"""How many rows in the way a sentence names; the errors beside it name every one."""


class AliasValues(TypedDict, total=False):
    """The fields of an alias: the other name, and the provider it means."""

    alias: str
    provider: str


def create_alias(*, values: AliasValues, actor: Actor, reason: str, now: datetime) -> ProviderAlias:
    """Make a name mean a provider, and rewrite every row that stands under that name (SPEC 1).

    Of a model that both names price, the provider's own prices stay and the alias's are removed: prices are
    append-only, so that nobody could clear them away beforehand. All other rows that exclude each other are refused.

    Raises:
        ValidationError: names every bad field.
        Conflict: the name is an alias already.
        AliasInTheWay: the provider is an alias itself, or another alias means this name.
        AliasClash: rows under both names exclude each other; every one is named and nothing is changed.
    """
    _check(values=values, but=None)
    with deciding_write(wide_at=now):
        alias = create_row(model=ProviderAlias, values=values, actor=actor, reason=reason, now=now)
        _rewrite(alias=alias, actor=actor, reason=reason, now=now)
    return alias


def update_alias(
    *, alias: ProviderAlias, changes: AliasValues, actor: Actor, reason: str, now: datetime
) -> ProviderAlias:
    """Change an alias, and rewrite the rows under the name it now has; rows rewritten before stay as they are.

    Raises:
        ValidationError, Conflict, AliasInTheWay, AliasClash: as `create_alias` does.
        NotFound: the alias is gone.
    """
    after: AliasValues = {"alias": alias.alias, "provider": alias.provider, **changes}
    _check(values=after, but=alias)
    with deciding_write(wide_at=now):
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
    if bad := {name: found for name, text in names.items() if (found := _name_problems(text))}:
        raise ValidationError(bad)
    # A name that would mean itself is a bad field, which the row's own check tells.
    is_chain = names.get("alias") != names.get("provider")
    if is_chain and (chained := list(_chains(names=names, but=but))):
        raise AliasInTheWay(" ".join(error.detail for error in chained), errors=chained)


def _name_problems(text: str) -> list[str]:
    if not text:
        return ["This field cannot be blank."]
    try:
        PROVIDER_NAME(text)
    except ValidationError as error:
        return error.messages
    return []


def _chains(*, names: Mapping[str, str], but: ProviderAlias | None) -> Iterator[FieldError]:
    others = ProviderAlias.objects.exclude(pk=but.pk) if but else ProviderAlias.objects.all()
    if onward := others.filter(alias=names.get("provider", "")).first():
        yield field("provider", f"{onward.alias} is itself an alias, of {onward.provider}; name that one.")
    if backward := others.filter(provider=names.get("alias", "")).first():
        detail = f"{backward.alias} is an alias of {backward.provider}: that alias has to be changed first."
        yield field("alias", detail)


def _rewrite(*, alias: ProviderAlias, actor: Actor, reason: str, now: datetime) -> None:
    if rows := clashing_rows(alias=alias.alias, provider=alias.provider):
        raise _clash(alias=alias, rows=rows)
    _remove_superseded(alias=alias, actor=actor, reason=reason, now=now)
    reason = reason or f"{alias.alias} is an alias of {alias.provider}"
    for model in models_with_providers():
        for name in provider_fields(model=model):
            moved = list(model._default_manager.filter(**{name: alias.alias}).order_by("pk"))
            for row in moved:
                setattr(row, name, alias.provider)
            with refused_as_conflict():
                update_rows(model=model, rows=moved, fields=[name], actor=actor, reason=reason, now=now)


def _remove_superseded(*, alias: ProviderAlias, actor: Actor, reason: str, now: datetime) -> None:
    """Remove the alias's prices of models that the provider prices itself; move the marks of ended ones."""
    why = f"{alias.alias} is an alias of {alias.provider}, whose own prices of this model stand"
    why = f"{why}: {reason}" if reason else why
    rows = list(superseded_prices(alias=alias.alias, provider=alias.provider))
    delete_rows(model=ModelPrice, rows=rows, actor=actor, reason=why, now=now)
    _move_ends(alias=alias)


def _move_ends(*, alias: ProviderAlias) -> None:
    # What an operator ended under the alias stays ended, except where the provider has a price of its own.
    priced = {model.lower() for model in _models_priced(provider=alias.provider)}
    for mark in LoadedFact.objects.filter(kind=ENDED_PRICE, key__startswith=f"{alias.alias} "):
        model = mark.key.removeprefix(f"{alias.alias} ")
        if model not in priced:
            key = ended_key(provider=alias.provider, model=model)
            LoadedFact.objects.get_or_create(kind=ENDED_PRICE, key=key, defaults={"loaded_at": mark.loaded_at})
        mark.delete()


def _models_priced(*, provider: str) -> Iterable[str]:
    return ModelPrice.objects.filter(provider=provider).order_by().values_list("model", flat=True)


def _clash(*, alias: ProviderAlias, rows: Sequence[models.Model]) -> AliasClash:
    errors = [error for row in rows for error in _named(row=row, alias=alias)]
    listed = "; ".join(error.detail for error in errors[:NAMED_AT_MOST])
    more = f"; and {len(errors) - NAMED_AT_MOST} more" if len(errors) > NAMED_AT_MOST else ""
    detail = (
        f"{alias.alias} cannot mean {alias.provider}: both have rows that exclude each other. "
        f"Delete one of each first: {listed}{more}."
    )
    return AliasClash(detail, errors=errors)


def _named(*, row: models.Model, alias: ProviderAlias) -> Iterator[FieldError]:
    """Yield a row in words, at the field of the alias that names its provider."""
    providers = {getattr(row, name) for name in provider_fields(model=type(row))}
    for name in ("alias", "provider"):
        own = getattr(alias, name)
        if own in providers:
            yield field(name, f"{row._meta.verbose_name} {row.pk} of {own} ({row})")
