"""`manage.py bench` from end to end, on a tiny fleet: it tells a row for everything, and leaves nothing behind."""

import json
import os
import signal
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model

from ladder.models import Connection
from omniroute_admin.bench.ending import ending_as_by_ctrl_c, go_on
from omniroute_admin.bench.fleet import write_fleet
from omniroute_admin.bench.measures.every import MEASURES, Measure
from omniroute_admin.bench.plan import MIX, plan_fleet
from omniroute_admin.bench.results import Result
from omniroute_admin.bench.run import measured
from omniroute_admin.common import clock
from omniroute_admin.common.models import ApiKey
from tests.processes import manage, running, until
from tests.shared import ROOT

TINY = ("--connections", "20", "--models", "10", "--providers", "4", "--rounds", "3", "--workers", "1")
TIMES = ("median_ms", "p95_ms", "p99_ms", "n")
# Each target of the product's, by the rows that it speaks of.
TARGETS = {
    "get-subscription": 1.3,
    "get-thrifty": 1.3,
    "unchanged-subscription": 1.15,
    "unchanged-thrifty": 1.15,
    "post-recurring": 1.5,
    "post-distinct": 1.5,
    "poll": 1.5,
    "core-recurring": 1,
    "core-distinct": 3,
    "growth-recurring-100000": 11,
    "growth-distinct-100000": 11,
    "growth-from-nothing-100000": 11,
    "get-subscription-while-percents-arrive": 3,
    "get-thrifty-while-verdicts-arrive": 3,
    "two-processes-old-answers": 0,
    "readings-1000": 4,
    "usage-1000": 4,
}


@pytest.fixture
def own(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a run whose every file is below a folder of this test's own."""
    (tmp_path / "tmp").mkdir()
    return {"TMPDIR": str(tmp_path / "tmp"), "VAR_DIR": str(tmp_path / "var"), "DATABASE_URL": ""}


def left_by(own: dict[str, str]) -> list[str]:
    """Return what a run left in its temporary folder, and the processes that still work for it."""
    mark = f"TMPDIR={own['TMPDIR']}".encode()
    alive = [path.parent.name for path in Path("/proc").glob("[0-9]*/environ") if mark in _read(path)]
    return [*(path.name for path in Path(own["TMPDIR"]).iterdir()), *alive]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def check_line(line: dict[str, Any]) -> None:
    assert line["failure"] is None, line
    measured = [line[name] for name in TIMES]
    if line["count"] is None:
        assert all(isinstance(value, int | float) and value > 0 for value in measured), line
        assert line["median_ms"] <= line["p95_ms"] <= line["p99_ms"], line
    else:
        assert measured == [None] * len(TIMES), line
    has_floor = line["floor_median_ms"] is not None
    assert has_floor is (line["ratio"] is not None) is bool(line["floor_is"]), line
    assert (line["target"] is None) is (line["is_met"] is None), line


def test_a_run_tells_a_row_for_every_measure_and_leaves_nothing_behind(own: dict[str, str], tmp_path: Path) -> None:
    done = manage("bench", *TINY, "--json", str(tmp_path / "lines.json"), **own)
    assert done.returncode == 0, done.stderr
    environment, *lines = [json.loads(line) for line in (tmp_path / "lines.json").read_text().splitlines()]
    assert environment.items() >= {"name": "environment", "connections": 20, "rounds": 3, "database": "sqlite"}.items()
    for line in lines:
        check_line(line)
    by_name = {line["name"]: line for line in lines}
    assert len(by_name) == len(lines)
    assert {name: by_name[name]["target"] for name in TARGETS} == TARGETS
    assert by_name["two-processes-old-answers"]["count"] == 0
    told = [line.split()[0] for line in done.stdout.splitlines()[2:]]
    assert told == [line["name"] for line in lines]
    asked = {name for name, measure in MEASURES.items() if measure.is_asked_for}
    assert [line for line in done.stderr.splitlines() if line.removeprefix("bench: ") in asked]
    assert left_by(own) == []


def test_a_run_that_is_cut_short_tells_what_it_has_and_leaves_nothing_behind(
    own: dict[str, str], tmp_path: Path
) -> None:
    command = [sys.executable, str(ROOT / "manage.py"), "bench", *TINY, "--only", "client,two-processes"]
    log = tmp_path / "run.log"
    with running([*command, "--rounds", "100000"], log, **own) as run:
        until(lambda: "bench: client" in log.read_text(), "the first measure")
        run.send_signal(signal.SIGINT)
        assert run.wait(timeout=60) == 130
    assert "Cut short." in log.read_text()
    assert left_by(own) == []


def test_a_measure_that_cannot_be_left_in_order_ends_a_run_that_is_cut_short_all_the_same() -> None:
    def cut_short(stage: object) -> Iterator[Result]:
        try:
            os.kill(os.getpid(), signal.SIGINT)
        finally:
            raise BrokenPipeError

    def never(stage: object) -> Iterator[Result]:
        yield Result(name="after")

    with pytest.raises(KeyboardInterrupt), ending_as_by_ctrl_c():
        list(measured(stage=None, measures={"cut": Measure(cut_short), "after": Measure(never)}))  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_being_told_to_end_ends_a_run_as_ctrl_c_does(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt), ending_as_by_ctrl_c():
        os.kill(os.getpid(), number)
    assert signal.getsignal(number) is before


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_what_python_drops_ends_a_run_at_its_next_step_all_the_same() -> None:
    class Gone:
        pass

    with ending_as_by_ctrl_c():
        gone = Gone()
        weakref.finalize(gone, os.kill, os.getpid(), signal.SIGINT)
        del gone
        with pytest.raises(KeyboardInterrupt):
            go_on()
    go_on()


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--connections", "0"], "--connections 0"),
        (["--rungs", "gold=1"], "gold=1"),
        (["--only", "nothing"], "--only nothing"),
        (["--json", "/"], "--json /"),
        (["--database-url", "mysql://there"], "--database-url"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_a_sentence(options: list[str], named: str, own: dict[str, str]) -> None:
    done = manage("bench", *options, **own)
    assert done.returncode == 1
    assert named in done.stderr
    assert "Traceback" not in done.stderr
    assert left_by(own) == []


def test_the_measures_are_listed_with_what_they_measure(own: dict[str, str]) -> None:
    done = manage("bench", "--list", **own)
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(MEASURES)
    assert "POST" in done.stdout


@pytest.mark.django_db(transaction=True)
def test_a_database_with_connections_is_measured_only_where_that_is_said(
    database_url: str, own: dict[str, str]
) -> None:
    write_fleet(plan_fleet(connections=20, models=10, providers=4, mix=MIX), now=clock.now())
    refused = manage("bench", *TINY, "--database-url", database_url, **own)
    assert refused.returncode == 1
    assert "--use-existing" in refused.stderr
    few = ("--only", "get,readings", "--rounds", "3", "--workers", "1")
    done = manage("bench", *few, "--database-url", database_url, "--use-existing", **own)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert [line["name"] for line in lines[1:]] == ["get-subscription", "get-thrifty", "readings-1000"], done.stderr
    assert Connection.objects.count() == 20
    assert not ApiKey.objects.filter(revoked_at=None).exists()
    assert not get_user_model().objects.exists()
    assert left_by(own) == []
