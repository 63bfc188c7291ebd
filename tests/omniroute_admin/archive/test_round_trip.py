"""What was backed up comes back, row by row, on the same database and over the other one, and answers as before."""

import io
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import pytest
from django.contrib.auth import authenticate
from django.core.management import CommandError, call_command
from django.db import connection

from ladder.models import Connection, QuotaReading, UsageEvent
from ladder.services.connections import update_connection
from omniroute_admin.archive.read import open_archive
from omniroute_admin.archive.restore import REVISION_STEP
from omniroute_admin.archive.write import write_archive
from omniroute_admin.common.clock import now
from omniroute_admin.common.models import ApiKey, Heartbeat
from omniroute_admin.common.selectors.revision import current_revision
from tests.factories_ladder import OPERATOR
from tests.omniroute_admin.archive.filling import answers, fill, passing_rows, rows_of, standing_on
from tests.processes import environment, manage
from tests.shared import ROOT

pytestmark = pytest.mark.django_db(transaction=True)
OTHER = {"sqlite": "postgres", "postgres": "sqlite"}


def backup(file: Path) -> Path:
    call_command("backup", str(file), "--overwrite", stderr=io.StringIO())
    return file


def alter(statement: str) -> None:
    """Do to the rows what no service would."""
    with connection.cursor() as cursor:
        cursor.execute(statement)


def restore(file: Path, *options: str) -> str:
    out = io.StringIO()
    call_command("restore", str(file), *options, stdout=out)
    return out.getvalue()


def test_everything_comes_back_over_the_other_kind_of_database(
    database: str, tmp_path: Path, fresh: Callable[[str], str]
) -> None:
    router = fill()
    at = now()
    rows, told, revision = rows_of(), answers(router, at), current_revision()
    assert sum(map(len, rows.values())) > 12_000
    first = backup(tmp_path / "first.zip")

    other = fresh(OTHER[database])
    done = manage("restore", str(first), DATABASE_URL=other)
    assert done.returncode == 0, done.stderr
    with standing_on(other):
        assert rows_of() == rows
    second = tmp_path / "second.zip"
    assert manage("backup", str(second), DATABASE_URL=other).returncode == 0

    alter("DELETE FROM ladder_spendhold")
    alter("DELETE FROM ladder_usageevent WHERE event_id LIKE 'many-%'")
    QuotaReading.objects.all().delete()
    row = Connection.objects.filter(deleted_at=None).first()
    update_connection(connection=row, changes={"label": "changed"}, actor=OPERATOR, reason="", now=now())
    ApiKey.objects.all().delete()
    said = restore(second, "--replace", "--yes")
    assert "all add up" in said
    assert rows_of() == rows
    assert answers(router, at) == told
    assert current_revision() > max(revision, REVISION_STEP)
    assert authenticate(username="kai", password="correct-horse-battery") is not None


def test_new_rows_get_ids_past_all_that_were_restored(tmp_path: Path) -> None:
    router = fill()
    file, last = backup(tmp_path / "a.zip"), UsageEvent.objects.order_by("-pk")[0]
    restore(file, "--replace", "--yes")
    event = {"event_id": "new", "connection_id": "demo-openrouter-1", "model": "m", "cost_usd": "1"}
    body = {"events": [{**event, "occurred_at": (now() - timedelta(seconds=1)).isoformat()}]}
    assert router.post("/api/v1/telemetry/usage", body).json()["accepted"] == 1
    assert UsageEvent.objects.get(event_id="new").pk > last.pk


def test_whoever_is_signed_in_signs_in_again_and_signs_of_life_stay_as_they_are(tmp_path: Path) -> None:
    fill()
    file, at = backup(tmp_path / "a.zip"), datetime(2026, 1, 1, tzinfo=UTC)
    Heartbeat.objects.update(beat_at=at)
    assert all(passing_rows())
    restore(file, "--replace", "--yes")
    assert passing_rows() == [0, 0, 0]
    assert Heartbeat.objects.get().beat_at == at


def test_a_process_that_remembers_prepares_anew_after_a_restore(tmp_path: Path) -> None:
    router = fill()
    file, at = backup(tmp_path / "a.zip"), now()
    told = answers(router, at)
    for row in Connection.objects.filter(deleted_at=None):
        update_connection(connection=row, changes={"is_enabled": False}, actor=OPERATOR, reason="", now=now())
    assert answers(router, at) != told
    restore(file, "--replace", "--yes")
    assert answers(router, at) == told


def test_a_backup_is_one_instant_however_much_is_written_meanwhile(tmp_path: Path) -> None:
    """Two tables are written in one transaction each time; a view of two instants would hold one without the other."""
    fill()
    stop, written = threading.Event(), threading.Event()
    account = Connection.objects.get(connection_id="demo-openrouter-1")

    def write() -> None:
        try:
            for number in count():
                if stop.is_set():
                    return
                row = Connection.objects.get(pk=account.pk)
                update_connection(connection=row, changes={"label": f"l{number}"}, actor=OPERATOR, reason="", now=now())
                written.set()
        finally:
            connection.close()

    writer = threading.Thread(target=write)
    writer.start()
    assert written.wait(60)
    seen = io.BytesIO()

    def wait_for_one_more(done: int, total: int) -> None:
        # Between any two tables at least one more write is committed.
        written.clear()
        assert written.wait(60)

    try:
        manifest = write_archive(to=seen, made_at=now(), progress=wait_for_one_more)
    finally:
        stop.set()
        writer.join()
    with open_archive(file=seen) as archive:
        (label,) = [row[4] for row in archive.rows(Connection) if row[1] == "demo-openrouter-1"]
        history = [row for row in archive.rows(Connection.history.model) if row[2] == "demo-openrouter-1"]
        newest = max(history, key=lambda row: row[14])
    assert label in newest
    account.refresh_from_db()
    assert account.label != label
    assert manifest.revision < current_revision()


def test_the_standard_output_and_input_take_it_too(tmp_path: Path, database_url: str) -> None:
    fill()
    rows = rows_of()

    def run(*words: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, str(ROOT / "manage.py"), *words]
        changed = environment(DATABASE_URL=database_url)
        return subprocess.run(command, env=changed, input=given, capture_output=True, check=False)

    made = run("backup", "-")
    assert made.returncode == 0, made.stderr
    alter("UPDATE ladder_connection SET label = 'changed since'")
    back = run("restore", "-", "--replace", "--yes", given=made.stdout)
    assert back.returncode == 0, back.stderr
    assert rows_of() == rows


def test_the_file_is_its_owners_alone_and_never_takes_anothers_place_unasked(tmp_path: Path) -> None:
    file = tmp_path / "a.zip"
    before = os.umask(0)
    try:
        call_command("backup", str(file), stderr=io.StringIO())
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    kept = file.read_bytes()
    done = manage("backup", str(file))
    assert done.returncode == 1
    assert "is there already" in done.stderr
    assert file.read_bytes() == kept
    assert [one.name for one in tmp_path.iterdir()] == ["a.zip"]


def test_rows_of_the_ledger_that_contradict_each_other_come_back_and_are_named(tmp_path: Path) -> None:
    fill()
    alter("UPDATE ladder_usageevent SET booked_usd = 9000000 WHERE event_id = 'e3'")
    file = backup(tmp_path / "a.zip")
    with pytest.raises(CommandError, match="It is restored, but 1 rows of its ledger contradict") as told:
        restore(file, "--replace", "--yes")
    assert told.value.returncode == 4
    assert UsageEvent.objects.get(event_id="e3").booked_usd == 9
