"""`manage.py import_omniroute`: what it prints, and that it writes nothing where it must not."""

import sqlite3
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from ladder.models import Connection
from omniroute_admin.common.selectors.revision import current_revision
from tests.ladder.adapters.omniroute_file import OmnirouteFile
from tests.shared import ROOT, needs_shared, shared_path

BAD_ID = "The id is not of letters, digits and ._:@+- (at most 128, a letter or digit first); skipped."


def run(path: Path, **options: object) -> list[str]:
    out = StringIO()
    call_command("import_omniroute", str(path), stdout=out, **options)
    return out.getvalue().splitlines()


@pytest.fixture
def file(tmp_path: Path) -> OmnirouteFile:
    """One connection with one window and one cooldown, and one row that cannot be taken over."""
    file = OmnirouteFile(tmp_path / "storage.sqlite")
    file.add_connection("c1", test_status="banned", api_key="S3CR3T", name="S3CR3T")
    file.add_connection("bad id")
    # The command reads the real clock, and a row from the future is not taken over.
    file.add_snapshot("session (5h)", 57.5, created_at=(datetime.now(UTC) - timedelta(minutes=1)).isoformat())
    return file


@pytest.mark.django_db
def test_the_report_tells_what_was_read_what_became_of_it_and_every_problem(file):
    assert run(file.path) == [
        "Read 2 connections, 1 quota snapshots of 1 windows and 0 cache entries.",
        "  connections: 1 created, 0 changed, 0 unchanged, 1 skipped",
        "  windows:     1 created, 0 changed, 0 unchanged, 0 skipped",
        "  readings:    1 created, 0 changed, 0 unchanged, 0 skipped",
        "  cooldowns:   1 created, 0 changed, 0 unchanged, 0 skipped",
        "Problems: 1",
        f"  provider_connections row 1: bad_id: {BAD_ID}",
    ]


@pytest.mark.django_db
def test_a_second_run_says_that_nothing_changed(file):
    run(file.path)
    before = current_revision()
    assert "  connections: 0 created, 0 changed, 1 unchanged, 1 skipped" in run(file.path)
    assert current_revision() == before


@pytest.mark.django_db
def test_a_dry_run_says_so_and_writes_nothing(file):
    lines = run(file.path, dry_run=True)
    assert lines[1] == "Dry run: nothing was written. A real run would do this:"
    assert "  connections: 1 created, 0 changed, 0 unchanged, 1 skipped" in lines
    assert not Connection.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize("content", [None, b"", b"no database at all " * 50])
def test_a_file_that_is_no_omniroute_database_is_refused_and_nothing_is_written(tmp_path, content):
    path = tmp_path / "storage.sqlite"
    if content is not None:
        path.write_bytes(content)
    before = current_revision()
    with pytest.raises(CommandError, match=r"storage\.sqlite .*\. Nothing was written\."):
        run(path)
    assert current_revision() == before
    assert not Connection.objects.exists()


@pytest.mark.django_db
def test_a_version_with_a_column_missing_is_refused_by_its_name(file):
    with file.connect() as db:
        db.execute("ALTER TABLE quota_snapshots DROP COLUMN next_reset_at")
    with pytest.raises(CommandError, match=r"quota_snapshots\.next_reset_at"):
        run(file.path)
    assert not Connection.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_the_program_ends_with_exit_code_1_and_one_sentence_where_the_file_is_locked(file, database_url, tmp_path):
    holder = sqlite3.connect(file.path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    try:
        ended = _manage("import_omniroute", str(file.path), database_url=database_url, var_dir=tmp_path)
    finally:
        holder.close()
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert ended.stderr.splitlines()[-1] == (
        f"CommandError: {file.path} is locked by another program: try again, or stop that program first."
        " Nothing was written."
    )


def _manage(*arguments: str, database_url: str, var_dir: Path) -> subprocess.CompletedProcess[str]:
    environment = {"DATABASE_URL": database_url, "VAR_DIR": str(var_dir), "SECRET_KEY": "x" * 60, "DEBUG": "false"}
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@needs_shared
@pytest.mark.django_db
def test_the_real_file_is_imported_with_a_report_of_its_odd_rows():
    lines = run(shared_path("omniroute/storage.sqlite"))
    assert lines[0] == "Read 30 connections, 2067 quota snapshots of 26 windows and 12 cache entries."
    assert "  connections: 30 created, 0 changed, 0 unchanged, 0 skipped" in lines
    assert Connection.objects.count() == 30
    odd = "rate_limited_until is no date; no cooldown was taken from it."
    assert f"  provider_connections 11111111-0000-4000-8000-000000000004: bad_instant: {odd}" in lines
