"""Lists of resources: paged, filtered and ordered by their fields; a parameter nobody knows is refused (SPEC 4)."""

from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import django_filters
from django import forms
from django.core.exceptions import ValidationError
from django.db import models
from django.http import QueryDict
from django_filters.rest_framework import DjangoFilterBackend
from rest_framework.filters import BaseFilterBackend
from rest_framework.pagination import PageNumberPagination
from rest_framework.request import Request

from omniroute_admin.common.errors import BadRequest, FieldError, field

LARGEST_PAGE = 500
LAST_PAGE = 999_999_999
_ENDS = (models.DateTimeField, models.DateField, models.DecimalField, models.IntegerField)
_PARAMETERS = frozenset({"page", "page_size", "ordering"})
TRUE_OR_FALSE = {"true": True, "1": True, "false": False, "0": False}
"""The words of a parameter that is true or false, in any case."""


def bad_query(problems: Iterable[tuple[str, str] | FieldError]) -> BadRequest:
    """Return the error that names the bad parameters of a query: (name, what is wrong), or the error of each."""
    errors = [one if isinstance(one, FieldError) else field(*one) for one in problems]
    return BadRequest("The query is not valid.", errors=errors, code="invalid_query")


def unknown_parameters(query: QueryDict, known: Iterable[str]) -> list[FieldError]:
    """Return an error for each parameter that is not known, or stands there twice."""
    names = set(known)
    return [
        field(name, "There is no such parameter.", code="unknown_parameter")
        if name not in names
        else field(name, "Give this parameter once.")
        for name in query
        if name not in names or len(query.getlist(name)) > 1
    ]


def check_parameters(query: QueryDict, known: Iterable[str] = ()) -> None:
    """Check that a query has known parameters only, each once (SPEC 4: unknown is refused, not ignored).

    Raises:
        BadRequest: naming the others.
    """
    errors = unknown_parameters(query, known)
    if errors:
        raise bad_query(errors)


class Page(PageNumberPagination):
    """Pages as `{"count", "next", "previous", "results"}`: `?page=` from 1, `?page_size=` 1 to 500, usually 50."""

    page_size = 50
    page_size_query_param = "page_size"
    max_page_size = LARGEST_PAGE

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return what a page looks like; there may be no next one, and no previous one."""
        link = {"type": ["string", "null"], "format": "uri"}
        return {
            "type": "object",
            "required": ["count", "next", "previous", "results"],
            "properties": {"count": {"type": "integer"}, "next": link, "previous": link, "results": schema},
        }

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        """Return the parameters for the API's description, with their bounds."""
        most = {"page": LAST_PAGE, "page_size": LARGEST_PAGE}
        found: list[dict[str, Any]] = super().get_schema_operation_parameters(view)
        for one in found:
            one["schema"] |= {"minimum": 1, "maximum": most[one["name"]]}
        return found

    def get_page_size(self, request: Request) -> int:
        """Return the size asked for.

        Raises:
            BadRequest: the page or its size is no whole number in range.
        """
        numbers = {"page": (1, LAST_PAGE), "page_size": (1, LARGEST_PAGE)}
        problems = [
            (name, f"Expected a whole number from {low} to {high}")
            for name, (low, high) in numbers.items()
            if name in request.query_params and not _is_whole(request.query_params[name], low, high)
        ]
        if problems:
            raise bad_query(problems)
        return int(request.query_params.get("page_size", self.page_size))


def _is_whole(text: str, low: int, high: int) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= len(str(LAST_PAGE)) and low <= int(text) <= high


def columns_of(view: Any) -> tuple[str, ...]:
    """Return the names of the view's fields that are columns one can compare (no lists)."""
    model = view.queryset.model
    columns = {column.name: column for column in model._meta.concrete_fields}
    names = view.get_serializer().fields
    return tuple(name for name in names if name in columns and not isinstance(columns[name], models.JSONField))


class _TrueFalseField(forms.Field):
    """A word for true or false; any other is refused instead of meaning "either"."""

    def clean(self, value: Any) -> bool | None:
        """Return what the word says, None where it was not sent.

        Raises:
            ValidationError: it is no such word.
        """
        if value in (None, ""):
            return None
        word = str(value).lower()
        if word not in TRUE_OR_FALSE:
            raise ValidationError("This is true or false.")
        return TRUE_OR_FALSE[word]


class _TrueFalseFilter(django_filters.BooleanFilter):
    """Filters by a word for true or false."""

    field_class = _TrueFalseField


class _WholeNumberFilter(django_filters.NumberFilter):
    """Filters by a whole number; one with a fraction equals none and is no bound."""

    field_class = forms.IntegerField

    def get_max_validator(self) -> None:
        """Return no validator: the column's own bounds are not the question here."""


class _InstantField(forms.DateTimeField):
    """An instant that is one in UTC too: of the first and the last day there are, some are not."""

    def clean(self, value: Any) -> datetime | None:
        """Return the instant in UTC, None where it was not sent.

        Raises:
            ValidationError: it is none.
        """
        found = super().clean(value)
        try:
            return None if found is None else found.astimezone(UTC)
        except OverflowError:
            raise ValidationError("This instant is out of range.") from None


class _InstantFilter(django_filters.DateTimeFilter):
    """Filters by an instant."""

    field_class = _InstantField


class _Filters(django_filters.FilterSet):
    """Filters of a resource's columns."""

    @classmethod
    def filter_for_lookup(cls, field: Any, lookup_type: str) -> Any:
        """Return the filter of a column, the strict one where there is one."""
        found, options = super().filter_for_lookup(field, lookup_type)
        if found is django_filters.NumberFilter and isinstance(field, models.IntegerField):
            return _WholeNumberFilter, options
        return _STRICT.get(found, found), options


_STRICT = {django_filters.BooleanFilter: _TrueFalseFilter, django_filters.DateTimeFilter: _InstantFilter}


@lru_cache(maxsize=100)
def filterset_of(model: type[models.Model], names: tuple[str, ...]) -> type[django_filters.FilterSet]:
    """Return filters by equality for the columns, `__gte` and `__lte` along an order, `__isnull` for nullable ones."""

    def lookups(name: str) -> list[str]:
        column: Any = model._meta.get_field(name)
        return ["exact", *(["gte", "lte"] if isinstance(column, _ENDS) else []), *(["isnull"] if column.null else [])]

    meta = type("Meta", (), {"model": model, "fields": {name: lookups(name) for name in names}})
    return type(f"{model.__name__}Filters", (_Filters,), {"Meta": meta})


class ByColumns(DjangoFilterBackend):
    """Filters by every column that the resource shows, and refuses parameters that nobody knows."""

    def get_filterset_class(self, view: Any, queryset: Any = None) -> Any:
        """Return the filters of the view's own columns."""
        return filterset_of(view.queryset.model, columns_of(view))

    def filter_queryset(self, request: Request, queryset: Any, view: Any) -> Any:
        """Return the rows that match.

        Raises:
            BadRequest: a parameter is unknown or its value makes no sense.
        """
        filters = self.get_filterset(request, queryset, view)
        known = {*filters.filters, *_PARAMETERS, *getattr(view, "extra_parameters", ())}
        query = request.query_params
        problems = unknown_parameters(query, known)
        problems += [field(name, "Give a value.") for name in query if name in filters.filters and query[name] == ""]
        if not filters.is_valid():
            problems += [field(name, text) for name, texts in filters.errors.items() for text in texts]
        if problems:
            raise bad_query(problems)
        return filters.qs


class Ordered(BaseFilterBackend):
    """Orders by `?ordering=-field,other`; the primary key comes last, so that pages neither repeat nor lose rows."""

    def filter_queryset(self, request: Request, queryset: Any, view: Any) -> Any:
        """Return the rows in order.

        Raises:
            BadRequest: a field one cannot order by.
        """
        asked = [name for name in request.query_params.get("ordering", "").split(",") if name]
        known = columns_of(view)
        if any(name.removeprefix("-") not in known for name in asked):
            raise bad_query(
                [("ordering", f"Expected fields of: {', '.join(known)}; a minus before one turns it round")]
            )
        return queryset.order_by(*asked, "pk") if asked else queryset

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        """Return the parameter for the API's description."""
        columns = columns_of(view)
        names, one = ", ".join(columns), f"-?({'|'.join(columns)})"
        return [
            {
                "name": "ordering",
                "required": False,
                "in": "query",
                "description": f"Fields to order by, parted by commas, a minus before one for the reverse: {names}.",
                "schema": {"type": "string", "pattern": f"^({one}(,{one})*)?$"},
            }
        ]
