"""Queries whose SQL is made once and asked many times: on the way to a decision the making costs more than the asking.

Django makes the SQL of a query anew each time. Here it is made once for each shape (how many keys, on which database)
with marks in the place of the keys, and its own converters read the rows.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from django.db import connection
from django.db.models import QuerySet

_MARK = -9_000_000_000_000
"""Marks count down from here: no key is as low, and a column of keys takes it."""

_SHAPES_KEPT = 256
_Shape = tuple[str, tuple[tuple[int | None, Any], ...], Any]


class Compiled:
    """A query by some keys. `build(keys, *given)` returns a `values_list` queryset that names each key exactly once."""

    def __init__(self, build: Callable[..., "QuerySet[Any, Any]"]) -> None:
        """Take what makes the query."""
        self._build = build
        self._shapes: dict[tuple[Hashable, ...], _Shape] = {}

    def rows(self, keys: Sequence[int], *given: Hashable) -> list[tuple[Any, ...]]:
        """Return the rows of these keys; `given` is what else the query is made with. No key is no row."""
        if not keys:
            return []
        sql, params, compiler = self._shape(len(keys), given)
        with connection.cursor() as cursor:
            cursor.execute(sql, [param if place is None else keys[place] for place, param in params])
            found = cursor.fetchall()
        return list(compiler.results_iter([found], tuple_expected=True))

    def _shape(self, count: int, given: tuple[Hashable, ...]) -> _Shape:
        name = (connection.alias, connection.vendor, count, *given)
        known = self._shapes.get(name)
        if known is None:
            if len(self._shapes) >= _SHAPES_KEPT:
                self._shapes.clear()
            known = self._shapes[name] = self._make(count, given)
        return known

    def _make(self, count: int, given: tuple[Hashable, ...]) -> _Shape:
        marks = [_MARK - index for index in range(count)]
        compiler = self._build(marks, *given).query.get_compiler(connection=connection)
        sql, params = compiler.as_sql()
        place = {mark: index for index, mark in enumerate(marks)}
        return sql, tuple((place.get(one), one) for one in params), compiler
