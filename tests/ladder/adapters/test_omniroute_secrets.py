"""No secret leaves an OmniRoute database: none is selected, and none is returned."""

import json
import shutil
import sqlite3
from pathlib import Path

import msgspec
import pytest

from ladder.adapters.omniroute import cache, codex, connections, read_omniroute, snapshots
from ladder.adapters.omniroute.columns import COLUMNS
from ladder.adapters.omniroute.database import open_readonly
from ladder.errors import OmnirouteUnreadable
from tests.ladder.adapters.omniroute_file import FETCHED, NOW, OmnirouteFile
from tests.shared import needs_shared, shared_path

SECRET = "S3CR3T"
SECRET_COLUMNS = ("api_key", "access_token", "refresh_token", "id_token", "email", "name", "display_name", "last_error")


def plant(file: OmnirouteFile) -> None:
    """Secrets everywhere but in the id and the provider, in good rows and in odd ones."""
    secrets = {column: f"{SECRET}-{column}" for column in SECRET_COLUMNS}
    data = {
        "copilotToken": SECRET,
        "clientSecret": SECRET,
        "codexScopeRateLimitedUntil": {SECRET: "2026-11-30T00:00:00Z", "codex": SECRET, "spark": {"token": SECRET}},
        "codexExhaustedWindow": SECRET,
        "codexQuotaState": {"usage5h": SECRET, "limit5h": SECRET, "updatedAt": SECRET, "scope": SECRET},
    }
    odd = {
        "auth_type": f"{SECRET}-0",
        "test_status": SECRET,
        "error_code": SECRET,
        "last_error_type": SECRET,
        "last_error_at": SECRET,
        "rate_limited_until": SECRET,
        "updated_at": SECRET,
        "provider_specific_data": json.dumps(data),
    }
    file.add_connection("c1", provider="codex", **secrets)
    file.add_connection("c2", provider="codex", **secrets, **odd)
    file.add_connection(f"{SECRET} as an id", **secrets)
    file.add_connection("c4", provider=f"{SECRET} as a provider", **secrets)
    columns = {"provider": "codex", "raw_data": SECRET, "next_reset_at": SECRET}
    file.add_snapshot("session", SECRET, connection_id="c1", **columns)
    file.add_snapshot("weekly", connection_id="c1", **(columns | {"created_at": SECRET}))
    file.add_snapshot(f"{SECRET}\x07", connection_id="c1", **columns)
    file.add_snapshot("session", connection_id=f"{SECRET} of no one", **columns)
    file.add_cache(
        "c1", raw=json.dumps({"message": SECRET, "fetchedAt": SECRET, "quotas": {"session": {"total": SECRET}}})
    )
    file.add_cache("c2", raw=json.dumps({"message": SECRET, "fetchedAt": FETCHED, "quotas": {SECRET: {"a": SECRET}}}))
    file.add_cache(f"{SECRET} of no one", raw=f"{{{SECRET}")
    with file.connect() as db:
        db.executemany("INSERT INTO key_value VALUES (?, 'c1', ?)", [("settings", SECRET), ("secrets", SECRET)])


def test_no_planted_secret_is_in_any_value_or_problem(omniroute):
    plant(omniroute)
    contents = omniroute.read()
    assert len(contents.connections) == 2
    assert len(contents.problems) > 10
    assert SECRET.lower() not in msgspec.json.encode(contents).decode().lower()


@needs_shared
def test_no_secret_planted_into_a_copy_of_the_real_file_comes_out(tmp_path):
    copy = tmp_path / "storage.sqlite"
    shutil.copy(shared_path("omniroute/storage.sqlite"), copy)
    copy.chmod(0o600)
    with OmnirouteFile(copy, schema="").connect() as db:
        db.execute("UPDATE provider_connections SET " + ", ".join(f"{c} = '{SECRET}' || '{c}'" for c in SECRET_COLUMNS))
        db.execute(
            "UPDATE provider_connections "
            "SET provider_specific_data = json_set(provider_specific_data, '$.copilotToken', ?) "
            "WHERE json_valid(provider_specific_data)",
            (SECRET,),
        )
        db.execute("UPDATE quota_snapshots SET raw_data = ?", (SECRET,))
        db.execute("UPDATE key_value SET value = ? WHERE namespace != 'providerLimitsCache'", (SECRET,))
    contents = read_omniroute(path=copy, now=NOW)
    assert len(contents.connections) == 30
    assert SECRET.lower() not in msgspec.json.encode(contents).decode().lower()


def test_sqlite_is_asked_for_allowed_columns_only(omniroute):
    plant(omniroute)
    read: set[tuple[str, str]] = set()

    def note(action: int, table: str, column: str, _schema: str, _source: str) -> int:
        if action == sqlite3.SQLITE_READ:
            read.add((table, column))
        return sqlite3.SQLITE_OK

    with omniroute.connect() as db:
        db.set_authorizer(note)
        found, _problems = connections.read_connections(connections.select_connections(db))
        codex.select_codex_states(db)
        cache.read_cache(db=db, known=found)
        snapshots.count_snapshots(db)
        snapshots.select_newest(db=db, connection_id="c1", now=NOW)
    of_tables = {(table, column) for table, column in read if table in COLUMNS and column}
    assert of_tables == {(table, column) for table, columns in COLUMNS.items() for column in columns}
    assert {table for table, _column in read} - set(COLUMNS) <= {"json_each", "sqlite_master"}


@pytest.mark.parametrize("column", SECRET_COLUMNS)
def test_sqlite_itself_refuses_a_secret_column(omniroute, column):
    plant(omniroute)
    with pytest.raises(OmnirouteUnreadable), open_readonly(path=omniroute.path, lock_timeout_seconds=0) as db:
        db.execute(f"SELECT id FROM provider_connections WHERE {column} = 'x'")


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM provider_connections",
        "SELECT raw_data FROM quota_snapshots",
        "SELECT sql FROM sqlite_master",
        "UPDATE provider_connections SET provider = 'x'",
        "DELETE FROM key_value",
        "CREATE TABLE x (y)",
        "ATTACH 'other.sqlite' AS other",
        "PRAGMA query_only = OFF",
    ],
)
def test_sqlite_itself_refuses_everything_but_reading_allowed_columns(omniroute, statement):
    with pytest.raises(OmnirouteUnreadable), open_readonly(path=omniroute.path, lock_timeout_seconds=0) as db:
        db.execute(statement)


def test_the_allow_list_holds_no_secret_column():
    allowed = COLUMNS["provider_connections"]
    assert allowed.isdisjoint(SECRET_COLUMNS)


@pytest.mark.parametrize("module", ["cache", "codex", "connections", "snapshots"])
def test_no_statement_selects_everything(module):
    source = Path(__import__(f"ladder.adapters.omniroute.{module}", fromlist=["x"]).__file__).read_text()
    assert "SELECT *" not in source
