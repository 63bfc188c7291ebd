"""The doctor says of each thing that is wrong what it is and how to mend it; each is made for real here."""

import hashlib
import io
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest
import time_machine
from django.contrib.auth.models import Group, User
from django.core.management import call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from kombu import Connection as Broker

from ladder.models import LadderSettings
from omniroute_admin import broker
from omniroute_admin.celery import app
from omniroute_admin.common.models import ApiKey, Heartbeat, Revision
from omniroute_admin.common.models_sign_in import SecondFactor
from omniroute_admin.common.sealing import seal
from omniroute_admin.common.services.second_factors import start_second_factor
from omniroute_admin.doctor.access import check_second_factors
from omniroute_admin.doctor.examine import examine
from omniroute_admin.doctor.report import Finding, Verdict
from omniroute_admin.doctor.work import LONG_QUEUE
from tests.factories import BillingEntryFactory, ConnectionFactory, ModelPriceFactory, QuotaWindowFactory
from tests.ladder.services.booking import correct, event, make_ladder, record
from tests.processes import free_port, manage

NOW = datetime(2026, 8, 22, 12, 0, tzinfo=UTC)
SECOND, DAY = timedelta(seconds=1), timedelta(days=1)
HINT = "Whether there are backups is not known here."


def found(name: str, now: datetime = NOW) -> Finding:
    return next(finding for finding in examine(now=now) if finding.check == name)


def make_key(**fields: Any) -> ApiKey:
    secret_hash = hashlib.sha256(fields["name"].encode()).hexdigest()
    return ApiKey.objects.create(prefix="orl_x", secret_hash=secret_hash, scopes=["pools:read"], **fields)


def healthy(settings: Any, tmp_path: Path) -> None:
    """Make the database and the folder what they are in an installation that runs well."""
    BillingEntryFactory(provider="claude", auth_type="oauth", billing="subscription", overage="hard-stop")
    ModelPriceFactory(provider="claude", model="opus", effective_from=NOW - DAY)
    QuotaWindowFactory(connection=ConnectionFactory(provider="claude", auth_type="oauth"), observed_at=NOW - SECOND)
    make_key(name="router", created_at=NOW - 90 * DAY, last_used_at=NOW - DAY, expires_at=None)
    User.objects.create_superuser("kai")
    Heartbeat.objects.create(name="beat", beat_at=NOW - SECOND)
    settings.VAR_DIR, settings.STATIC_ROOT = tmp_path, tmp_path / "static"
    settings.SECRET_FILES, settings.ALLOWED_HOSTS = [], ["localhost"]


@pytest.mark.django_db(transaction=True)
def test_an_installation_that_runs_well_has_no_error_and_no_warning(settings: Any, tmp_path: Path) -> None:
    healthy(settings, tmp_path)
    if connection.vendor == "sqlite":
        Path(connection.settings_dict["NAME"]).chmod(0o600)
    with time_machine.travel(datetime.now(UTC), tick=False):
        wrong = [one for one in examine(now=NOW) if one.verdict in {Verdict.WARNING, Verdict.ERROR}]
    assert wrong == []


@pytest.mark.django_db
def test_each_check_has_a_name_of_its_own_and_says_one_thing() -> None:
    findings = list(examine(now=NOW))
    assert len({finding.check for finding in findings}) == len(findings)
    assert all(finding.says.endswith(".") for finding in findings)
    assert all(finding.mend for finding in findings if finding.verdict in {Verdict.WARNING, Verdict.ERROR})


# --- settings and machine --------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("changes", "check", "verdict", "words"),
    [
        ({"DEBUG": True, "ALLOWED_HOSTS": ["ladder.example.com"]}, "debug", "error", "Set DEBUG=false"),
        ({"DEBUG": True, "ALLOWED_HOSTS": ["localhost"]}, "debug", "warning", "Set DEBUG=false"),
        ({"ALLOWED_HOSTS": ["*"]}, "hosts", "warning", "Set ALLOWED_HOSTS"),
        ({"SECURE_SSL": False, "ALLOWED_HOSTS": ["ladder.example.com"]}, "https", "error", "SECURE_SSL=true"),
        ({"SECURE_SSL": False, "ALLOWED_HOSTS": ["localhost"]}, "https", "not_applicable", ""),
    ],
)
def test_settings_that_are_open_to_others(
    settings: Any, changes: dict[str, Any], check: str, verdict: str, words: str
) -> None:
    for name, value in changes.items():
        setattr(settings, name, value)
    said = found(check)
    assert said.verdict == verdict
    assert words in said.mend


@pytest.fixture
def open_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder that everybody reaches, unlike those that the tests are given."""
    import tempfile

    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_a_secret_that_every_user_may_read(settings: Any, open_folder: Path) -> None:
    key = open_folder / "key"
    key.write_text("hidden")
    settings.SECRET_FILES = [str(key), "", str(open_folder / "none")]
    key.chmod(0o644)
    assert (found("secret_files").verdict, found("secret_files").mend) == ("warning", f"Run: chmod 600 {key}")
    key.chmod(0o600)
    assert found("secret_files").verdict == "ok"
    key.chmod(0o644)
    open_folder.chmod(0o700)
    assert found("secret_files").verdict == "ok", "its folder keeps others out"


def test_a_folder_that_cannot_be_written(settings: Any, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    settings.VAR_DIR = tmp_path / "file" / "var"
    assert found("var_dir").verdict == "error"
    assert "set VAR_DIR to another" in found("var_dir").mend


@pytest.mark.parametrize(("room", "verdict"), [("LITTLE_ROOM", "warning"), ("NO_ROOM", "error")])
def test_a_disk_with_little_room(monkeypatch: pytest.MonkeyPatch, room: str, verdict: str) -> None:
    """A disk cannot be filled here: it is the line that is moved past what is free."""
    from omniroute_admin.doctor import machine

    monkeypatch.setattr(machine, "LITTLE_ROOM", 1 << 60)
    monkeypatch.setattr(machine, room, 1 << 60)
    assert found("room").verdict == verdict


def test_static_files_that_are_not_collected_or_not_all(settings: Any, tmp_path: Path) -> None:
    storage = {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"}
    settings.STORAGES = {**settings.STORAGES, "staticfiles": storage}
    settings.STATIC_ROOT = tmp_path / "static"
    assert "No static files are collected" in found("static_files").says
    call_command("collectstatic", interactive=False, verbosity=0)
    assert found("static_files").verdict == "ok"
    manifest = tmp_path / "static" / "staticfiles.json"
    told = json.loads(manifest.read_text())
    del told["paths"][next(iter(told["paths"]))]
    manifest.write_text(json.dumps(told))
    assert (found("static_files").verdict, found("static_files").says[:2]) == ("error", "1 ")
    assert "collectstatic" in found("static_files").mend


# --- database --------------------------------------------------------------------------------------------------------
def test_without_a_database_it_says_so_and_checks_the_rest(tmp_path: Path) -> None:
    url = f"postgres://u:hidden@127.0.0.1:{free_port()}/none"
    done = manage("doctor", "--json", DATABASE_URL=url, VAR_DIR=str(tmp_path))
    assert done.returncode == 2, done.stderr
    told = {one["check"]: one for one in json.loads(done.stdout)["checks"]}
    assert "The database does not answer" in told["database"]["says"]
    assert told["readings"]["verdict"] == "not_applicable"
    assert told["broker"]["verdict"] == "ok"
    assert "hidden" not in done.stdout + done.stderr


def test_a_database_that_was_never_migrated(tmp_path: Path) -> None:
    done = manage("doctor", "--json", DATABASE_URL="", VAR_DIR=str(tmp_path))
    told = {one["check"]: one for one in json.loads(done.stdout)["checks"]}
    assert (told["migrations"]["verdict"], told["migrations"]["mend"]) == ("error", "Run: python manage.py migrate")
    assert told["facts"]["verdict"] == "not_applicable"


@pytest.mark.django_db
def test_a_database_of_a_newer_version() -> None:
    MigrationRecorder(connection).record_applied("ladder", "9999_next")
    assert "newer version: it has ladder.9999_next" in found("migrations").says
    assert found("facts").verdict == "error", "the rest is asked all the same"


@pytest.mark.django_db
def test_a_revision_that_is_gone() -> None:
    Revision.objects.all().delete()
    assert (found("revision").verdict, found("revision").mend) == ("error", "Run: python manage.py migrate")


def test_a_damaged_sqlite_file(tmp_path: Path) -> None:
    file = tmp_path / "omniroute_admin.sqlite3"
    assert manage("migrate", "--verbosity", "0", DATABASE_URL="", VAR_DIR=str(tmp_path)).returncode == 0
    with sqlite3.connect(file) as opened:
        opened.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (page,) = opened.execute("SELECT rootpage FROM sqlite_master WHERE name = 'ladder_rungsample'").fetchone()
        (size,) = opened.execute("PRAGMA page_size").fetchone()
    opened.close()
    with file.open("r+b") as raw:
        raw.seek((page - 1) * size)
        raw.write(os.urandom(size))
    done = manage("doctor", "--json", DATABASE_URL="", VAR_DIR=str(tmp_path))
    told = {one["check"]: one for one in json.loads(done.stdout)["checks"]}
    assert told["sqlite_file"]["verdict"] == "error", done.stdout
    assert "restore" in told["sqlite_file"]["mend"]


# In a process of its own: a file that another connection has open keeps its journal.
IN_EACH_MODE = """
from django.db import connection
from omniroute_admin.common import clock
from omniroute_admin.doctor.database import check_sqlite
for mode in ("DELETE", "WAL"):
    with connection.cursor() as cursor:
        cursor.execute(f"PRAGMA journal_mode = {mode}")
    told = check_sqlite(clock.now())
    print(told.verdict, told.says)
"""


@pytest.mark.sqlite
def test_a_sqlite_file_without_its_log(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'x.sqlite3'}"
    done = manage("shell", "--verbosity", "0", "--command", IN_EACH_MODE, DATABASE_URL=url)
    without, with_log = done.stdout.splitlines()
    assert "keeps its journal as 'delete'" in without
    assert with_log.startswith("ok"), done.stdout


@pytest.mark.sqlite
def test_a_sqlite_file_that_every_user_may_read(settings: Any, open_folder: Path) -> None:
    file = open_folder / "x.sqlite3"
    done = manage("migrate", "--verbosity", "0", DATABASE_URL=f"sqlite:///{file}")
    assert done.returncode == 0
    for mode, verdict in ((0o644, "warning"), (0o600, "ok")):
        file.chmod(mode)
        told = json.loads(manage("doctor", "--json", DATABASE_URL=f"sqlite:///{file}").stdout)["checks"]
        assert next(one for one in told if one["check"] == "sqlite_mode")["verdict"] == verdict


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_a_postgresql_whose_connections_run_out(database_url: str) -> None:
    assert found("connections_of_postgresql").verdict == "ok"
    with ExitStack() as held:
        verdict = Verdict.OK
        seen = []
        while verdict is not Verdict.ERROR:
            held.enter_context(psycopg.connect(database_url))
            verdict = found_connections()
            seen.append(verdict)
    assert sorted(set(seen)) == ["error", "ok", "warning"]


def found_connections() -> Verdict:
    from omniroute_admin.doctor.database import check_connections

    return check_connections(NOW).verdict


@pytest.mark.postgres
@pytest.mark.django_db
@pytest.mark.parametrize(("apart", "verdict"), [(0, "ok"), (30, "warning"), (120, "error")])
def test_a_clock_that_is_not_the_databases(apart: int, verdict: str) -> None:
    with time_machine.travel(datetime.now(UTC) + apart * SECOND):
        assert found("clock").verdict == verdict


# --- periodic work ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("scheme", ["redis", "amqp"])
def test_a_broker_that_does_not_answer(tmp_path: Path, scheme: str) -> None:
    done = manage(
        "doctor",
        "--json",
        CELERY_BROKER_URL=f"{scheme}://u:hidden@127.0.0.1:{free_port()}//",
        VAR_DIR=str(tmp_path),
        DATABASE_URL="",
    )
    told = {one["check"]: one for one in json.loads(done.stdout)["checks"]}
    assert "The broker does not answer" in told["broker"]["says"]
    assert "hidden" not in done.stdout + done.stderr


def test_messages_that_nobody_takes(settings: Any) -> None:
    broker.install()
    with app.connection_for_write() as opened:
        assert isinstance(opened, Broker)
        box = opened.SimpleQueue(settings.CELERY_TASK_DEFAULT_QUEUE)
        box.clear()
        try:
            for number in range(LONG_QUEUE + 1):
                box.put(number)
            assert f"{LONG_QUEUE + 1} messages wait" in found("broker").says
            assert found("broker").verdict == "warning"
        finally:
            box.clear()
            box.close()
    assert found("broker").verdict == "ok"


@pytest.mark.django_db
def test_a_heartbeat_that_never_came_or_stopped(settings: Any) -> None:
    assert "never seen" in found("periodic_work").says
    beat = Heartbeat.objects.create(name="beat", beat_at=NOW - 3 * settings.HEARTBEAT_SECONDS * SECOND)
    assert found("periodic_work").verdict == "ok"
    beat.beat_at -= SECOND
    beat.save()
    assert (found("periodic_work").verdict, found("periodic_work").mend[:10]) == ("error", "Start beat")


# --- what decisions stand on -----------------------------------------------------------------------------------------
@pytest.mark.django_db
def test_a_catalogue_without_facts_or_prices_and_one_that_is_old() -> None:
    assert (found("facts").verdict, found("prices").verdict) == ("error", "error")
    BillingEntryFactory()
    ModelPriceFactory(effective_from=NOW - 181 * DAY)
    assert (found("facts").verdict, found("prices").verdict) == ("ok", "warning")


@pytest.mark.django_db
def test_no_connection_no_reading_and_only_old_ones() -> None:
    assert (found("connections").verdict, found("readings").verdict) == ("warning", "not_applicable")
    row = ConnectionFactory()
    assert (found("connections").verdict, found("readings").verdict) == ("ok", "warning")
    window = QuotaWindowFactory(connection=row, observed_at=NOW - 180 * SECOND)
    assert found("readings").verdict == "ok"
    window.observed_at -= SECOND
    window.save()
    assert "auto/subscription is empty" in found("readings").says
    assert found("readings").verdict == "error"


@pytest.mark.django_db
def test_a_provider_that_nobody_curated() -> None:
    ConnectionFactory(provider="newcomer", auth_type="apikey")
    assert "newcomer (apikey)" in found("curated").says
    BillingEntryFactory(provider="newcomer", auth_type=None, billing="metered", overage="meters-to-paid")
    assert found("curated").verdict == "ok"


@pytest.mark.django_db
def test_reentry_below_the_cutoff() -> None:
    assert found("band").verdict == "ok"
    LadderSettings.objects.update(exit_cutoff_percent=Decimal("7.5"))
    assert "Re-entry at 5 % stands below the cutoff of 7.5 %" in found("band").says
    assert found("band").verdict == "warning"


@pytest.mark.django_db
def test_a_ledger_that_does_not_add_up() -> None:
    make_ladder()
    record(event("e1", "1"))
    record(correct("e2", "e1", "2"))
    assert found("ledger").verdict == "ok"
    with connection.cursor() as cursor:
        cursor.execute("UPDATE ladder_usageevent SET booked_usd = 9000000 WHERE event_id = 'e2'")
    assert "check_ledger" in found("ledger").mend
    assert found("ledger").verdict == "error"


@pytest.mark.django_db
def test_no_administrator_and_what_makes_one() -> None:
    assert found("administrators").mend == "Run: python manage.py createsuperuser"
    user = User.objects.create_user("kai", is_active=False)
    user.groups.add(Group.objects.get(name="administrator"))
    assert found("administrators").verdict == "error"
    User.objects.update(is_active=True)
    assert found("administrators").verdict == "ok"


@pytest.mark.django_db
def test_second_factors_that_another_key_sealed(settings: Any, django_assert_num_queries: Any) -> None:
    assert found("second_factors").verdict == "not_applicable"
    for name in ("kai", "mira"):
        start_second_factor(user=User.objects.create_user(name), now=NOW)
    assert found("second_factors").verdict == "not_applicable", "nobody is asked for one that is only being set up"
    SecondFactor.objects.update(confirmed_at=NOW)
    assert found("second_factors").verdict == "ok"
    settings.TOTP_KEY = "another-key-of-more-than-thirty-two-characters"
    SecondFactor.objects.filter(user__username="kai").update(secret_box=seal("JBSWY3DPEHPK3PXP"))
    with django_assert_num_queries(1):
        said = check_second_factors(NOW)
    assert said.verdict == "error"
    assert said.says == "1 of 2 second factors cannot be read with this key (mira)."
    assert "python manage.py sign_in remove-second-factor NAME" in said.mend


@pytest.mark.django_db
def test_keys_that_are_missing_end_soon_or_lie_about() -> None:
    assert found("keys").verdict == "warning"
    key = make_key(name="router", created_at=NOW - 31 * DAY, expires_at=NOW + 15 * DAY, last_used_at=None)
    assert (found("keys").verdict, found("unused_keys").verdict) == ("ok", "warning")
    key.expires_at, key.last_used_at = NOW + 14 * DAY, NOW - DAY
    key.save()
    assert (found("keys").verdict, found("unused_keys").verdict) == ("warning", "ok")
    assert "router" in found("keys").says
    key.revoked_at = NOW
    key.save()
    assert "No key is valid" in found("keys").says


@pytest.mark.django_db
def test_keys_that_nobody_uses_and_that_none_is_no_use_of_late() -> None:
    make_key(name="gone", created_at=NOW - 90 * DAY, expires_at=None, last_used_at=None, revoked_at=NOW - DAY)
    assert found("unused_keys") == Finding(
        "unused_keys", Verdict.NOT_APPLICABLE, "There is no valid key to look at.", ""
    )
    make_key(name="new", created_at=NOW - 30 * DAY + SECOND, expires_at=None, last_used_at=None)
    make_key(name="busy", created_at=NOW - 90 * DAY, expires_at=None, last_used_at=NOW - 30 * DAY + SECOND)
    assert found("unused_keys").says == "Each of 2 keys was used, or made, within 30 days."
    make_key(name="never", created_at=NOW - 30 * DAY, expires_at=None, last_used_at=None)
    make_key(name="once", created_at=NOW - 90 * DAY, expires_at=None, last_used_at=NOW - 30 * DAY)
    said = found("unused_keys")
    assert said.verdict == "warning"
    assert said.says == "2 of 4 keys were not used for 30 days, 1 of them never: never (orl_x…), once (orl_x…)."


# --- settings that cannot be used ------------------------------------------------------------------------------------
def test_settings_that_cannot_be_used_are_told_as_every_check_is(tmp_path: Path) -> None:
    wrong = {"ALERT_WEBHOOK_SECRET": "hidden", "VAR_DIR": str(tmp_path)}
    as_json, as_text = manage("doctor", "--json", **wrong), manage("doctor", "--strict", **wrong)
    document = json.loads(as_json.stdout)
    (check,) = document["checks"]
    assert (document["verdict"], check["check"], check["verdict"]) == ("error", "settings", "error")
    assert check["says"].startswith("The settings cannot be used. ALERT_WEBHOOK_SECRET: ")
    assert check["says"].endswith(".")
    assert check["mend"]
    first, second, last = as_text.stdout.splitlines()
    assert first == f"ERROR    settings: {check['says']}"
    assert (second.strip(), last) == (check["mend"], "1 errors, 0 warnings, 0 ok.")
    assert (as_json.returncode, as_text.returncode, as_json.stderr + as_text.stderr) == (2, 2, "")
    assert "hidden" not in as_json.stdout + as_text.stdout


# --- the command -----------------------------------------------------------------------------------------------------
@pytest.mark.django_db(transaction=True)
def test_the_exit_code_and_the_lines(settings: Any, tmp_path: Path) -> None:
    healthy(settings, tmp_path)
    LadderSettings.objects.update(reentry_min_remaining_percent=Decimal(1))
    if connection.vendor == "sqlite":
        Path(connection.settings_dict["NAME"]).chmod(0o600)
    out = io.StringIO()
    with time_machine.travel(NOW, tick=False) if connection.vendor == "sqlite" else ExitStack():
        Heartbeat.objects.update(beat_at=datetime.now(UTC))
        if connection.vendor == "postgresql":
            now = datetime.now(UTC)
            QuotaWindowFactory(connection=ConnectionFactory(provider="claude", auth_type="oauth"), observed_at=now)
            ModelPriceFactory(provider="claude", model="sonnet", effective_from=now)
        call_command("doctor", stdout=out)
        with pytest.raises(SystemExit) as strict:
            call_command("doctor", "--strict", stdout=out)
        Revision.objects.all().delete()
        with pytest.raises(SystemExit) as broken:
            call_command("doctor", stdout=out)
    assert (strict.value.code, broken.value.code) == (1, 2)
    assert "WARNING  band: Re-entry at 1 %" in out.getvalue()
    assert "ERROR    revision: The row of the revision is gone" in out.getvalue()
    assert f"-        backups: {HINT}" in out.getvalue()
