"""The columns the import may read, and the proof that a file has them.

Every statement names its columns, and SQLite itself refuses any other (see `allow_only_these`):
a slip in a statement, or a view put in a table's place, cannot bring a secret up. Left out on
purpose although harmless looking: `name`, `display_name`, `email` and every free error text, since
they carry mail addresses and pieces of keys.
"""

import sqlite3

from ladder.errors import OmnirouteUnreadable

COLUMNS: dict[str, frozenset[str]] = {
    "provider_connections": frozenset(
        {
            "id",
            "provider",
            "auth_type",
            "is_active",
            "test_status",
            "error_code",
            "last_error_type",
            "last_error_at",
            "rate_limited_until",
            "updated_at",
            # Only inside json_extract() and json_each() of single keys: the text itself, which
            # holds tokens in clear, is never a result column.
            "provider_specific_data",
        }
    ),
    "quota_snapshots": frozenset(
        {
            "id",
            "provider",
            "connection_id",
            "window_key",
            "remaining_percentage",
            "is_exhausted",
            "next_reset_at",
            "created_at",
        }
    ),
    # `value` likewise: only inside json_*() of single keys, in one namespace.
    "key_value": frozenset({"namespace", "key", "value"}),
}
_JSON_EACH = frozenset({"key", "value", "type"})
_HARMLESS_ACTIONS = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_TRANSACTION})


def check_schema(db: sqlite3.Connection) -> None:
    """Raise `OmnirouteUnreadable` naming every needed table and column that is not there."""
    missing = [gap for table in COLUMNS for gap in _gaps(db, table)]
    if "provider_connections" in missing:
        raise OmnirouteUnreadable(
            code="not_omniroute",
            sentence="This SQLite file is no OmniRoute database: it has no table provider_connections.",
        )
    if missing:
        raise OmnirouteUnreadable(
            code="missing_column",
            sentence=f"This OmniRoute database is of a version that cannot be read: it lacks {', '.join(missing)}.",
        )


def _gaps(db: sqlite3.Connection, table: str) -> list[str]:
    """The table's name if it is missing (a view does not count), else `table.column` of each gap."""
    if not db.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)).fetchone():
        return [table]
    present = {str(name).lower() for (name,) in db.execute("SELECT name FROM pragma_table_xinfo(?)", (table,))}
    return [f"{table}.{column}" for column in sorted(COLUMNS[table] - present)]


def allow_only_these(db: sqlite3.Connection) -> None:
    """Make SQLite refuse to compile any statement that reads a column outside the allow-list.

    SQLite sets json_each up at its first use, which asks for more than reading: that comes first.
    """
    db.execute("SELECT count(*) FROM json_each('[]')").fetchone()
    db.set_authorizer(_authorize)


def _authorize(action: int, first: str | None, second: str | None, _schema: str | None, _source: str | None) -> int:
    if action in _HARMLESS_ACTIONS:
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_READ and _is_allowed(table=first or "", column=second or ""):
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY


def _is_allowed(*, table: str, column: str) -> bool:
    """An empty column is how SQLite asks for `count(*)`."""
    if table in COLUMNS:
        return column == "" or column.lower() in COLUMNS[table]
    return table == "json_each" and column in _JSON_EACH
