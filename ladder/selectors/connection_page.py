"""What the page of one connection asks beside the decision (SPEC 5, 2)."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db import connection as database
from django.db.models import F, OuterRef, Q, QuerySet, Subquery, prefetch_related_objects
from django.db.models.functions import Coalesce

from billing_catalog.models import BillingEntry
from ladder.core.readings.pace import Point
from ladder.core.values import ReadingStatus
from ladder.mapping import age_from
from ladder.models import Connection, Cooldown, QuotaReading, QuotaWindow, RungFlip

_EXHAUSTED = ReadingStatus.EXHAUSTED.value


def connections_named(*, provider: str, connection_id: str) -> list[Connection]:
    """Return every connection that ever had this name, the live one first, then the last deleted first; one query."""
    if "\x00" in provider + connection_id:  # no name has it, and PostgreSQL refuses to be asked for it
        return []
    rows = Connection.objects.filter(provider=provider, connection_id=connection_id)
    return list(rows.order_by(F("deleted_at").desc(nulls_first=True), "-id"))


def read_used_up(*, keys: Collection[int], cutoff: Any) -> dict[int, datetime]:
    """Return since when windows are used up: the first reading after the newest that was above its cutoff; one query.

    `cutoff` is that of the settings; a window's own replaces it (Q7).
    """
    if not keys:
        return {}
    of_window = QuotaReading.objects.filter(window=OuterRef("pk"))
    above = Q(unlimited=True) | Q(remaining_percent__gt=Coalesce(OuterRef("exit_cutoff_percent"), cutoff))
    newest_above = of_window.filter(above).exclude(status=_EXHAUSTED).order_by("-observed_at").values("observed_at")
    since = of_window.filter(observed_at__gt=OuterRef("above_at")).order_by("observed_at").values("observed_at")
    rows = QuotaWindow.objects.filter(pk__in=keys).annotate(above_at=Subquery(newest_above[:1]))
    found = rows.annotate(used_up_at=Subquery(since[:1])).order_by().values_list("pk", "used_up_at")
    return {key: at for key, at in found if at is not None}


def read_earlier_resets(*, keys: Collection[int], now: datetime) -> dict[int, datetime]:
    """Return of each window the reset that was told of last and has passed; one query."""
    if not keys:
        return {}
    past = QuotaReading.objects.filter(window=OuterRef("pk"), reset_at__lte=now).order_by("-observed_at")
    rows = QuotaWindow.objects.filter(pk__in=keys).annotate(earlier=Subquery(past.values("reset_at")[:1]))
    return {key: at for key, at in rows.order_by().values_list("pk", "earlier") if at is not None}


def sample_readings(*, instants: Mapping[int, Sequence[datetime]]) -> dict[int, list[Point]]:
    """Return by window the newest reading at or before each of its instants, each once, oldest first; one query.

    However many readings there are, only as many are read as the line on a screen has points. One without a number is
    left out, unless it said exhausted: that is drawn as nothing left.
    """
    asked = [(key, at) for key, ats in instants.items() for at in ats]
    found: dict[int, list[Point]] = {}
    for row in _newest_before(asked) if asked else ():
        left = 0 if row.status == _EXHAUSTED else row.remaining_percent
        at = age_from(observed_at=row.observed_at, received_at=row.received_at)
        if left is not None and at is not None:
            found.setdefault(row.window_id, []).append(Point(at, Decimal(left), row.reset_at))
    return {key: sorted(points, key=lambda one: one.at) for key, points in found.items()}


def _newest_before(asked: Sequence[tuple[int, datetime]]) -> Any:
    """Ask for the newest reading of a window before an instant, for many at once: each is one step along the index."""
    table, field = database.ops.quote_name(QuotaReading._meta.db_table), QuotaReading._meta.get_field("observed_at")
    values = ", ".join(["(%s, %s)"] * len(asked))
    # Only names of columns and places of parameters are put into the text.
    statement = (
        f"WITH asked (window_key, until) AS (VALUES {values})"  # noqa: S608
        f" SELECT * FROM {table} WHERE id IN (SELECT (SELECT one.id FROM {table} one"
        " WHERE one.window_id = asked.window_key AND one.observed_at <= asked.until"
        " ORDER BY one.observed_at DESC LIMIT 1) FROM asked)"
    )
    parameters = [part for key, at in asked for part in (key, field.get_db_prep_value(at, database))]
    return QuotaReading.objects.raw(statement, parameters)


def read_along(*, connection: Connection) -> None:
    """Read the windows and cooldowns of a connection along with it; two queries for whatever looks at them later."""
    prefetch_related_objects([connection], "windows", "cooldowns")


def cooldowns_of(*, connection: Connection) -> list[Cooldown]:
    """Return a connection's cooldowns, those of every model first."""
    return sorted(connection.cooldowns.all(), key=lambda one: (one.model or "", one.cause))


def find_catalogue_row(*, provider: str, auth_type: str | None) -> BillingEntry | None:
    """Return the row of the catalogue of a provider and auth type, None being the provider-wide one; one query."""
    rows: QuerySet[BillingEntry] = BillingEntry.objects.filter(provider=provider)
    return (
        rows.filter(auth_type__isnull=True).first() if auth_type is None else rows.filter(auth_type=auth_type).first()
    )


def read_deleted_connections(*, limit: int) -> list[Connection]:
    """Return connections that were deleted, the last one first; one query."""
    return list(Connection.objects.filter(deleted_at__isnull=False).order_by("-deleted_at", "-id")[:limit])


def read_flips(*, connection: Connection, limit: int) -> list[RungFlip]:
    """Return the last flips of a connection, the newest first; one query."""
    return list(RungFlip.objects.filter(connection=connection).order_by("-at", "-id")[:limit])
