"""One statement for many rows: the ORM's bulk calls cut a large body into many, one `executemany` is one."""

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

from django.db import connection as database
from django.db import models

from omniroute_admin.common.core.keys import blotted
from omniroute_admin.common.history import LONGEST_REASON, Actor


def insert_many(*, model: Any, columns: Sequence[str], rows: Iterable[Sequence[Any]], on_conflict: str = "") -> None:
    """Insert rows of values in the order of `columns`, which are names of fields; `on_conflict` is SQL."""
    fields = [model._meta.get_field(name) for name in columns]
    names = ", ".join(quoted(field.column) for field in fields)
    values = ", ".join(["%s"] * len(fields))
    # Only names of columns are put into the text, here and below; values go as parameters.
    statement = f"INSERT INTO {quoted(model._meta.db_table)} ({names}) VALUES ({values}) {on_conflict}"  # noqa: S608
    _run(statement, fields, rows)


def update_many(*, model: Any, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Update rows by id: each is the values in the order of `columns`, then the id."""
    fields = [model._meta.get_field(name) for name in (*columns, "id")]
    assignments = ", ".join(f"{quoted(field.column)} = %s" for field in fields[:-1])
    statement = f"UPDATE {quoted(model._meta.db_table)} SET {assignments} WHERE id = %s"  # noqa: S608
    _run(statement, fields, rows)


def delete_many(*, model: Any, ids: Iterable[int]) -> None:
    """Delete rows by id; nothing may refer to them."""
    _run(f"DELETE FROM {quoted(model._meta.db_table)} WHERE id = %s", [model._meta.pk], ([one] for one in ids))  # noqa: S608


def write_history(
    *, model: Any, rows: Collection[models.Model], kind: str, actor: Actor, reason: str, now: datetime
) -> None:
    """Write the history of rows as they stand: `kind` is `+` made, `~` changed, `-` deleted."""
    history = model.history.model
    tracked = [field.name for field in history.tracked_fields]
    names = [history._meta.get_field(name).attname for name in tracked]
    act = (now, kind, blotted(reason)[:LONGEST_REASON] or None, actor.user_id, actor.name)
    columns = [*tracked, "history_date", "history_type", "history_change_reason", "history_user", "history_actor"]
    insert_many(model=history, columns=columns, rows=([*(getattr(row, one) for one in names), *act] for row in rows))


def quoted(name: str) -> str:
    """Return a name of the database's as it stands in a statement."""
    return database.ops.quote_name(name)


def _run(statement: str, fields: Sequence[Any], rows: Iterable[Sequence[Any]]) -> None:
    """Run one statement for many rows; every value goes through its column, which knows the database's form."""
    prepare = [_preparer(field) for field in fields]
    prepared = [[form(value) for form, value in zip(prepare, row, strict=True)] for row in rows]
    if prepared:
        with database.cursor() as cursor:
            cursor.executemany(statement, prepared)


def _preparer(field: Any) -> Callable[[Any], Any]:
    """Return what brings a column's value into the database's form; values repeat, so each is done once."""
    return lru_cache(maxsize=None)(lambda value: field.get_db_prep_save(value, database))
