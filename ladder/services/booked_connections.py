"""On whom usage is booked: the present connection of an id, unless a deleted one lived then (SPEC 3, SPEC 4)."""

from collections.abc import Collection, Iterable
from datetime import datetime

from billing_catalog.core.versions import Span, Version, spans_of, standing_at
from billing_catalog.selectors.aliases import alias_map
from billing_catalog.selectors.past import as_present
from ladder.models import Connection
from ladder.services.live_connections import LiveConnections, Refusal, locked
from omniroute_admin.common.core.names import NOAUTH, canonical_provider, is_connection_id
from omniroute_admin.common.history import Actor


class BookedConnections:
    """The connections that a body names, deleted ones included. Make it with `lock_booked`."""

    def __init__(self, *, rows: Collection[Connection], aliases: dict[str, str]) -> None:
        """Index the rows."""
        self._aliases = aliases
        self._by_key = {row.pk: row for row in rows}
        self._deleted = [row for row in rows if row.deleted_at is not None]
        live = [(row.pk, row.connection_id, row.provider) for row in rows if row.deleted_at is None]
        self._live = LiveConnections(rows=live, aliases=aliases)
        self._auth_types: dict[int, list[Span[str | None]]] = {}

    def imply(self, *, providers: Iterable[str], actor: Actor, now: datetime) -> bool:
        """Make the keyless paths of these providers known (SPEC 1) and tell whether any was not."""
        before = set(self._live.keys)
        self._live.imply(providers=providers, actor=actor, now=now)
        new = set(self._live.keys) - before
        self._by_key |= {row.pk: row for row in (Connection.objects.filter(pk__in=new) if new else [])}
        return bool(new)

    def find(self, *, connection_id: str, provider: str | None, at: datetime) -> Connection | Refusal:
        """Return the connection that an event of an instant is booked on, or why there is none.

        The present one of that id, unless a deleted one lived at the instant; without a present one the last deleted.
        """
        named = None if provider is None else self.provider_of(provider)
        deleted = [row for row in self._deleted if row.connection_id == connection_id and named in {None, row.provider}]
        if named is not None or connection_id != NOAUTH:
            lived = [row for row in deleted if row.deleted_at and row.created_at <= at < row.deleted_at]
            if lived:
                return max(lived, key=lambda row: row.pk)
        found = self._live.find(connection_id=connection_id, provider=provider)
        if not isinstance(found, Refusal):
            return self._by_key[found]
        if found.code == "unknown_connection" and deleted:
            return max(deleted, key=lambda row: row.pk)
        is_known = any(row.connection_id == connection_id for row in self._deleted)
        if found.code == "unknown_connection" and is_known and connection_id != NOAUTH:
            return Refusal("provider_mismatch", "provider: the connection was known under another provider")
        return found

    def provider_of(self, raw: str) -> str:
        """Return the provider that a name means."""
        return canonical_provider(raw=raw, aliases=self._aliases)

    def read_auth_types(self, *, keys: Collection[int]) -> None:
        """Read which auth type these connections had when (M6); one query."""
        versions: dict[int, list[Version[tuple[str | None]]]] = {key: [] for key in keys}
        past = Connection.history.filter(id__in=keys).order_by("history_id")
        for key, since, auth_type in past.values_list("id", "history_date", "auth_type"):
            versions[key].append(Version(key, since, (auth_type,)))
        for key, said in versions.items():
            self._auth_types[key] = _spans(key, said, self._by_key[key].auth_type)

    def auth_type_of(self, booked: Connection, *, at: datetime) -> str | None:
        """Return the auth type that a connection had at an instant."""
        return standing_at(spans=self._auth_types[booked.pk], at=at)[0]


def _spans(key: int, said: list[Version[tuple[str | None]]], present: str | None) -> list[Span[str | None]]:
    spans = spans_of(versions=as_present(versions=said, present={key: (present,)}), key=lambda _: key)
    return [Span(span.row, span.start, span.end, span.value[0]) for span in spans]


def lock_booked(*, connection_ids: Collection[str]) -> BookedConnections:
    """Return the connections of these ids, deleted ones too, locked in the fixed order to the transaction's end."""
    wanted = sorted({one for one in connection_ids if is_connection_id(one)})
    rows = locked(Connection.objects.filter(connection_id__in=wanted))
    return BookedConnections(rows=list(rows), aliases=alias_map())
