"""Constraints that can be told to a caller: each has words, and the fields that they are about (SPEC 4).

A constraint's name is its `violation_error_code` too, so that a refusal can be followed back to the fields. Words, code
and fields never reach the database.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db import models

from omniroute_admin.common.errors import Conflict, FieldError, field

_BODY_WIDE = {"", "non_field_errors", NON_FIELD_ERRORS}
_DUPLICATE = {"unique", "unique_together"}


class _About(msgspec.Struct, frozen=True):
    fields: tuple[str, ...]
    is_unique: bool


_ABOUT: dict[str, _About] = {}


def check(*, name: str, condition: models.Q, fields: Sequence[str], words: str) -> models.CheckConstraint:
    """Return a check whose refusal names `fields` and says `words`."""
    _ABOUT[name] = _About(tuple(fields), is_unique=False)
    return models.CheckConstraint(
        condition=condition, name=name, violation_error_message=words, violation_error_code=name
    )


def unique(
    *,
    name: str,
    fields: Sequence[str],
    words: str,
    condition: models.Q | None = None,
    about: Sequence[str] | None = None,
) -> models.UniqueConstraint:
    """Return a uniqueness of `fields` whose refusal says `words` and names `about`, or the same fields."""
    _ABOUT[name] = _About(tuple(about or fields), is_unique=True)
    return models.UniqueConstraint(
        fields=fields, condition=condition, name=name, violation_error_message=words, violation_error_code=name
    )


def fields_of(name: str) -> tuple[str, ...]:
    """Return the fields that a constraint is about; none where nobody said."""
    return _ABOUT[name].fields if name in _ABOUT else ()


def field_errors(error: ValidationError) -> list[FieldError]:
    """Return the errors of a model's own check, each with the pointer of its field; a constraint names all of its."""
    return [bad for name, one in _each(error) for bad in _named(name, one)]


def conflict_in(error: ValidationError) -> Conflict | None:
    """Return the conflict that an error means where it tells of nothing but rows that are there already."""
    found = list(_each(error))
    if not all(_is_duplicate(one) for _, one in found):
        return None
    errors = [FieldError(bad.pointer, bad.detail, "conflict") for bad in field_errors(error)]
    return Conflict(" ".join(dict.fromkeys(bad.detail for bad in errors)), errors=errors)


def _each(error: ValidationError) -> Iterator[tuple[str, Any]]:
    if not hasattr(error, "error_dict"):
        yield from (("", one) for one in error.error_list)
        return
    for name, ones in error.error_dict.items():
        yield from ((name, one) for one in ones)


def _named(name: str, one: Any) -> Iterator[FieldError]:
    named = (fields_of(one.code) if one.code else ()) if name in _BODY_WIDE else (name,)
    for message in one.messages:
        yield from [field(found, message) for found in named] or [FieldError(pointer="", detail=message)]


def _is_duplicate(one: Any) -> bool:
    return one.code in _DUPLICATE or (one.code in _ABOUT and _ABOUT[one.code].is_unique)
