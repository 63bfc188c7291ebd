"""Which rights of roles the admin's pages ask for (SPEC 5)."""

from collections.abc import Iterable
from typing import Any, ClassVar

from django.contrib.admin.views.main import ERROR_FLAG
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseRedirect

from omniroute_admin.common.core.roles import AUDIT_READ
from omniroute_admin.common.scopes import rights_of_user
from omniroute_admin.common.views.guard import require_right

_BY_FILTER = ("", "__exact", "__in", "__isnull", "__isempty", "__gte", "__lt", "__id__exact")
"""How the filters beside a list ask for their column."""
_BY_DATE = ("year", "month", "day", "gte", "lt")


class ByRights:
    """An admin whose pages ask for rights of roles (SPEC 5), in place of Django's own permissions.

    `reads` is the right to look, `writes` the one to add, change, delete and act; without a word nobody may. What a
    history tells of its writers needs the right to read the audit as well.
    """

    reads: ClassVar[str] = ""
    writes: ClassVar[str] = ""

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Tell whether the reader sees it among the others."""
        return self._has(request, self.reads)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Tell whether the reader may look."""
        return self._has(request, self.reads)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Tell whether the reader may add."""
        return self._has(request, self.writes)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Tell whether the reader may change."""
        return self._has(request, self.writes)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Tell whether the reader may delete."""
        return self._has(request, self.writes)

    def has_view_history_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Tell whether the reader may see who changed what."""
        return self._has(request, self.reads) and self._has(request, AUDIT_READ)

    def changelist_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """List the rows; a filter with a number beyond any row is answered as Django answers one that is no number."""
        self.require(request, self.reads)
        try:
            return super().changelist_view(request, *args, **kwargs)  # type: ignore[misc]
        except OverflowError:
            return HttpResponseRedirect(f"{request.path}?{ERROR_FLAG}=1")

    def changeform_view(self, request: HttpRequest, object_id: str | None = None, *args: Any, **kwargs: Any) -> Any:
        """Show, add or change a row."""
        self.require(request, self.reads if object_id else self.writes or self.reads)
        return super().changeform_view(request, object_id, *args, **kwargs)  # type: ignore[misc]

    def delete_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Delete a row."""
        self.require(request, self.writes or self.reads)
        return super().delete_view(request, *args, **kwargs)  # type: ignore[misc]

    def history_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Show who changed what."""
        self.require(request, self.reads, AUDIT_READ)
        return super().history_view(request, *args, **kwargs)  # type: ignore[misc]

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """Return the row; an address that names no field to look by means the key, as one without the name does."""
        return super().get_object(request, object_id, from_field or None)  # type: ignore[misc]

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Tell whether an address may narrow the list by a column: by what the list's filters name, and no other.

        Django would take every column of the row, so that one that is never shown (the hash of a key) could be found
        out letter by letter, and a pattern that no database reads would end in an error.
        """
        if not _is_of_filter(lookup, self.get_list_filter(request), self.date_hierarchy):  # type: ignore[attr-defined]
            return False
        return bool(super().lookup_allowed(lookup, value, request))  # type: ignore[misc]

    def require(self, request: HttpRequest, *rights: str) -> None:
        """Refuse by the name of the role that is needed; a form that is sent needs the right to write as well.

        Raises:
            RoleNeededError: the reader lacks a right.
            PermissionDenied: nobody may, as no right is named.
        """
        sent = [self.writes] if request.method == "POST" and self.writes else []
        for right in (*rights, *sent):
            if not right:
                raise PermissionDenied
            require_right(request.user, right)

    @staticmethod
    def _has(request: HttpRequest, right: str) -> bool:
        return bool(right) and right in rights_of_user(request.user)


def _is_of_filter(lookup: str, filters: Iterable[Any], dates: str | None) -> bool:
    """Tell whether a filter beside a list, or its line of dates, asks for such a lookup."""
    names = [one[0] if isinstance(one, tuple) else getattr(one, "parameter_name", one) for one in filters]
    asked = {f"{name}{way}" for name in names for way in _BY_FILTER}
    asked |= {f"{dates}__{part}" for part in _BY_DATE} if dates else set()
    return lookup in asked
