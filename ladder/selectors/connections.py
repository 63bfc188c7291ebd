"""Stored connections (SPEC 1, SPEC 3)."""

from django.db.models import QuerySet

from ladder.models import Connection
from omniroute_admin.common.core.names import NOAUTH
from omniroute_admin.common.errors import NotFound


def stored_connections() -> QuerySet[Connection]:
    """Return the connections that an operator stored: neither deleted nor only implied by telemetry."""
    return Connection.objects.live().filter(is_implied=False)


def known_connections() -> QuerySet[Connection]:
    """Return those of which anything is known: stored ones, and keyless paths that telemetry spoke of."""
    return Connection.objects.live()


def find_connection(*, rows: QuerySet[Connection], connection_id: str, provider: str | None) -> Connection:
    """Return the connection of an id among the rows; `provider`, canonical, must be its own where it is given.

    Raises:
        NotFound: there is none; `noauth` without a provider means none.
    """
    found = rows.filter(connection_id=connection_id)
    if provider is not None or connection_id == NOAUTH:
        found = found.filter(provider=provider or "")
    row = found.first()
    if row is None:
        raise NotFound("There is no such connection.")
    return row


def is_stored(*, provider: str, connection_id: str) -> bool:
    """Tell whether a connection of that name is live and stored."""
    return stored_connections().filter(provider=provider, connection_id=connection_id).exists()
