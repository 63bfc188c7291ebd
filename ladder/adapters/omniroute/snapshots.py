"""The newest quota_snapshots row of every window, picked inside SQLite.

A real install has some 650,000 rows; one row per window comes out. The rows are read connection
by connection, which the table's index on (connection_id, created_at) serves, and which gives a
progress that means something.
"""

import sqlite3
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

TABLE = "quota_snapshots"
# A row from further ahead than this is a wrong clock. It is left out before the newest one is
# picked, or it would hide all the good ones (the readings API refuses the same, SPEC 4).
CLOCK_TOLERANCE = timedelta(seconds=60)

_SELECT_COUNTS = "SELECT connection_id, count(*) FROM quota_snapshots GROUP BY connection_id ORDER BY connection_id"
# julianday() puts `2026-11-29T21:34:32.590Z` and `2026-11-29 21:34:32` in one order. What does not
# begin like a date gets NULL, which sorts last here: julianday() would take "now" and plain numbers.
_WHEN = "CASE WHEN created_at GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-*' THEN julianday(created_at) END"
_SELECT_NEWEST = f"""
    SELECT provider, window_key, remaining_percentage, is_exhausted, next_reset_at, created_at
      FROM (SELECT provider, window_key, remaining_percentage, is_exhausted, next_reset_at, created_at,
                   row_number() OVER (PARTITION BY window_key ORDER BY {_WHEN} DESC, id DESC) AS place
              FROM quota_snapshots
             WHERE connection_id = :connection_id
               AND ifnull({_WHEN} <= julianday(:latest), 1))
     WHERE place = 1
     ORDER BY window_key
"""  # noqa: S608
_COUNT_AHEAD = f"""
    SELECT count(*) FROM quota_snapshots
     WHERE connection_id = :connection_id AND {_WHEN} > julianday(:latest)
"""  # noqa: S608


class SnapshotRow(NamedTuple):
    """The newest row of one window as SQLite gives it: every field may hold anything."""

    provider: object
    window_key: object
    remaining_percentage: object
    is_exhausted: object
    next_reset_at: object
    created_at: object


def count_snapshots(db: sqlite3.Connection) -> Mapping[object, int]:
    """How many rows each connection id has, ids of deleted connections included."""
    return dict(db.execute(_SELECT_COUNTS).fetchall())


def select_newest(*, db: sqlite3.Connection, connection_id: str, now: datetime) -> tuple[list[SnapshotRow], int]:
    """The newest row of each window of one connection, and how many rows lie in the future."""
    given = {"connection_id": connection_id, "latest": (now + CLOCK_TOLERANCE).isoformat()}
    rows = [SnapshotRow(*row) for row in db.execute(_SELECT_NEWEST, given)]
    return rows, db.execute(_COUNT_AHEAD, given).fetchone()[0]
