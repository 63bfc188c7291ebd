"""Several that start at once on nothing: each comes to its end, and what they made is whole and there once."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.omniroute_admin.faults.installation import Installation
from tests.omniroute_admin.killing import Killable
from tests.postgres import NoPostgresError, own_cluster
from tests.processes import environment, free_port, until
from tests.shared import ROOT

pytestmark = pytest.mark.slow
TOGETHER = 4


@pytest.fixture(params=["sqlite", "postgres"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Installation]:
    """Return an installation whose database has no table yet."""
    if request.param == "sqlite":
        yield Installation(tmp_path, f"sqlite:///{tmp_path / 'state.sqlite3'}")
        return
    try:
        with own_cluster() as cluster:
            yield Installation(tmp_path, cluster.url)
    except NoPostgresError as missing:
        pytest.skip(str(missing))


def together(commands: list[list[str]], **variables: str) -> list[str]:
    """Run programs at once and return what each said; each must end well."""
    children = [
        subprocess.Popen(
            [sys.executable, *command],
            env=environment(**variables),
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for command in commands
    ]
    said = [child.communicate()[0] for child in children]
    assert [child.returncode for child in children] == [0] * len(children), said
    return said


def test_migrations_that_race_make_a_whole_schema(empty: Installation) -> None:
    said = together([["manage.py", "migrate", "--no-input"]] * TOGETHER, **empty.variables)
    assert sum("waiting for its end" in one for one in said) >= 1
    assert sum("Applying ladder.0001_initial" in one for one in said) == 1
    empty.manage("migrate", "--check")
    # Whole: the models find their tables and columns, and a decision can be made.
    empty.manage("makemigrations", "--check", "--dry-run")
    empty.manage("check_ledger")
    assert empty.rows("SELECT count(*) FROM common_revision") == [(1,)]
    applied = empty.rows("SELECT app, name FROM django_migrations")
    assert len(applied) == len(set(applied))


def test_a_migration_whose_process_is_killed_holds_nobody_up(empty: Installation, tmp_path: Path) -> None:
    command = [sys.executable, "manage.py", "migrate"]
    with (tmp_path / "first.log").open("wb") as log:
        first = subprocess.Popen(command, env=environment(**empty.variables), cwd=ROOT, stdout=log)
    until(lambda: "Applying" in (tmp_path / "first.log").read_text(), "the first migration")
    first.kill()
    first.wait()
    empty.manage("migrate")
    empty.manage("migrate", "--check")


def test_quickstarts_that_race_make_one_operator_and_one_key(empty: Installation) -> None:
    said = together([["manage.py", "quickstart", "--no-serve"]] * 2, **empty.variables)
    assert sum("password (shown once)" in one for one in said) == 1
    assert sum("Router key (shown once)" in one for one in said) == 1
    assert empty.rows("SELECT count(*) FROM auth_user") == [(1,)]
    assert empty.rows("SELECT count(*) FROM common_apikey") == [(1,)]


def test_servers_that_start_at_once_on_an_empty_folder_sign_with_one_key(on_sqlite: Installation) -> None:
    """A session that one of them makes holds at the others."""
    variables = {**on_sqlite.variables, "SECRET_KEY": ""}
    (on_sqlite.folder / "var" / "secret_key").unlink(missing_ok=True)
    ports = [free_port() for _ in range(TOGETHER)]
    servers = [Killable("web", on_sqlite.folder, port=port, **variables) for port in ports]
    try:
        for server in servers:
            server.start()
        first, *others = ports
        for port in ports:
            on_sqlite.port = port
            until(on_sqlite.is_ready, "a server")
        on_sqlite.port = first
        on_sqlite.sign_in()
        for port in others:
            on_sqlite.port = port
            assert on_sqlite.ask(on_sqlite.visit("/")).status == 200
    finally:
        for server in servers:
            server.kill()
