"""Take old events out of the ledger and leave their sums, so that every total stays what it was (M4, M5).

What was taken out had happened before the horizon, corrections of it too. So whatever is sent with an instant before
the horizon, and is not there, cannot be told from what was there: it is refused as `too_old` and never booked twice.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Any

import msgspec
from django.db.models import F, Q, QuerySet

from ladder.core.spend.folding import Cuts, Folded, FoldedSum, PastRow, Place, cuts_of, fold
from ladder.models import Connection, LedgerSum, RungBudget, SpendHold, UsageEvent
from ladder.services.live_connections import locked
from ladder.services.pruning import Removed, Run, delete_keys, keys_in_order
from omniroute_admin.common.core.periods import Part
from omniroute_admin.common.services.horizons import move_horizon, note_removed
from omniroute_admin.common.services.revision import deciding_write
from omniroute_admin.common.services.statements import insert_many, quoted

_PLACE = ("connection", "model", "rung", "money_kind", "booked_at")
_ADDED = ("booked_usd", "estimated_usd", "folded_rows", "folded_events", "folded_estimates")
_ROW = (
    "pk", "event_id", "original_id", "corrects_event_id", "connection_id", "model", "rung", "money_kind", "occurred_at",
    "booked_at", "booked_usd", "booked_cost", "is_estimated", "estimated_change",
)  # fmt: skip


class FoldReport(msgspec.Struct, frozen=True):
    """What was removed, and the events that stay because their rows do not add up (`manage.py check_ledger`)."""

    removed: tuple[Removed, ...]
    kept_faulty: tuple[str, ...] = ()


def fold_ledger(*, before: datetime, run: Run) -> FoldReport:
    """Fold what happened before an instant into sums, and remove the holds that ended before it.

    An event stays, with all of its corrections, where one of those happened later, where the hold that it settled ended
    later, and where its rows do not add up. The revision stays, as no decision changes; the token of what screens show
    moves. `before` must lie behind the windows of all budgets.
    """
    if not run.dry_run:
        move_horizon(name=Part.LEDGER, before=before, now=run.now)
    folder = _Folder(before=before, run=run)
    for key in _connections(before):
        folder.fold(key)
    holds = Removed("ladder_spendhold", folder.remove_holds())
    return FoldReport((Removed("ladder_usageevent", folder.rows), holds), tuple(folder.refused))


def _connections(before: datetime) -> list[int]:
    old = UsageEvent.objects.filter(booked_at__lt=before).order_by()
    return sorted(old.values_list("connection_id", flat=True).distinct())


class _Folder:
    """One run; `rows` counts the rows that it took out of the ledger, `refused` names the events that stay."""

    def __init__(self, *, before: datetime, run: Run) -> None:
        self._before, self._run = before, run
        self.rows = self._holds = 0
        self.refused: list[str] = []

    def fold(self, connection: int) -> None:
        """Fold what is old of one connection, batch by batch, from the oldest on."""
        after: tuple[datetime, int] | None = None
        while True:
            with deciding_write() as write:
                write.changed = False
                # The lock of whoever books on it: no event is looked for, or corrected, while its rows go.
                locked(Connection.objects.filter(pk=connection)).get()
                firsts = list(self._firsts(connection, after))
                count = self._fold_chains([key for key, _ in firsts])
                write.shown = count > 0 and not self._run.dry_run
            self._run.progress(count)
            if len(firsts) < self._run.batch:
                return
            key, at = firsts[-1]
            after = at, key

    def _firsts(self, connection: int, after: tuple[datetime, int] | None) -> QuerySet[UsageEvent, Any]:
        rows = UsageEvent.objects.filter(connection=connection, corrects_event_id="", booked_at__lt=self._before)
        if after is not None:
            rows = rows.filter(Q(booked_at__gt=after[0]) | Q(booked_at=after[0], pk__gt=after[1]))
        return rows.order_by("booked_at", "pk").values_list("pk", "booked_at")[: self._run.batch]

    def _fold_chains(self, firsts: list[int]) -> int:
        chains = _read_chains(firsts)
        kept, holds = self._held(chains)
        old = [one for key, one in chains.items() if key not in kept and self._is_old(one)]
        folded = fold(chains=old, cuts=_cuts())
        gone = {*folded.originals, *folded.corrections}
        settled = [key for key, event in holds.items() if event in gone]
        if not self._run.dry_run:
            self._replace(folded, settled)
        self.rows, self._holds = self.rows + len(gone), self._holds + len(settled)
        self.refused += folded.refused
        return len(gone) + len(settled)

    def _replace(self, folded: Folded, holds: list[int]) -> None:
        """Put sums in the place of rows, in one transaction; what refers to a row goes before it."""
        _add(folded.sums)
        delete_keys(SpendHold, holds)
        delete_keys(UsageEvent, list(folded.corrections))
        delete_keys(UsageEvent, list(folded.originals))
        count = len(holds) + len(folded.corrections) + len(folded.originals)
        note_removed(name=Part.LEDGER, count=count, now=self._run.now)

    def _is_old(self, rows: Sequence[PastRow]) -> bool:
        return all(row.occurred_at < self._before for row in rows)

    def _held(self, chains: Mapping[int, Sequence[PastRow]]) -> tuple[set[int], dict[int, int]]:
        """Return the chains that a hold keeps, and of the other holds that they settled the event.

        A hold keeps its chain where it ended later, and where the event does not name it, which is a fault.
        """
        first_of = {row.pk: key for key, rows in chains.items() for row in rows}
        holds = SpendHold.objects.filter(settled_by__in=first_of).order_by()
        keeps = Q(expires_at__gte=self._before) | ~Q(settled_by__hold_id=F("hold_id"))
        kept = {first_of[event] for event in holds.filter(keeps).values_list("settled_by", flat=True) if event}
        told = holds.values_list("pk", "settled_by")
        return kept, {key: event for key, event in told if event and first_of[event] not in kept}

    def remove_holds(self) -> int:
        """Remove the holds that ended before and that no usage settled; return how many went in all."""
        over = SpendHold.objects.filter(expires_at__lt=self._before, settled_by=None)
        if self._run.dry_run:
            return self._holds + over.count()
        for keys in keys_in_order(over, batch=self._run.batch):
            with deciding_write() as write:
                write.changed, write.shown = False, True
                # One may have been settled meanwhile.
                still = list(over.filter(pk__in=keys).select_for_update().values_list("pk", flat=True))
                delete_keys(SpendHold, still)
                note_removed(name=Part.LEDGER, count=len(still), now=self._run.now)
            self._holds += len(still)
            self._run.progress(len(still))
        return self._holds


def _read_chains(firsts: list[int]) -> dict[int, list[PastRow]]:
    """Return the rows of each original by its key, itself first."""
    originals = UsageEvent.objects.filter(pk__in=firsts).order_by("booked_at", "pk").values_list(*_ROW)
    corrections = UsageEvent.objects.filter(original__in=firsts).order_by("pk").values_list(*_ROW)
    found: dict[int, list[PastRow]] = {}
    for row in map(_past_row, chain(originals, corrections)):
        found.setdefault(row.original or row.pk, []).append(row)
    return found


def _past_row(row: tuple[Any, ...]) -> PastRow:
    pk, event_id, original, corrects, *rest = row
    return PastRow(pk, event_id, original, corrects, Place(*rest[:4]), *rest[4:])


def _cuts() -> Cuts:
    """Return where quarters are cut: at every reset that the budgets, or their history, tell of (M9)."""
    resets: dict[str, set[datetime]] = {}
    for model in (RungBudget, RungBudget.history.model):
        told = model._default_manager.order_by()
        for rung, at in told.values_list("rung", "counted_from"):
            if at is not None:
                resets.setdefault(rung, set()).add(at)
    return {rung: cuts_of(ats) for rung, ats in resets.items()}


def _add(sums: Sequence[FoldedSum]) -> None:
    """Add sums to those that are there, in one order."""
    insert_many(
        model=LedgerSum,
        columns=[*_PLACE, *_ADDED, "last_at"],
        rows=sorted(map(list, map(_values, sums))),
        on_conflict=_adding(),
    )


def _values(one: FoldedSum) -> Iterator[Any]:
    yield from (one.place.connection, one.place.model, one.place.rung, one.place.money_kind, one.booked_at)
    yield from (one.usd, one.estimated_usd, one.rows, one.events, one.estimates, one.last_at)


def _adding() -> str:
    table = quoted(LedgerSum._meta.db_table)
    columns = [str(one.column) for one in LedgerSum._meta.concrete_fields if one.name in _PLACE]
    added = [f"{quoted(name)} = {table}.{quoted(name)} + excluded.{quoted(name)}" for name in _ADDED]
    last = quoted("last_at")
    later = f"{last} = CASE WHEN excluded.{last} > {table}.{last} THEN excluded.{last} ELSE {table}.{last} END"
    return f"ON CONFLICT ({', '.join(map(quoted, columns))}) DO UPDATE SET {', '.join([*added, later])}"
