"""How far back what is kept has been pruned."""

from collections.abc import Mapping
from datetime import datetime

import msgspec
from django.db.models import Subquery

from omniroute_admin.common.core.periods import Part
from omniroute_admin.common.models import Horizon

_OF_KIND = f"{Part.AUDIT}/"


class Pruned(msgspec.Struct, frozen=True):
    """Of something all that is older than `before` was removed, last at `moved_at`; how many rows in all."""

    before: datetime
    moved_at: datetime
    removed: int


def audit_name(kind: str) -> str:
    """Return the name of the horizon of one kind of the history (SPEC 3)."""
    return _OF_KIND + kind


def horizon_of(name: str) -> datetime | None:
    """Return before which something was pruned, None where nothing ever was; one indexed read."""
    return Horizon.objects.filter(pk=name).values_list("before", flat=True).first()


def horizon_within(name: str) -> Subquery:
    """Return the same as a part of another query, which asks for it beside its rows."""
    return Subquery(Horizon.objects.filter(pk=name).values("before")[:1])


def read_pruned(name: str) -> Pruned | None:
    """Return what was pruned of something, None where nothing ever was; one indexed read."""
    row = Horizon.objects.filter(pk=name).values_list("before", "moved_at", "removed").first()
    return None if row is None else Pruned(*row)


def audit_horizons() -> Mapping[str, Pruned]:
    """Return by the key of its kind how far back each kind of the history was pruned; one query."""
    rows = Horizon.objects.filter(pk__startswith=_OF_KIND).values_list("name", "before", "moved_at", "removed")
    return {name.removeprefix(_OF_KIND): Pruned(before, moved, removed) for name, before, moved, removed in rows}
