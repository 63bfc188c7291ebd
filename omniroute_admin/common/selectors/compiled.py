"""Queries whose SQL is made once and asked many times: on the way to a decision the making costs more than the asking.

Django makes the SQL of a query anew each time. Here it is made once for each shape (how many keys, on which database)
with marks in the place of the keys, and its own converters read the rows.
"""

from collections.abc import Callable, Hashable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import QuerySet

_LOWEST = -9_000_000_000_000
"""Marks in the place of keys count down from here: no key is as low. Those of texts are no text that anybody has."""

_EARLIEST = datetime(1, 1, 2, tzinfo=UTC)
"""Marks in the place of instants count up from here: nothing happened then."""

_FEW = 200
"""Up to so many keys a shape is worth keeping; more are asked for as Django does it."""

_SHAPES_KEPT = 512


class _Shape(NamedTuple):
    """The SQL of a query, its parameters (the place of a key, or the value itself), and what reads its rows."""

    sql: str
    params: tuple[tuple[int | None, Any], ...]
    compiler: Any
    converters: dict[int, Any]


class Compiled:
    """A query by some keys. `build(keys, *given)` returns a `values_list` queryset that names each key, once or more.

    Where it asks by instants too it is `build(keys, instants, *given)`, and each instant is named, once or more.
    """

    def __init__(self, build: Callable[..., "QuerySet[Any, Any]"]) -> None:
        """Take what makes the query."""
        self._build = build
        self._shapes: dict[tuple[Hashable, ...], _Shape] = {}

    def rows(self, keys: Sequence[int] | Sequence[str], *given: Hashable) -> list[tuple[Any, ...]]:
        """Return the rows of these keys or texts; `given` is what else the query is made with. No key is no row."""
        if len(keys) > _FEW:
            return list(self._build(keys, *given))
        return self._ask(keys, None, given) if keys else []

    def rows_at(
        self, keys: Sequence[int] | Sequence[str], instants: Sequence[datetime], *given: Hashable
    ) -> list[tuple[Any, ...]]:
        """Return the rows of these keys or texts at these instants. No key, or no instant, is no row."""
        if len(keys) > _FEW or len(instants) > _FEW:
            return list(self._build(keys, instants, *given))
        return self._ask(keys, instants, given) if keys and instants else []

    def all(self, *given: Hashable) -> list[tuple[Any, ...]]:
        """Return the rows of a query that asks for no keys."""
        return self._ask((), None, given)

    def _ask(
        self, keys: Sequence[Any], instants: Sequence[datetime] | None, given: tuple[Hashable, ...]
    ) -> list[tuple[Any, ...]]:
        is_text = bool(keys) and isinstance(keys[0], str)
        shape = self._shape(len(keys), None if instants is None else len(instants), is_text, given)
        asked = keys if instants is None else [*keys, *map(connection.ops.adapt_datetimefield_value, instants)]
        with connection.cursor() as cursor:
            cursor.execute(shape.sql, [param if place is None else asked[place] for place, param in shape.params])
            found = cursor.fetchall()
        return [tuple(row) for row in shape.compiler.apply_converters(found, shape.converters)]

    def _shape(self, count: int, instants: int | None, is_text: bool, given: tuple[Hashable, ...]) -> _Shape:
        name = (connection.alias, connection.vendor, count, instants, is_text, *given)
        known = self._shapes.get(name)
        if known is None:
            if len(self._shapes) >= _SHAPES_KEPT:
                self._shapes.clear()
            known = self._shapes[name] = self._make(count, instants, is_text, given)
        return known

    def _make(self, count: int, instants: int | None, is_text: bool, given: tuple[Hashable, ...]) -> _Shape:
        marks: list[Any] = [f"\x01{index}" if is_text else _LOWEST - index for index in range(count)]
        early = [_EARLIEST + timedelta(microseconds=index) for index in range(instants or 0)]
        asked = (marks,) if instants is None else (marks, early)
        compiler = self._build(*asked, *given).query.get_compiler(connection=connection)
        sql, params = compiler.as_sql()
        stored = [*marks, *map(connection.ops.adapt_datetimefield_value, early)]
        place = {mark: index for index, mark in enumerate(stored)}
        converters = compiler.get_converters([column for column, _, _ in compiler.select])
        return _Shape(sql, tuple((place.get(one), one) for one in params), compiler, converters)
