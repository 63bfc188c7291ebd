"""Reading one OmniRoute database from end to end."""

import sqlite3
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from ladder.adapters.omniroute.cache import Cache, read_cache
from ladder.adapters.omniroute.codex import CodexState, select_codex_states
from ladder.adapters.omniroute.connections import ConnectionRow, read_connections, select_connections
from ladder.adapters.omniroute.cooldowns import read_cooldowns
from ladder.adapters.omniroute.database import open_readonly
from ladder.adapters.omniroute.fields import is_connection_id, problem
from ladder.adapters.omniroute.readings import read_readings
from ladder.adapters.omniroute.snapshots import TABLE, count_snapshots, select_newest
from ladder.adapters.omniroute.values import (
    ImportedConnection,
    ImportedCooldown,
    ImportedReading,
    ImportProblem,
    OmnirouteContents,
    RowsSeen,
)

Progress = Callable[[int, int], None]


def read_omniroute(
    *, path: Path, now: datetime, progress: Progress | None = None, lock_timeout_seconds: float = 5.0
) -> OmnirouteContents:
    """Everything the import takes from the file at `path`, as it stands at one instant.

    `now` (aware UTC) decides which cooldowns still run and which rows are from the future.
    `progress` is told (rows done, rows in all). Odd rows end up in `problems`. Raises
    `OmnirouteUnreadable` where the file as a whole cannot be used.
    """
    with open_readonly(path=path, lock_timeout_seconds=lock_timeout_seconds) as db:
        return _read_all(db=db, now=now, progress=progress or (lambda _done, _total: None))


def _read_all(*, db: sqlite3.Connection, now: datetime, progress: Progress) -> OmnirouteContents:
    rows = select_connections(db)
    found, problems = read_connections(rows)
    cache, cache_problems = read_cache(db=db, known=found)
    counts = count_snapshots(db)
    problems += cache_problems + _strangers(counts=counts, known=found)
    source = _Source(db=db, now=now, cache=cache, codex_states=select_codex_states(db))
    parts: list[_Part] = []
    total, done = len(rows) + sum(counts.values()), len(rows)
    for connection, row in found.values():
        progress(done, total)
        parts.append(_read_part(source=source, connection=connection, row=row))
        done += counts.get(connection.connection_id, 0)
    progress(total, total)
    return OmnirouteContents(
        connections=tuple(connection for connection, _row in found.values()),
        readings=tuple(reading for part in parts for reading in part.readings),
        cooldowns=tuple(cooldown for part in parts for cooldown in part.cooldowns),
        problems=(*problems, *(found for part in parts for found in part.problems)),
        seen=RowsSeen(
            connections=len(rows),
            snapshots=sum(counts.values()),
            windows=sum(part.windows for part in parts),
            cache_entries=cache.rows,
        ),
    )


class _Source(NamedTuple):
    """What is read once for all connections."""

    db: sqlite3.Connection
    now: datetime
    cache: Cache
    codex_states: Mapping[object, CodexState]


class _Part(NamedTuple):
    """What one connection has; `windows` counts its windows before any was skipped."""

    readings: list[ImportedReading]
    cooldowns: list[ImportedCooldown]
    problems: list[ImportProblem]
    windows: int


def _read_part(*, source: _Source, connection: ImportedConnection, row: ConnectionRow) -> _Part:
    connection_id = connection.connection_id
    codex = source.codex_states.get(connection_id)
    cooldowns, problems = read_cooldowns(connection=connection, row=row, codex=codex, now=source.now)
    snapshots, ahead = select_newest(db=source.db, connection_id=connection_id, now=source.now)
    cached = source.cache.entries.get(connection_id)
    readings, odd = read_readings(connection=connection, rows=snapshots, cached=cached, codex=codex, now=source.now)
    problems += odd + _from_the_future(connection_id=connection_id, count=ahead)
    return _Part(readings=readings, cooldowns=cooldowns, problems=problems, windows=len(snapshots))


def _strangers(*, counts: Mapping[object, int], known: Collection[str]) -> list[ImportProblem]:
    """One report per connection id that has snapshots but was not imported."""
    return [
        problem(
            table=TABLE,
            key=str(connection_id) if is_connection_id(connection_id) else f"connection {place}",
            code="unknown_connection",
            detail=f"{count} snapshots of a connection that is not imported; skipped.",
        )
        for place, (connection_id, count) in enumerate(counts.items(), start=1)
        if connection_id not in known
    ]


def _from_the_future(*, connection_id: str, count: int) -> list[ImportProblem]:
    if not count:
        return []
    detail = f"{count} snapshots lie more than 60 s in the future; skipped."
    return [problem(table=TABLE, key=connection_id, code="from_the_future", detail=detail)]
