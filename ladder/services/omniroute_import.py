"""Take over what an OmniRoute database says: connections, last readings, running cooldowns.

The file is the source of truth for what the import itself wrote and nobody else touched since. An operator's edit
stays, field by field; what an operator deleted or cleared is not brought back; what vanished from the file is left
alone and reported. Run again with the same file nothing is saved, so there is no history row and no new revision.
"""

from collections.abc import Callable, Sequence
from datetime import datetime

import msgspec
from django.db import transaction

from ladder.adapters.omniroute import ImportedReading, ImportProblem, OmnirouteContents
from ladder.models import Connection, QuotaWindow
from ladder.services.omniroute_connections import store_connections
from ladder.services.omniroute_cooldowns import cooldown_states, store_cooldowns
from ladder.services.omniroute_report import Counts, ImportReport, Tally
from ladder.services.reading_items import ReadingItem, reading_item
from ladder.services.readings import record_readings
from omniroute_admin.common.history import Actor
from omniroute_admin.common.services.revision import deciding_write

Progress = Callable[[int, int], None]

_WINDOW_STATE = (
    "connection_id",
    "window",
    "remaining_percent",
    "unlimited",
    "status",
    "reset_at",
    "observed_at",
    "combine",
    "model",
    "is_reported",
)


def import_omniroute(
    *,
    contents: OmnirouteContents,
    actor: Actor,
    now: datetime,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> ImportReport:
    """Store the contents of one file in one transaction and report what was done, row by row kind.

    A dry run does the same and takes it all back, so that its report is what the real run would say. `progress` is
    told (steps done, steps in all).
    """
    with transaction.atomic():
        report = _store(contents=contents, actor=actor, now=now, progress=progress or (lambda *_: None))
        if dry_run:
            transaction.set_rollback(True)
    return msgspec.structs.replace(report, dry_run=dry_run)


def _store(*, contents: OmnirouteContents, actor: Actor, now: datetime, progress: Progress) -> ImportReport:
    """Connections first, then readings, then cooldowns, which are clamped and lifted by those readings (C1, C3)."""
    total = len(contents.connections) + len(contents.readings) + len(contents.cooldowns)
    with deciding_write() as write:
        stored, connections = store_connections(contents=contents, actor=actor, now=now)
        progress(len(contents.connections), total)
        before = cooldown_states(stored)
        windows, readings = _store_readings(readings=contents.readings, stored=stored, actor=actor, now=now)
        progress(total - len(contents.cooldowns), total)
        cooldowns = store_cooldowns(cooldowns=contents.cooldowns, stored=stored, before=before, actor=actor, now=now)
        progress(total, total)
        tallies = (connections, windows, readings, cooldowns)
        write.changed = before != cooldown_states(stored) or any(tally.is_change for tally in tallies)
    return ImportReport(
        connections=connections.counts,
        windows=windows.counts,
        readings=readings.counts,
        cooldowns=cooldowns.counts,
        problems=(*contents.problems, *(found for tally in tallies for found in tally.problems)),
        seen=contents.seen,
    )


def _store_readings(
    *, readings: Sequence[ImportedReading], stored: dict[str, Connection], actor: Actor, now: datetime
) -> tuple[Tally, Tally]:
    """Record the readings the way a router's are, and tell what became of the windows and of the readings.

    The last fetch has all windows of a connection, so the list is complete for every connection that has one.
    """
    taken = [reading for reading in readings if reading.connection_id in stored]
    before = _window_states(stored)
    answer = record_readings(
        items=[_to_item(reading=reading, provider=stored[reading.connection_id].provider) for reading in taken],
        complete_for=sorted({reading.connection_id for reading in taken}),
        actor=actor,
        now=now,
    )
    rejected = [
        ImportProblem(
            table="quota_snapshots", key=_key_of(taken, refused.index), code=refused.code, detail=refused.detail
        )
        for refused in answer.rejected
    ]
    counts = Counts(
        created=answer.accepted + answer.superseded,
        unchanged=answer.duplicates,
        skipped=len(readings) - len(taken) + len(rejected),
    )
    return _compare(before=before, after=_window_states(stored)), Tally(counts=counts, problems=tuple(rejected))


def _key_of(taken: Sequence[ImportedReading], index: int) -> str:
    """Point at the refused item; indexes past the readings are those of the complete list."""
    if index >= len(taken):
        return "complete list"
    return f"{taken[index].connection_id}/{taken[index].window}"


def _to_item(*, reading: ImportedReading, provider: str) -> ReadingItem:
    return reading_item(
        connection_id=reading.connection_id,
        provider=provider,
        window=reading.window,
        observed_at=reading.observed_at,
        remaining_percent=reading.remaining_percent,
        unlimited=reading.unlimited or None,
        status=reading.status,
        reset_at=reading.reset_at,
        combine=reading.combine,
        model=reading.model,
    )


def _window_states(stored: dict[str, Connection]) -> dict[tuple[int, str], tuple[object, ...]]:
    """The telemetry part of every window of the stored connections."""
    rows = QuotaWindow.objects.filter(connection__in=[connection.pk for connection in stored.values()])
    return {(row[0], row[1]): row[2:] for row in rows.values_list(*_WINDOW_STATE)}


def _compare(
    *, before: dict[tuple[int, str], tuple[object, ...]], after: dict[tuple[int, str], tuple[object, ...]]
) -> Tally:
    changed = sum(1 for key, state in before.items() if after.get(key) != state)
    counts = Counts(created=len(after) - len(before), changed=changed, unchanged=len(before) - changed)
    return Tally(counts=counts)
