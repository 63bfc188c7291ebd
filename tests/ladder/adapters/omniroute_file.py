"""Small OmniRoute databases for tests, in the program's own shape and encodings."""

import json
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

from ladder.adapters.omniroute import ImportedCooldown, ImportedReading, OmnirouteContents, read_omniroute

NOW = datetime(2026, 11, 29, 21, 35, tzinfo=UTC)
FETCHED = "2026-11-29T21:34:32.500Z"
# quota_snapshots takes anything into is_exhausted and the REAL column, as SQLite's affinities do.
SCHEMA = """
CREATE TABLE provider_connections (id TEXT PRIMARY KEY, provider TEXT NOT NULL, auth_type TEXT, name TEXT, email TEXT,
  is_active INTEGER DEFAULT 1, access_token TEXT, refresh_token TEXT, test_status TEXT, error_code TEXT,
  last_error TEXT, last_error_at TEXT, last_error_type TEXT, rate_limited_until TEXT, api_key TEXT, id_token TEXT,
  provider_specific_data TEXT, display_name TEXT, updated_at TEXT NOT NULL);
CREATE TABLE quota_snapshots (id INTEGER PRIMARY KEY AUTOINCREMENT, provider TEXT NOT NULL, connection_id TEXT NOT NULL,
  window_key TEXT NOT NULL, remaining_percentage REAL, is_exhausted INTEGER DEFAULT 0, next_reset_at TEXT,
  window_duration_ms INTEGER, raw_data TEXT, created_at TEXT NOT NULL DEFAULT (datetime('now')));
CREATE INDEX idx_quota_snapshots_connection_time ON quota_snapshots(connection_id, created_at);
CREATE TABLE key_value (namespace TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (namespace, key));
"""


class OmnirouteFile:
    """One database file; rows are added with what a test cares for, the rest as usual."""

    def __init__(self, path: Path, *, journal_mode: str = "DELETE", schema: str = SCHEMA) -> None:
        self.path = path
        with self.connect() as db:
            db.execute(f"PRAGMA journal_mode = {journal_mode}")
            db.executescript(schema)

    def connect(self) -> sqlite3.Connection:
        return _ClosingConnection.open(self.path)

    def add_connection(self, connection_id: object = "c1", **columns: object) -> None:
        self._insert(
            "provider_connections",
            {"provider": "claude", "auth_type": "oauth", "updated_at": FETCHED, "id": connection_id, **columns},
        )

    def add_snapshot(self, window: object = "session (5h)", remaining: object = 50.0, **columns: object) -> None:
        row = {"provider": "claude", "connection_id": "c1", "created_at": FETCHED, **columns}
        self._insert("quota_snapshots", {"window_key": window, "remaining_percentage": remaining, **row})

    def add_cache(
        self, key: str = "c1", *, fetched_at: object = FETCHED, raw: str | None = None, **quotas: object
    ) -> None:
        value = json.dumps({"quotas": quotas, "fetchedAt": fetched_at}) if raw is None else raw
        self._insert("key_value", {"namespace": "providerLimitsCache", "key": key, "value": value})

    def _insert(self, table: str, row: dict[str, object]) -> None:
        with self.connect() as db:
            db.execute(
                f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", tuple(row.values())
            )

    def read(self) -> OmnirouteContents:
        return read_omniroute(path=self.path, now=NOW, lock_timeout_seconds=0)

    def the_reading(self) -> ImportedReading:
        (reading,) = self.read().readings
        return reading

    def the_cooldown(self) -> ImportedCooldown:
        (cooldown,) = self.read().cooldowns
        return cooldown

    def problem_codes(self) -> list[str]:
        return [problem.code for problem in self.read().problems]


class _ClosingConnection(sqlite3.Connection):
    """Commits and closes at the end of its block, so that no test leaves a file open."""

    @classmethod
    def open(cls, path: Path) -> "_ClosingConnection":
        return sqlite3.connect(path, factory=cls)

    def __exit__(self, *exception: object) -> bool:
        result = super().__exit__(*exception)  # type: ignore[arg-type]
        self.close()
        return bool(result)
