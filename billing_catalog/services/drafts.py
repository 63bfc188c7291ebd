"""A curated row as a form or a file says it: texts read, names resolved, every bad field told (SPEC 3)."""

import copy
from collections.abc import Collection, Mapping
from typing import Any

from django.core.exceptions import ValidationError
from django.db import models

from billing_catalog.core.sheets import Problem
from billing_catalog.selectors.aliases import resolved
from billing_catalog.services.kinds import Kind, texts_of, value_of
from omniroute_admin.common.constraints import field_errors
from omniroute_admin.common.errors import FieldError, ProductError


def read_texts(
    *, kind: Kind, texts: Mapping[str, str], aliases: Mapping[str, str] | None = None
) -> tuple[dict[str, Any], list[Problem]]:
    """Return the values that texts mean, names canonical and aliases resolved, and what cannot be read."""
    values: dict[str, Any] = {}
    problems = []
    for column in kind.columns:
        if column.name in texts:
            try:
                values[column.name] = value_of(column, texts[column.name])
            except ValueError as error:
                problems.append((column.name, str(error)))
    return resolved(model=kind.model, values=values, aliases=aliases), problems


def draft_of(*, kind: Kind, row: models.Model | None, values: Mapping[str, Any]) -> models.Model:
    """Return a row, or a new one, as it would be with these values; nothing is written."""
    draft = copy.copy(row) if row is not None else kind.model()
    for name, value in values.items():
        setattr(draft, name, value)
    return draft


def field_problems(*, kind: Kind, draft: models.Model, but: Collection[str]) -> list[Problem]:
    """Return what is wrong with the single fields of a draft, without those named in `but`."""
    others = {field.name for field in draft._meta.concrete_fields} - set(kind.names)
    try:
        draft.clean_fields(exclude=others | set(but))
    except ValidationError as error:
        return problems_in(error=error)
    return []


def problems_in(*, error: ValidationError | ProductError) -> list[Problem]:
    """Return what a service refused, by field; "" is the whole row."""
    errors = field_errors(error) if isinstance(error, ValidationError) else list(error.errors)
    if not errors:
        errors = [FieldError(pointer="", detail=getattr(error, "detail", "This cannot be."))]
    return list(dict.fromkeys((bad.pointer.removeprefix("/"), bad.detail) for bad in errors))


def plain_texts(kind: Kind, row: models.Model) -> dict[str, str]:
    """Return what a row says as a form sends it back: edges trimmed, line ends of one sort."""
    return {name: plain_text(text) for name, text in texts_of(kind, row).items()}


def plain_text(text: str) -> str:
    """Return a text as a form sends it back."""
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()
