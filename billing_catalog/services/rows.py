"""How one curated row is written: names resolved, every bad field named, history stamped, the revision moved."""

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any, TypeVar

from django.core.exceptions import ValidationError
from django.db import IntegrityError, models

from billing_catalog.models import Curated
from billing_catalog.selectors.aliases import resolved
from omniroute_admin.common.constraints import conflict_in
from omniroute_admin.common.errors import Conflict, NotFound
from omniroute_admin.common.history import Actor, stamp
from omniroute_admin.common.services.revision import deciding_write

Row = TypeVar("Row", bound=models.Model)


@contextmanager
def refused_as_conflict() -> Iterator[None]:
    """Turn what only the database noticed (someone else was faster) into a conflict with a clear sentence.

    Raises:
        Conflict: a constraint refused the write.
    """
    try:
        yield
    except IntegrityError as error:
        raise Conflict("Another row was written at the same moment that excludes this one; look again.") from error


def check_row(*, row: models.Model) -> None:
    """Check a row against the model's own rules and the rows there are.

    Raises:
        ValidationError: names every bad field.
        Conflict: the row is good, and another one has its values already; names their fields.
    """
    try:
        row.full_clean()
    except ValidationError as error:
        if conflict := conflict_in(error):
            raise conflict from error
        raise


def create_row(*, model: type[Row], values: Mapping[str, Any], actor: Actor, reason: str, now: datetime) -> Row:
    """Write a new row with its names canonical (SPEC 1).

    Raises:
        ValidationError: names every bad field.
        Conflict: another row has these values already (the fields are named), or another writer was faster.
    """
    with refused_as_conflict(), deciding_write(wide_at=now):
        row = model(**resolved(model=model, values=dict(values)))
        if isinstance(row, Curated):
            row.origin, row.created_at, row.updated_at = "operator", now, now
        check_row(row=row)
        stamp(instance=row, actor=actor, reason=reason, now=now)
        row.save(force_insert=True)
    return row


def update_row(*, row: Row, changes: Mapping[str, Any], actor: Actor, reason: str, now: datetime) -> Row:
    """Change a row; what changes nothing is not saved again. The first edit of a shipped row makes it the operator's.

    Raises:
        ValidationError: names every bad field.
        NotFound: the row is gone.
        Conflict: another row has these values already (the fields are named), or another writer was faster.
    """
    draft = _with(row=present(row=row), changes=changes)
    draft.clean_fields()
    if not differs(row=present(row=row), other=draft, names=changes):
        return draft
    with refused_as_conflict(), deciding_write(wide_at=now):
        changed = _with(row=present(row=row, lock=True), changes=changes)
        if isinstance(changed, Curated):
            changed.origin, changed.updated_at = "operator", now
        check_row(row=changed)
        stamp(instance=changed, actor=actor, reason=reason, now=now)
        changed.save()
    return changed


def delete_row(*, row: models.Model, actor: Actor, reason: str, now: datetime) -> None:
    """Delete a row; its history stays.

    Raises:
        NotFound: the row is gone already.
    """
    with deciding_write(wide_at=now):
        gone = present(row=row, lock=True)
        stamp(instance=gone, actor=actor, reason=reason, now=now)
        gone.delete()


def present(*, row: Row, lock: bool = False) -> Row:
    """Return the row as it stands in the database now.

    Raises:
        NotFound: it is gone.
    """
    rows = type(row)._default_manager.all()
    found = (rows.select_for_update() if lock else rows).filter(pk=row.pk).first()
    if found is None:
        raise NotFound(f"{type(row)._meta.verbose_name} {row} is gone.")
    return found


def differs(*, row: models.Model, other: models.Model, names: Mapping[str, Any]) -> bool:
    """Tell whether two states of a row differ in one of the named fields."""
    return any(getattr(row, name) != getattr(other, name) for name in names)


def _with(*, row: Row, changes: Mapping[str, Any]) -> Row:
    changed = copy.copy(row)
    for name, value in resolved(model=type(row), values=dict(changes)).items():
        setattr(changed, name, value)
    return changed
