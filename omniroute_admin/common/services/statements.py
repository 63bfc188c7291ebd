"""One statement for many rows, where the ORM's bulk calls cut a large body into many."""

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from functools import lru_cache, partial
from typing import Any

from django.db import connection as database
from django.db import models

from omniroute_admin.common.core.keys import blotted
from omniroute_admin.common.history import LONGEST_REASON, Actor

_FEW = 8
"""In so few rows values hardly repeat."""


def insert_many(*, model: Any, columns: Sequence[str], rows: Iterable[Sequence[Any]], on_conflict: str = "") -> None:
    """Insert rows of values in the order of `columns`, which are names of fields; `on_conflict` is SQL.

    No two of the rows may conflict with one another.
    """
    fields = [model._meta.get_field(name) for name in columns]
    names = ", ".join(quoted(field.column) for field in fields)
    # Only names of columns are put into the text, here and below; values go as parameters.
    into = f"INSERT INTO {quoted(model._meta.db_table)} ({names})"
    if _takes_columns():
        _run_columns(f"{into} SELECT * FROM {_unnested(fields)} {on_conflict}", fields, rows)  # noqa: S608
    else:
        _run_rows(f"{into} VALUES ({', '.join(['%s'] * len(fields))}) {on_conflict}", fields, rows)


def update_many(*, model: Any, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Update rows by id: each is the values in the order of `columns`, then the id; no id comes twice."""
    fields = [model._meta.get_field(name) for name in (*columns, "id")]
    table = quoted(model._meta.db_table)
    names = [quoted(field.column) for field in fields]
    if _takes_columns():
        assigned = ", ".join(f"{name} = given.{name}" for name in names[:-1])
        given = f"{_unnested(fields)} AS given({', '.join(names)})"
        where = f"{table}.{names[-1]} = given.{names[-1]}"
        _run_columns(f"UPDATE {table} SET {assigned} FROM {given} WHERE {where}", fields, rows)  # noqa: S608
    else:
        assigned = ", ".join(f"{name} = %s" for name in names[:-1])
        _run_rows(f"UPDATE {table} SET {assigned} WHERE {names[-1]} = %s", fields, rows)  # noqa: S608


def delete_many(*, model: Any, ids: Iterable[int]) -> None:
    """Delete rows by id; nothing may refer to them."""
    table, field, rows = quoted(model._meta.db_table), model._meta.pk, ([one] for one in ids)
    if _takes_columns():
        _run_columns(f"DELETE FROM {table} WHERE id IN (SELECT * FROM {_unnested([field])})", [field], rows)  # noqa: S608
    else:
        _run_rows(f"DELETE FROM {table} WHERE id = %s", [field], rows)  # noqa: S608


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


def _takes_columns() -> bool:
    """Tell whether the database takes many values as one array: PostgreSQL then runs one statement, not one a row."""
    return database.vendor == "postgresql"


def _unnested(fields: Sequence[Any]) -> str:
    return f"UNNEST({', '.join(f'%s::{field.rel_db_type(database)}[]' for field in fields)})"


def _run_columns(statement: str, fields: Sequence[Any], rows: Iterable[Sequence[Any]]) -> None:
    """Run one statement that is given each column's values as an array."""
    prepared = _prepared(fields, rows)
    if prepared:
        with database.cursor() as cursor:
            cursor.execute(statement, [list(column) for column in zip(*prepared, strict=True)])


def _run_rows(statement: str, fields: Sequence[Any], rows: Iterable[Sequence[Any]]) -> None:
    """Run one statement for many rows."""
    prepared = _prepared(fields, rows)
    if prepared:
        with database.cursor() as cursor:
            cursor.executemany(statement, prepared)


def _prepared(fields: Sequence[Any], rows: Iterable[Sequence[Any]]) -> list[list[Any]]:
    """Return the rows with every value in the form of its column's database."""
    given = list(rows)
    prepare = [_preparer(field) if len(given) > _FEW else _form_of(field) for field in fields]
    return [[form(value) for form, value in zip(prepare, row, strict=True)] for row in given]


def _preparer(field: Any) -> Callable[[Any], Any]:
    """Return what brings a column's value into the database's form; values repeat, so each is done once."""
    return lru_cache(maxsize=None)(_form_of(field))


def _form_of(field: Any) -> Callable[[Any], Any]:
    return partial(field.get_db_prep_save, connection=database)
