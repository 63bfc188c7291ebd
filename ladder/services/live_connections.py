"""Whom a telemetry item means: live connections, found and locked once for a whole body."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec
from django.db import IntegrityError, transaction
from django.db import connection as database
from django.db.models import QuerySet

from billing_catalog.models import ProviderAlias
from ladder.core.timeline.causes import Cause
from ladder.models import Connection
from ladder.services.trail import remember_new
from omniroute_admin.common.core.names import NOAUTH, canonical_provider, is_connection_id, is_provider
from omniroute_admin.common.history import Actor, stamp
from omniroute_admin.common.selectors.compiled import Compiled


class Refusal(msgspec.Struct, frozen=True):
    """Why an item means no connection: a stable word and a sentence."""

    code: str
    detail: str


class LiveConnections:
    """The live connections that a body names, by id and provider. Make it with `lock_connections`."""

    def __init__(self, *, rows: Collection[tuple[int, str, str]], aliases: Mapping[str, str]) -> None:
        """Index rows of (primary key, connection id, provider)."""
        self._aliases = aliases
        self._has_new = False
        self._keys = {(connection_id, provider): key for key, connection_id, provider in rows}
        self._providers = {connection_id: provider for _, connection_id, provider in rows}

    @property
    def keys(self) -> list[int]:
        """Return the primary keys of all of them."""
        return list(self._keys.values())

    @property
    def touched(self) -> list[int] | None:
        """Return what a write to their state touches, for the step of the revision: None where one is new."""
        return None if self._has_new else self.keys

    def find(self, *, connection_id: str, provider: str | None) -> int | Refusal:
        """Return the primary key of the connection that is meant, or why there is none (SPEC 1, `noauth`)."""
        named = None if provider is None else self.canonical(provider)
        if connection_id == NOAUTH:
            return self._find_noauth(named)
        if named == "":
            return Refusal("invalid_item", "provider: give a provider's id, or leave it out")
        known = self._providers.get(connection_id)
        if known is None:
            return Refusal(
                "unknown_connection", "connection_id: no such connection; POST /api/v1/connections makes one"
            )
        if named is not None and named != known:
            return Refusal("provider_mismatch", "provider: the connection is known under another provider")
        return self._keys[connection_id, known]

    def canonical(self, provider: str) -> str:
        """Return the provider that a name means: case, blanks and alias resolved (SPEC 1)."""
        return canonical_provider(raw=provider, aliases=self._aliases)

    def _find_noauth(self, provider: str | None) -> int | Refusal:
        if not provider:
            return Refusal("provider_required", "provider: where noauth is named, its provider is named too")
        unknown = Refusal("unknown_connection", "provider: this is no provider's id, so it has no noauth")
        return self._keys.get((NOAUTH, provider), unknown)

    def imply(self, *, providers: Iterable[str], actor: Actor, now: datetime) -> None:
        """Make the keyless paths of these providers known: `noauth` always is, stored or not (SPEC 1).

        The rows carry what telemetry says of them; no stored pool lists them.
        """
        names = {self.canonical(provider) for provider in providers}
        # In one order, so that two processes do not wait for each other.
        for name in sorted(names):
            if is_provider(name) and (NOAUTH, name) not in self._keys:
                self._has_new = True
                self._keys[NOAUTH, name] = imply_keyless(provider=name, actor=actor, now=now)


def lock_connections(*, connection_ids: Collection[str]) -> LiveConnections:
    """Return the live connections of these ids, locked in a fixed order up to the end of the transaction.

    Whoever writes windows, readings or cooldowns of a connection takes this lock first: two processes can neither
    overtake each other within one connection nor wait for each other in a circle.
    """
    wanted = sorted({one for one in connection_ids if is_connection_id(one)})
    return LiveConnections(rows=_NAMED.rows(wanted), aliases=dict(_ALIASES.all()))


def _named(connection_ids: Collection[str]) -> "QuerySet[Connection, Any]":
    rows = locked(Connection.objects.live().filter(connection_id__in=connection_ids))
    return rows.values_list("pk", "connection_id", "provider")


_NAMED = Compiled(_named)
_ALIASES = Compiled(lambda keys: ProviderAlias.objects.order_by().values_list("alias", "provider"))


def locked(rows: QuerySet[Connection]) -> QuerySet[Connection]:
    """Return the query with a lock on its rows, in the fixed order; SQLite's writers are alone anyway."""
    ordered = rows.order_by("id")
    return ordered.select_for_update(no_key=True) if database.features.has_select_for_no_key_update else ordered


def imply_keyless(*, provider: str, actor: Actor, now: datetime) -> int:
    """Make the keyless path of a canonical provider known and return its primary key."""
    row = Connection(
        connection_id=NOAUTH, provider=provider, auth_type="none", is_implied=True, created_at=now, updated_at=now
    )
    stamp(instance=row, actor=actor, reason="named by telemetry", now=now)
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError:  # another process did the same just now
        return locked(Connection.objects.live()).get(connection_id=NOAUTH, provider=provider).pk
    remember_new(key=row.pk, cause=Cause.READING, now=now)
    return row.pk
