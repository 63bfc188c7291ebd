"""Settings come from the environment, and a bad value is refused with its name and the remedy."""

import ast
import multiprocessing
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from omniroute_admin import settings as settings_module
from omniroute_admin.environment import Environment
from tests.processes import environment, manage
from tests.shared import ROOT

GOOD_KEY = "k" * 25 + "0123456789" * 3


@pytest.mark.parametrize(
    ("name", "value", "read"),
    [
        ("DEBUG", "maybe", lambda env: env.boolean("DEBUG", default=False)),
        ("HSTS_SECONDS", "-1", lambda env: env.integer("HSTS_SECONDS", 5, lowest=0, highest=10)),
        ("HSTS_SECONDS", "11", lambda env: env.integer("HSTS_SECONDS", 5, lowest=0, highest=10)),
        ("HSTS_SECONDS", "1.5", lambda env: env.integer("HSTS_SECONDS", 5, lowest=0, highest=10)),
        ("KEEP_LEDGER_DAYS", "61", lambda env: env.days("KEEP_LEDGER_DAYS", 800, lowest=62)),
        ("KEEP_LEDGER_DAYS", "-1", lambda env: env.days("KEEP_LEDGER_DAYS", 800, lowest=62)),
        ("KEEP_LEDGER_DAYS", "a year", lambda env: env.days("KEEP_LEDGER_DAYS", 800, lowest=62)),
        ("LOG_LEVEL", "LOUD", lambda env: env.choice("LOG_LEVEL", "INFO", ["INFO", "DEBUG"])),
        ("TIME_ZONE_DISPLAY", "Mars/Olympus", lambda env: env.zone("TIME_ZONE_DISPLAY")),
        ("TIME_ZONE_DISPLAY", "../../etc/passwd", lambda env: env.zone("TIME_ZONE_DISPLAY")),
        ("ALLOWED_HOSTS", "https://ladder.example.com", lambda env: env.hosts("ALLOWED_HOSTS")),
        ("ALLOWED_HOSTS", "a.example.com, ladder.example.com:8000", lambda env: env.hosts("ALLOWED_HOSTS")),
        ("CSRF_TRUSTED_ORIGINS", "ladder.example.com", lambda env: env.origins("CSRF_TRUSTED_ORIGINS")),
        ("DATABASE_URL", "mysql://u:hidden@h/n", lambda env: env.database("DATABASE_URL", "")),
        ("DATABASE_URL", "no address, hidden", lambda env: env.database("DATABASE_URL", "")),
        ("DATABASE_URL", "postgres://u:hidden@h:port/n", lambda env: env.database("DATABASE_URL", "")),
        ("DATABASE_URL", "sqlite:///", lambda env: env.database("DATABASE_URL", "")),
        ("DATABASE_URL", "sqlite://", lambda env: env.database("DATABASE_URL", "")),
        ("DATABASE_URL", "postgres://u:hidden@h", lambda env: env.database("DATABASE_URL", "")),
        ("CELERY_BROKER_URL", "sqs://hidden", lambda env: env.broker("CELERY_BROKER_URL")),
        ("CELERY_BROKER_URL", "hidden", lambda env: env.broker("CELERY_BROKER_URL")),
        ("SECRET_KEY", "hidden", lambda env: env.secret_key("SECRET_KEY", Path("/nowhere"))),
    ],
)
def test_a_bad_value_is_refused_with_its_name_and_without_a_secret(
    name: str, value: str, read: Callable[[Environment], Any]
) -> None:
    with pytest.raises(ImproperlyConfigured) as refusal:
        read(Environment({name: value}))
    assert str(refusal.value).startswith(f"{name}: ")
    assert "hidden" not in str(refusal.value)


@pytest.mark.parametrize(("value", "days"), [("0", 0), ("62", 62), ("", 800), ("99999", 99999)])
def test_a_period_is_for_ever_or_no_shorter_than_its_least(value: str, days: int) -> None:
    assert Environment({"KEEP_LEDGER_DAYS": value}).days("KEEP_LEDGER_DAYS", 800, lowest=62) == days


@pytest.mark.parametrize("word", ["true", "True", "1", "yes", " on "])
def test_the_usual_words_for_true_are_true(word: str) -> None:
    assert Environment({"DEBUG": word}).boolean("DEBUG", default=False) is True


@pytest.mark.parametrize("word", ["", "false", "0", "No", "off"])
def test_the_usual_words_for_false_and_nothing_are_the_safe_default(word: str) -> None:
    assert Environment({"DEBUG": word}).boolean("DEBUG", default=False) is False


@pytest.mark.parametrize(
    ("value", "hosts"),
    [("*", ["*"]), ("a.example, .b.example,[::1]", ["a.example", ".b.example", "[::1]"]), ("", [])],
)
def test_allowed_hosts_is_a_list_that_may_be_a_star(value: str, hosts: list[str]) -> None:
    assert Environment({"ALLOWED_HOSTS": value}).hosts("ALLOWED_HOSTS") == hosts


def test_postgresql_connections_last_and_are_checked() -> None:
    entry = Environment({"D": "postgres://u:p@%2Fvar%2Frun/db"}).database("D", "")
    assert (entry["CONN_MAX_AGE"], entry["CONN_HEALTH_CHECKS"], entry["HOST"]) == (None, True, "/var/run")


def test_sqlite_takes_its_lock_at_once_and_waits_for_it(tmp_path: Path) -> None:
    entry = Environment({}).database("D", f"sqlite:///{tmp_path / 'new' / 'file.sqlite3'}")
    assert (entry["OPTIONS"]["transaction_mode"], entry["OPTIONS"]["timeout"]) == ("IMMEDIATE", 20)
    assert (tmp_path / "new").is_dir()


def test_a_database_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ImproperlyConfigured, match=r"DATABASE_URL: the folder .*file/sub cannot be written"):
        Environment({}).database("DATABASE_URL", f"sqlite:///{tmp_path / 'file' / 'sub' / 'x.sqlite3'}")


def test_a_file_that_is_no_sqlite_database_is_named_and_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("milk, bread, and a long list of other things to buy")
    done = manage("migrate", DATABASE_URL=f"sqlite:///{file}")
    assert done.returncode == 1
    assert f"DATABASE_URL: {file} is no SQLite database" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert file.read_text().startswith("milk")


# Others may read what is made under this one; what runs meanwhile keeps its connection, and with it the log.
MIGRATED_IN_THE_OPEN = """
import os
os.umask(0o022)
from django.core.management import call_command
call_command("migrate", verbosity=0)
from django.db import connection
file = connection.settings_dict["NAME"]
print(*(f"{os.stat(file + end).st_mode & 0o777:o}" for end in ("", "-wal", "-shm")))
"""


@pytest.mark.parametrize("before", [None, 0o600, 0o640, 0o644])
def test_a_database_that_migrate_makes_is_its_owners_alone_and_one_that_was_there_keeps_its_mode(
    tmp_path: Path, before: int | None
) -> None:
    file = tmp_path / "x.sqlite3"
    if before is not None:
        file.touch()
        file.chmod(before)
    done = manage("shell", "--no-imports", "--command", MIGRATED_IN_THE_OPEN, DATABASE_URL=f"sqlite:///{file}")
    assert done.stdout.split() == [f"{before or 0o600:o}"] * 3, done.stderr


def test_an_empty_file_is_a_database_to_be(tmp_path: Path) -> None:
    (tmp_path / "new.sqlite3").touch()
    assert Environment({}).database("DATABASE_URL", f"sqlite:///{tmp_path / 'new.sqlite3'}")


@pytest.mark.parametrize(("kept", "said"), [("", "holds nothing"), ("short", "holds fewer than 50 characters")])
def test_a_kept_secret_key_that_is_no_key_names_its_file(tmp_path: Path, kept: str, said: str) -> None:
    (tmp_path / "secret_key").write_text(kept)
    (tmp_path / "secret_key").chmod(0o600)
    with pytest.raises(ImproperlyConfigured, match=rf"VAR_DIR: .*/secret_key {said}; remove that file"):
        Environment({}).secret_key("SECRET_KEY", tmp_path)


def test_a_secret_key_is_made_once_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    made = Environment({}).secret_key("SECRET_KEY", tmp_path)
    assert Environment({}).secret_key("SECRET_KEY", tmp_path) == made
    assert len(made) >= 50
    assert stat.S_IMODE((tmp_path / "secret_key").stat().st_mode) == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["secret_key"]


def _make_key(folder: str) -> str:
    return Environment({}).secret_key("SECRET_KEY", Path(folder))


def test_processes_that_start_at_once_share_one_secret_key(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        assert len(set(pool.map(_make_key, [str(tmp_path)] * 16, chunksize=1))) == 1


def test_a_secret_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret_key").write_text(GOOD_KEY)
    (tmp_path / "secret_key").chmod(0o644)
    with pytest.raises(ImproperlyConfigured, match="chmod 600"):
        Environment({}).secret_key("SECRET_KEY", tmp_path)


def test_a_given_secret_key_is_not_kept(tmp_path: Path) -> None:
    assert Environment({"SECRET_KEY": GOOD_KEY}).secret_key("SECRET_KEY", tmp_path) == GOOD_KEY
    assert list(tmp_path.iterdir()) == []


def test_a_secret_key_and_a_database_password_come_from_files(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(f"{GOOD_KEY}\n")
    assert Environment({"SECRET_KEY_FILE": str(tmp_path / "key")}).secret_key("SECRET_KEY", tmp_path) == GOOD_KEY
    entry = Environment({}).database("DATABASE_URL", "postgres://u@h/n", password="p/:@w")
    assert (entry["USER"], entry["PASSWORD"], entry["HOST"]) == ("u", "p/:@w", "h")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"SECRET_KEY_FILE": "{}/none"}, "SECRET_KEY_FILE: the file .*/none cannot be read"),
        ({"SECRET_KEY_FILE": "{}/empty"}, "SECRET_KEY_FILE: the file .*/empty is empty"),
        ({"SECRET_KEY_FILE": "{}/short"}, "SECRET_KEY: it has fewer than 50 characters"),
        ({"SECRET_KEY_FILE": "{}/short", "SECRET_KEY": GOOD_KEY}, "SECRET_KEY_FILE: SECRET_KEY is set too"),
    ],
)
def test_a_file_that_holds_no_secret_is_named(tmp_path: Path, values: dict[str, str], said: str) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "short").write_text("hidden")
    with pytest.raises(ImproperlyConfigured, match=said) as refusal:
        Environment({name: text.format(tmp_path) for name, text in values.items()}).secret_key("SECRET_KEY", tmp_path)
    assert "hidden" not in str(refusal.value)


@pytest.mark.parametrize("url", ["postgres://u:p@h/n", "sqlite:////tmp/none/x.sqlite3"])
def test_a_password_beside_an_address_that_needs_none_is_refused(url: str, tmp_path: Path) -> None:
    with pytest.raises(ImproperlyConfigured, match="DATABASE_PASSWORD_FILE: DATABASE_URL needs none"):
        Environment({}).database("DATABASE_URL", url.replace("/tmp/none", str(tmp_path)), password="hidden")


def test_a_bad_setting_ends_a_command_with_one_sentence() -> None:
    done = manage("check", DEBUG="maybe")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.strip() == (
        "The settings cannot be used. DEBUG: 'maybe' is neither true nor false; set true or false."
    )


def test_the_defaults_are_safe(tmp_path: Path) -> None:
    code = "from omniroute_admin import settings as s; print(s.DEBUG, s.ALLOWED_HOSTS, len(s.SECRET_KEY) >= 50)"
    done = manage(
        "shell", "--no-imports", "--command", code, DEBUG="", ALLOWED_HOSTS="", SECRET_KEY="", VAR_DIR=str(tmp_path)
    )
    assert done.stdout.strip() == "False ['localhost', '127.0.0.1', '[::1]'] True", done.stderr


def _names_in(text: str) -> set[str]:
    lines = (line.removeprefix("# ") for line in text.splitlines())
    return {line.partition("=")[0] for line in lines if "=" in line and line.partition("=")[0].isupper()}


def test_the_example_environment_names_every_variable_and_no_other() -> None:
    assert _names_in((ROOT / ".env.example").read_text()) == settings_module.env.asked


def test_a_shell_takes_the_example_environment_as_it_is_and_the_product_starts_with_it(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text((ROOT / ".env.example").read_text())
    command = f"set -eua; . ./.env; exec {sys.executable} {ROOT / 'manage.py'} check"
    done = subprocess.run(
        ["sh", "-c", command], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr


def test_the_operators_handbook_names_every_variable() -> None:
    handbook = (ROOT / "docs" / "operations.md").read_text()
    assert [name for name in sorted(settings_module.env.asked) if f"`{name}`" not in handbook] == []


def test_nothing_but_the_settings_reads_the_environment() -> None:
    readers = set()
    for app in ("omniroute_admin", "ladder", "billing_catalog"):
        for file in (ROOT / app).rglob("*.py"):
            tree = ast.parse(file.read_text())
            if any(isinstance(node, ast.Attribute) and node.attr in {"environ", "getenv"} for node in ast.walk(tree)):
                readers.add(str(file.relative_to(ROOT)))
    # They hand the environment on to Django or to a child, and read no setting from it.
    hand_on = {"omniroute_admin/celery.py", "omniroute_admin/wsgi.py", "omniroute_admin/programs.py"}
    assert readers - hand_on == {"omniroute_admin/settings.py"}
