"""`manage.py demo`: what it says, how it exits, and that quickstart adds it and tells how to remove it."""

from io import StringIO
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from ladder.core.demo.fleet import FLEET
from ladder.models import Connection
from ladder.selectors.demo import demo_connections
from ladder.services.demo import start_demo
from tests.factories_ladder import NOW, ConnectionFactory
from tests.processes import manage


def run(*options: str) -> str:
    out = StringIO()
    call_command("demo", *options, stdout=out)
    return out.getvalue()


@pytest.mark.django_db
def test_a_start_names_what_it_added_and_how_to_remove_it() -> None:
    text = run("--start")
    assert all(f"{one.provider}/{one.connection_id}" in text for one in FLEET)
    assert "python manage.py demo --stop" in text
    assert "nothing to add" in run("--start")


@pytest.mark.django_db
def test_a_start_names_what_it_left_out() -> None:
    ConnectionFactory(connection_id="demo-kiro-1")
    assert "you have a connection of that id: kiro/demo-kiro-1" in run("--start")


@pytest.mark.django_db
def test_a_stop_removes_the_fleet_and_twice_is_no_error() -> None:
    run("--start")
    assert "removed claude/demo-claude-1" in run("--stop")
    assert "nothing to remove" in run("--stop")
    assert not Connection.objects.live().exists()


@pytest.mark.django_db
def test_a_dry_run_says_what_it_would_do() -> None:
    assert "would add claude/demo-claude-1" in run("--start", "--dry-run")
    assert not Connection.objects.exists()
    run("--start")
    assert "would remove claude/demo-claude-1" in run("--stop", "--dry-run")
    assert demo_connections().count() == len(FLEET)


@pytest.mark.django_db
def test_the_status_tells_a_fleet_that_moves_from_one_that_does_not() -> None:
    start_demo(now=NOW.replace(year=2020))
    assert "It does not move" in run("--status")
    run("--stop")
    run("--start")
    assert "It moves: read " in run("--status")


@pytest.mark.django_db
def test_the_status_without_a_fleet_exits_with_3() -> None:
    with pytest.raises(CommandError, match="There is no demo fleet") as refused:
        run("--status")
    assert refused.value.returncode == 3


@pytest.mark.parametrize("options", [[], ["--start", "--stop"], ["--status", "--faster"]])
def test_wrong_options_exit_with_2(options: list[str]) -> None:
    assert manage("demo", *options).returncode == 2


def test_a_database_without_tables_is_one_sentence(tmp_path: Path) -> None:
    done = manage("demo", "--start", VAR_DIR=str(tmp_path), DATABASE_URL="")
    assert done.returncode == 1
    assert "Has manage.py migrate run?" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.django_db
def test_quickstart_adds_the_fleet_and_says_how_to_remove_it() -> None:
    out = StringIO()
    call_command("quickstart", "--no-serve", "--demo", stdout=out)
    assert demo_connections().count() == len(FLEET)
    greeting = next(line for line in out.getvalue().splitlines() if line.startswith("Demo:"))
    assert "python manage.py demo --stop" in greeting


def test_the_schedule_moves_the_fleet_well_within_the_maximum_age_of_a_reading() -> None:
    entry = settings.CELERY_BEAT_SCHEDULE["demo"]
    assert entry["task"] == "ladder.tasks.move_demo_fleet"
    assert entry["schedule"] == entry["options"]["expires"] <= 60
