"""What may stand where an OmniRoute database is expected, and that reading leaves no trace."""

import shutil
import sqlite3
from pathlib import Path

import pytest

from ladder.adapters.omniroute import read_omniroute
from ladder.errors import OmnirouteUnreadable
from tests.ladder.adapters.omniroute_file import NOW, SCHEMA, OmnirouteFile


def refusal(path: Path) -> OmnirouteUnreadable:
    with pytest.raises(OmnirouteUnreadable) as refused:
        read_omniroute(path=path, now=NOW, lock_timeout_seconds=0)
    assert refused.value.sentence.endswith(".")
    return refused.value


def contents_of(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_a_missing_file_is_refused(tmp_path):
    assert refusal(tmp_path / "nowhere.sqlite").code == "missing_file"


def test_a_folder_is_refused(tmp_path):
    assert refusal(tmp_path).code == "not_a_file"


def test_an_empty_file_is_refused(tmp_path):
    path = tmp_path / "empty.sqlite"
    path.touch()
    assert refusal(path).code == "empty_file"


@pytest.mark.parametrize("content", [b"x", b"SQLite format 3\x00", b"not a database " * 100])
def test_a_file_of_another_kind_is_refused(tmp_path, content):
    path = tmp_path / "letter.txt"
    path.write_bytes(content)
    assert refusal(path).code == "not_a_database"


def test_a_database_of_another_program_is_refused(tmp_path):
    file = OmnirouteFile(tmp_path / "other.sqlite", schema="CREATE TABLE notes (id INTEGER)")
    assert refusal(file.path).code == "not_omniroute"


def test_a_truncated_database_is_refused(omniroute):
    omniroute.add_connection()
    omniroute.path.write_bytes(omniroute.path.read_bytes()[:5000])
    assert refusal(omniroute.path).code == "damaged"


def test_a_missing_column_is_named_with_its_table(tmp_path):
    schema = SCHEMA.replace("rate_limited_until TEXT, ", "").replace("next_reset_at TEXT,", "")
    refused = refusal(OmnirouteFile(tmp_path / "old.sqlite", schema=schema).path)
    assert refused.code == "missing_column"
    assert "provider_connections.rate_limited_until" in refused.sentence
    assert "quota_snapshots.next_reset_at" in refused.sentence


def test_a_missing_table_is_named(tmp_path):
    schema = SCHEMA.replace("CREATE TABLE key_value", "CREATE TABLE key_values")
    refused = refusal(OmnirouteFile(tmp_path / "old.sqlite", schema=schema).path)
    assert refused.sentence.endswith("it lacks key_value.")


def test_a_view_in_the_place_of_a_table_is_refused(tmp_path):
    schema = SCHEMA.replace("CREATE TABLE provider_connections", "CREATE TABLE hidden")
    schema += "CREATE VIEW provider_connections AS SELECT api_key AS id, * FROM hidden;"
    assert refusal(OmnirouteFile(tmp_path / "view.sqlite", schema=schema).path).code == "not_omniroute"


def test_a_locked_database_is_refused_in_words(omniroute):
    holder = sqlite3.connect(omniroute.path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    try:
        refused = refusal(omniroute.path)
    finally:
        holder.close()
    assert refused.code == "locked"
    assert "locked by another program" in refused.sentence


def test_an_unfinished_write_beside_the_file_is_refused_in_words(omniroute, tmp_path):
    writer = sqlite3.connect(omniroute.path, isolation_level=None)
    writer.execute("PRAGMA cache_size = 1")
    writer.execute("BEGIN IMMEDIATE")
    writer.executemany("INSERT INTO key_value VALUES ('x', ?, ?)", [(str(number), "y" * 3000) for number in range(50)])
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("storage.sqlite", "storage.sqlite-journal"):
        shutil.copy(tmp_path / name, copy / name)
    writer.close()
    assert refusal(copy / "storage.sqlite").code == "needs_recovery"


def test_a_live_write_ahead_log_is_read_whole(tmp_path):
    file = OmnirouteFile(tmp_path / "storage.sqlite", journal_mode="WAL")
    live = sqlite3.connect(file.path)
    live.execute("PRAGMA wal_autocheckpoint = 0")
    live.execute("SELECT count(*) FROM key_value").fetchone()
    file.add_connection("only-in-the-log")
    assert (tmp_path / "storage.sqlite-wal").stat().st_size > 0
    found = [connection.connection_id for connection in file.read().connections]
    live.close()
    assert found == ["only-in-the-log"]


def test_a_live_database_can_be_written_to_while_it_is_read(tmp_path):
    file = OmnirouteFile(tmp_path / "storage.sqlite", journal_mode="WAL")
    file.add_connection("c1")
    live = sqlite3.connect(file.path)
    live.execute("SELECT count(*) FROM key_value").fetchone()

    def write_meanwhile(_done: int, _total: int) -> None:
        live.execute("UPDATE provider_connections SET provider = 'changed'")
        live.commit()

    contents = read_omniroute(path=file.path, now=NOW, progress=write_meanwhile, lock_timeout_seconds=0)
    live.close()
    assert contents.connections[0].provider == "claude"


@pytest.mark.parametrize("journal_mode", ["DELETE", "WAL"])
def test_reading_leaves_the_folder_as_it_was_even_where_it_is_read_only(tmp_path, journal_mode):
    file = OmnirouteFile(tmp_path / "storage.sqlite", journal_mode=journal_mode)
    file.add_connection()
    before = contents_of(tmp_path)
    file.path.chmod(0o444)
    tmp_path.chmod(0o555)
    try:
        assert len(file.read().connections) == 1
    finally:
        tmp_path.chmod(0o755)
    assert contents_of(tmp_path) == before
    assert list(before) == ["storage.sqlite"]


def test_a_log_without_its_index_is_refused_instead_of_writing_one(tmp_path):
    file = OmnirouteFile(tmp_path / "storage.sqlite", journal_mode="WAL")
    live = sqlite3.connect(file.path)
    live.execute("SELECT count(*) FROM key_value").fetchone()
    file.add_connection()
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("storage.sqlite", "storage.sqlite-wal"):
        shutil.copy(tmp_path / name, copy / name)
    live.close()
    before = contents_of(copy)
    assert refusal(copy / "storage.sqlite").code == "log_without_index"
    assert contents_of(copy) == before


def test_a_database_that_omniroute_opens_meanwhile_is_refused(tmp_path):
    file = OmnirouteFile(tmp_path / "storage.sqlite", journal_mode="WAL")
    file.add_connection()
    opened: list[sqlite3.Connection] = []

    def open_it(_done: int, _total: int) -> None:
        opened.append(sqlite3.connect(file.path))
        opened[-1].execute("UPDATE provider_connections SET provider = 'changed'")
        opened[-1].commit()

    with pytest.raises(OmnirouteUnreadable) as refused:
        read_omniroute(path=file.path, now=NOW, progress=open_it)
    for live in opened:
        live.close()
    assert refused.value.code == "changed_while_read"


def test_a_name_with_signs_of_a_uri_is_read(tmp_path):
    folder = tmp_path / "a?b#c%20d mode=rw&x"
    folder.mkdir()
    file = OmnirouteFile(folder / "storage.sqlite")
    file.add_connection()
    assert len(file.read().connections) == 1


def test_a_link_to_a_live_database_finds_the_log(tmp_path):
    real = tmp_path / "real"
    real.mkdir()
    file = OmnirouteFile(real / "storage.sqlite", journal_mode="WAL")
    live = sqlite3.connect(file.path)
    live.execute("SELECT count(*) FROM key_value").fetchone()
    file.add_connection("only-in-the-log")
    link = tmp_path / "link.sqlite"
    link.symlink_to(file.path)
    contents = read_omniroute(path=link, now=NOW)
    live.close()
    assert len(contents.connections) == 1


def test_progress_ends_at_the_number_of_rows(omniroute):
    omniroute.add_connection("c1")
    omniroute.add_connection("c2")
    for _ in range(3):
        omniroute.add_snapshot()
    told: list[tuple[int, int]] = []
    read_omniroute(path=omniroute.path, now=NOW, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (5, 5)
    assert told == sorted(told)
