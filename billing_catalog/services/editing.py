"""One curated row from its form: what somebody else changed meanwhile is told, and a second sending does nothing."""

from collections.abc import Mapping
from datetime import datetime

import msgspec
from django.db import models

from billing_catalog.errors import RowChanged
from billing_catalog.services.drafts import plain_texts, read_texts
from billing_catalog.services.kinds import By, Kind
from omniroute_admin.common.core.stale import find_changes, find_differences
from omniroute_admin.common.errors import NotFound
from omniroute_admin.common.history import Actor
from omniroute_admin.common.services.revision import deciding_write

Texts = Mapping[str, str]


class Saved(msgspec.Struct, frozen=True):
    """The row as it stands now, and whether it was written; it stood so already where it was not."""

    row: models.Model | None
    is_written: bool


def add_row(*, kind: Kind, sent: Texts, actor: Actor, reason: str, now: datetime) -> Saved:
    """Write a new row; one that stands there with the very same values was sent twice.

    Raises:
        ValidationError: names every bad field.
        ProductError: the row stands in the way of another one, or of a rule.
    """
    values, _ = read_texts(kind=kind, texts=sent)
    with deciding_write() as write:
        there = kind.model._default_manager.filter(**_identity(kind, values)).first()
        if there is not None and plain_texts(kind, there) == dict(sent):
            write.changed = False
            return Saved(there, is_written=False)
        return Saved(kind.create(values, By(actor=actor, reason=reason, now=now)), is_written=True)


def save_row(*, kind: Kind, row_id: int, began: Texts, sent: Texts, actor: Actor, reason: str, now: datetime) -> Saved:
    """Write what the sender of a form changed of a row, and nothing else.

    Raises:
        NotFound: the row is gone.
        RowChanged: somebody else changed it since the form was opened; nothing is written.
        ValidationError: names every bad field.
        ProductError: as the row's own service says.
    """
    with deciding_write() as write:
        row = _locked(kind, row_id)
        stored = plain_texts(kind, row)
        changes = find_changes(began=began, sent=sent)
        if stored == dict(sent) or not changes:
            write.changed = False
            return Saved(row, is_written=False)
        _check_same(began, stored, sent)
        values, _ = read_texts(kind=kind, texts=changes)
        return Saved(kind.update(row, values, By(actor=actor, reason=reason, now=now)), is_written=True)


def remove_row(*, kind: Kind, row_id: int, began: Texts, actor: Actor, reason: str, now: datetime) -> Saved:
    """Delete a row; one that is gone already was deleted before.

    Raises:
        RowChanged: somebody else changed it since the form was opened; nothing is deleted.
    """
    with deciding_write() as write:
        try:
            row = _locked(kind, row_id)
        except NotFound:
            write.changed = False
            return Saved(None, is_written=False)
        stored = plain_texts(kind, row)
        _check_same(began, stored, began)
        kind.delete(row, By(actor=actor, reason=reason, now=now))
        return Saved(row, is_written=True)


def _check_same(began: Texts, stored: Texts, sent: Texts) -> None:
    if differences := find_differences(began=began, stored=stored, sent=sent):
        raise RowChanged(differences=differences, stored=stored)


def _locked(kind: Kind, row_id: int) -> models.Model:
    row = kind.model._default_manager.select_for_update().filter(pk=row_id).first()
    if row is None:
        raise NotFound(f"This {kind.one} is gone.")
    return row


def _identity(kind: Kind, values: Mapping[str, object]) -> dict[str, object]:
    pairs = {name: values.get(name) for name in kind.identity}
    return {name if value is not None else f"{name}__isnull": value if value is not None else True
            for name, value in pairs.items()}  # fmt: skip
