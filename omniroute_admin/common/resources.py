"""What every resource of the API does alike: lists, one row, changes with a reason, lost updates refused (SPEC 4)."""

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, ClassVar, cast

import msgspec
from django.http import Http404
from rest_framework.exceptions import NotFound as PageNotFound
from rest_framework.generics import GenericAPIView, ListCreateAPIView
from rest_framework.metadata import SimpleMetadata
from rest_framework.parsers import BaseParser
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response

from omniroute_admin.common import clock
from omniroute_admin.common.authentication import caller
from omniroute_admin.common.bodies import loads, read_body
from omniroute_admin.common.errors import LostUpdate, MalformedJson, NotFound
from omniroute_admin.common.history import LONGEST_REASON
from omniroute_admin.common.listing import ByColumns, Ordered, Page, bad_query, check_parameters
from omniroute_admin.common.permissions import RequiresScope
from omniroute_admin.common.services.revision import deciding_write


class ExactJsonParser(BaseParser):
    """Reads JSON strictly (no NaN, UTF-8 only) and its fractions exactly."""

    media_type = "application/json"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        """Return the plain values of the body.

        Raises:
            MalformedJson, TooLarge: see `bodies.loads`.
        """
        request = parser_context["request"]
        return loads(read_body(getattr(request, "_request", request)))


def etag_of(representation: Mapping[str, Any]) -> str:
    """Return the weak entity tag of what a resource looks like."""
    text = msgspec.json.encode(representation, order="deterministic")
    return f'W/"{hashlib.sha256(text).hexdigest()[:32]}"'


def check_if_match(request: Request, representation: Mapping[str, Any]) -> None:
    """Check `If-Match`, where it is sent, against what the resource looks like now.

    Raises:
        LostUpdate: it has changed since the caller read it.
    """
    header = request.headers.get("If-Match")
    if header is None or header.strip() == "*":
        return
    asked = {tag.strip().removeprefix("W/") for tag in header.split(",")}
    if etag_of(representation).removeprefix("W/") not in asked:
        raise LostUpdate("It was changed in between: read it again.", current=representation)


def reason_of(request: Request) -> str:
    """Return the reason in the query (`?reason=` on DELETE), or "".

    Raises:
        BadRequest: it is longer than the history keeps.
    """
    reason: str = request.query_params.get("reason", "").strip()
    if len(reason) > LONGEST_REASON or "\0" in reason:
        raise bad_query([("reason", f"A reason has at most {LONGEST_REASON} characters")])
    return reason


class WithoutActions(SimpleMetadata):
    """What OPTIONS tells: the methods there are. The fields of each are in the schema."""

    def determine_actions(self, request: Request, view: Any) -> dict[str, Any]:
        """Return nothing: REST framework itself would read, and lock, the row as PUT does."""
        return {}


class ResourceView(GenericAPIView):
    """What lists and single rows share.

    A subclass gives `queryset`, `serializer_class` (a StrictModelSerializer), `read_scope` and `write_scope`, and
    defines those of `create_row`, `update_row` and `delete_row` that it allows, with the service's call. They take
    keyword arguments only: `values`, or `row` and `changes`, or `row`; and `actor`, `reason`, `now`.
    """

    read_scope: ClassVar[str]
    write_scope: ClassVar[str]
    parser_classes = (ExactJsonParser,)
    metadata_class = WithoutActions
    permission_classes: tuple[type[BasePermission], ...] = (RequiresScope,)
    lookup_field = "pk"
    # hook -> the methods that it makes possible
    hooks: ClassVar[dict[str, tuple[str, ...]]] = {}
    # parameters of the query that every method takes
    extra_parameters: ClassVar[tuple[str, ...]] = ()
    is_wide: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Offer exactly the methods whose hook is overridden."""
        super().__init_subclass__(**kwargs)
        offered = [name for hook in cls.hooks if hasattr(cls, hook) for name in cls.hooks[hook]]
        cls.http_method_names = ["get", "head", "options", *offered]

    @property
    def required_scopes(self) -> dict[str, str]:
        """Return the scope of each method."""
        return {"GET": self.read_scope} | dict.fromkeys(("POST", "PUT", "PATCH", "DELETE"), self.write_scope)

    def known_parameters(self) -> tuple[str, ...] | None:
        """Return the parameters that the method takes; None where the method looks after them itself."""
        return (*self.extra_parameters, *(("reason",) if self.request.method == "DELETE" else ()))

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Check who calls, then the query.

        Raises:
            BadRequest: it has a parameter that the method does not take.
        """
        super().initial(request, *args, **kwargs)
        known = self.known_parameters()
        # A method that is not offered is told so, whatever its query says.
        if known is not None and str(request.method).lower() in self.http_method_names:
            check_parameters(request.query_params, known)

    def sent(self) -> Any:
        """Return the plain values of the body.

        Raises:
            MalformedJson: there is none; REST framework itself would take that for an empty object.
        """
        values = self.request.data
        if not read_body(self.request._request).strip():
            raise MalformedJson("The body is empty.")
        return values

    def change(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return who, why and when of a change (`actor`, `reason`, `now`); takes the reason out of the values."""
        serializer: Any = self.get_serializer_class()
        reason = str(values.pop(serializer.reason_field, ""))
        return {"actor": caller(self.request).actor, "reason": reason.strip(), "now": clock.now()}

    def wide_at(self, by: dict[str, Any]) -> datetime | None:
        """Return the instant of a change that is wide, which is told before any row is locked; None of another."""
        return by["now"] if self.is_wide else None

    def answer(self, row: Any, *, status: int = 200) -> Response:
        """Return a row as it looks, with its entity tag."""
        representation = self.get_serializer(row).data
        return Response(representation, status=status, headers={"ETag": etag_of(representation)})

    def valid(self, *, row: Any = None, partial: bool = False) -> dict[str, Any]:
        """Return the values of the body.

        Raises:
            ValidationError: naming every bad field.
        """
        serializer: Any = self.get_serializer(row, data=self.sent(), partial=partial)
        serializer.is_valid(raise_exception=True)
        given = dict(serializer.validated_data)
        return given if row is None or partial else serializer.left_out() | given


class ResourceListView(ResourceView, ListCreateAPIView):
    """The list of a resource, and adding to it: a subclass that may be added to defines `create_row`."""

    pagination_class = Page
    filter_backends = (ByColumns, Ordered)

    hooks: ClassVar[dict[str, tuple[str, ...]]] = {"create_row": ("post",)}

    def known_parameters(self) -> tuple[str, ...] | None:
        """Return the parameters of adding; those of the list are the business of its filters."""
        return None if self.request.method in {"GET", "HEAD"} else super().known_parameters()

    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Return a page of the list."""
        try:
            return self.list(request, *args, **kwargs)
        except PageNotFound:
            raise NotFound("The list has no such page.") from None

    def post(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Add a row."""
        values = self.valid()
        by = self.change(values)
        with deciding_write(wide_at=self.wide_at(by)):
            row = cast("Any", self).create_row(values=values, **by)
        response = self.answer(row, status=201)
        response["Location"] = request.build_absolute_uri(f"{request.path}/{getattr(row, self.lookup_field)}")
        return response


class ResourceDetailView(ResourceView):
    """One row of a resource: a subclass that can be changed defines `update_row` and `delete_row`."""

    hooks: ClassVar[dict[str, tuple[str, ...]]] = {"update_row": ("put", "patch"), "delete_row": ("delete",)}

    def get_object(self) -> Any:
        """Return the row of the address.

        Raises:
            NotFound: there is none.
        """
        with suppress(Http404):
            return super().get_object()
        raise NotFound(f"There is no such {self.get_queryset().model._meta.verbose_name}.")

    def filter_queryset(self, queryset: Any) -> Any:
        """Return the rows, locked where they are about to be changed."""
        return queryset if self.request.method in {"GET", "HEAD"} else queryset.select_for_update(of=("self",))

    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Return the row."""
        return self.answer(self.get_object())

    def put(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Change the row; fields that are left out take their defaults."""
        return self._update(request, partial=False)

    def patch(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Change the fields that are given."""
        return self._update(request, partial=True)

    def delete(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Delete the row."""
        by = self.change({}) | {"reason": reason_of(request)}
        with deciding_write(wide_at=self.wide_at(by)):
            row = self.get_object()
            check_if_match(request, self.get_serializer(row).data)
            cast("Any", self).delete_row(row=row, **by)
        return Response(status=204)

    def _update(self, request: Request, *, partial: bool) -> Response:
        """Compare and change under one lock, so that no update is lost in between."""
        when = self.change({})
        with deciding_write(wide_at=self.wide_at(when)):
            row = self.get_object()
            check_if_match(request, self.get_serializer(row).data)
            changes = self.valid(row=row, partial=partial)
            by = self.change(changes) | {"now": when["now"]}
            row = cast("Any", self).update_row(row=row, changes=changes, **by)
        return self.answer(row)
