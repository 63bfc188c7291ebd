"""The connections of an OmniRoute database (see `omniroute_import`)."""

from collections.abc import Iterable
from datetime import datetime
from itertools import groupby

from billing_catalog.models import ProviderAlias
from ladder.adapters.omniroute import ImportedConnection, ImportProblem, OmnirouteContents
from ladder.core.timeline.causes import Cause
from ladder.models import Connection
from ladder.services.live_connections import locked
from ladder.services.omniroute_report import Counts, Tally
from ladder.services.trail import remember_accounts, remember_new
from omniroute_admin.common.core.names import canonical_provider
from omniroute_admin.common.history import Actor, stamp

IMPORT_REASON = "Imported from an OmniRoute database"
"""Stands in the history of everything the import wrote, and tells it from what anyone else did."""

_TABLE = "provider_connections"
# `provider` is not among them: an id that moves to another provider is another account, which must not inherit the
# first one's windows. The overage override is an operator's word (B4); no file has it.
_FIELDS = ("auth_type", "label", "is_enabled")


def store_connections(
    *, contents: OmnirouteContents, actor: Actor, now: datetime
) -> tuple[dict[str, Connection], Tally]:
    """Create and follow connections; return those the file speaks of by id, and what became of each."""
    writer = _Writer(actor=actor, now=now, ids=[connection.connection_id for connection in contents.connections])
    for connection in contents.connections:
        writer.store(connection)
    writer.report_vanished()
    unread = contents.seen.connections - len(contents.connections)
    counts = Counts(**(writer.counts | {"skipped": writer.counts["skipped"] + unread}))
    return writer.stored, Tally(counts=counts, problems=tuple(writer.problems))


class _Writer:
    """Stores one connection after another; everything it needs is read once, up front."""

    def __init__(self, *, actor: Actor, now: datetime, ids: list[str]) -> None:
        self.actor = actor
        self.now = now
        self.stored: dict[str, Connection] = {}
        self.problems: list[ImportProblem] = []
        self.counts = {"created": 0, "changed": 0, "unchanged": 0, "skipped": 0}
        self._ids = ids
        self._aliases = dict(ProviderAlias.objects.values_list("alias", "provider"))
        self._live = {row.connection_id: row for row in locked(Connection.objects.live().filter(connection_id__in=ids))}
        self._deleted = set(
            Connection.objects.filter(connection_id__in=ids, deleted_at__isnull=False).values_list(
                "connection_id", flat=True
            )
        )
        self._edited = _edited_fields(row.pk for row in self._live.values())

    def store(self, imported: ImportedConnection) -> None:
        """Create the connection, or bring an existing one up to the file."""
        provider = canonical_provider(raw=imported.provider, aliases=self._aliases)
        row = self._live.get(imported.connection_id)
        if row is not None and row.provider != provider:
            self._skip(imported, "provider_mismatch", "The id is known here under another provider; skipped.")
        elif row is not None:
            self._count("changed" if self._follow(row, imported) else "unchanged")
            self.stored[row.connection_id] = row
        elif imported.connection_id in self._deleted:
            self._skip(
                imported, "deleted_here", "The connection was deleted here and is not brought back; create it by hand."
            )
        else:
            self.stored[imported.connection_id] = self._create(imported, provider)
            self._count("created")

    def _create(self, imported: ImportedConnection, provider: str) -> Connection:
        row = Connection(
            connection_id=imported.connection_id,
            provider=provider,
            created_at=self.now,
            **{name: getattr(imported, name) for name in _FIELDS},
        )
        self._save(row)
        return row

    def _follow(self, row: Connection, imported: ImportedConnection) -> bool:
        """Take over what differs and nobody edited; tell whether the row was saved."""
        differing = {name for name in _FIELDS if getattr(row, name) != getattr(imported, name)}
        kept = differing & self._edited[row.pk]
        for name in sorted(kept):
            self._report(imported, "kept_as_edited", f"{name} was set here and stays; the file says otherwise.")
        for name in differing - kept:
            setattr(row, name, getattr(imported, name))
        if differing - kept:
            self._save(row)
        return bool(differing - kept)

    def _save(self, row: Connection) -> None:
        if row.pk is not None:
            remember_accounts(keys=[row.pk], cause=Cause.OPERATOR, now=self.now)
        row.updated_at = self.now
        stamp(instance=row, actor=self.actor, reason=IMPORT_REASON, now=self.now)
        row.save()
        remember_new(key=row.pk, cause=Cause.OPERATOR, now=self.now)

    def report_vanished(self) -> None:
        """Name the connections an earlier import made that are not in this file; they are left as they are."""
        made_here = Connection.history.filter(history_type="+", history_change_reason=IMPORT_REASON).values("id")
        gone = Connection.objects.live().filter(pk__in=made_here).exclude(connection_id__in=self._ids)
        for connection_id in gone.order_by("connection_id").values_list("connection_id", flat=True):
            detail = "An earlier import made this connection; the file no longer has it. Left as it is."
            self.problems.append(ImportProblem(table=_TABLE, key=connection_id, code="vanished", detail=detail))

    def _count(self, word: str) -> None:
        self.counts[word] += 1

    def _skip(self, imported: ImportedConnection, code: str, detail: str) -> None:
        self._count("skipped")
        self._report(imported, code, detail)

    def _report(self, imported: ImportedConnection, code: str, detail: str) -> None:
        self.problems.append(ImportProblem(table=_TABLE, key=imported.connection_id, code=code, detail=detail))


def _edited_fields(keys: Iterable[int]) -> dict[int, set[str]]:
    """Which fields someone other than the import has set, by the connection's primary key.

    Read from the history: a row that the import did not write, compared with the one before it. Where the import did
    not make the connection, all of them are someone else's.
    """
    rows = Connection.history.filter(id__in=list(keys)).order_by("id", "history_date", "history_id")
    by_key = groupby(rows.values_list("id", "history_change_reason", *_FIELDS), key=lambda row: row[0])
    return {key: _edited_in(row[1:] for row in versions) for key, versions in by_key}


def _edited_in(versions: Iterable[tuple[object, ...]]) -> set[str]:
    edited: set[str] = set()
    before: tuple[object, ...] | None = None
    for reason, *values in versions:
        if reason != IMPORT_REASON:
            edited |= {name for place, name in enumerate(_FIELDS) if before is None or before[place] != values[place]}
        before = tuple(values)
    return edited
