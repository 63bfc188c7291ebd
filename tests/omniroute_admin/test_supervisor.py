"""The supervisor restarts what ends and leaves nothing behind, whichever way it is ended itself."""

import os
import signal
import sys
from pathlib import Path

import pytest

from omniroute_admin.supervisor import next_delay
from tests.processes import is_running, running, until

# A program with a helper of its own, as a web server has, that notes both process ids.
PROGRAM = """
import os, signal, subprocess, sys
helper = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
if sys.argv[2] == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
with open(sys.argv[1], "a") as notes:
    notes.write(f"{os.getpid()} {helper.pid}\\n")
while True:
    signal.pause()
"""
SUPERVISOR = """
import os, sys
from omniroute_admin.supervisor import Program, Supervisor
command = [sys.executable, "-c", {program!r}, sys.argv[1], sys.argv[2]]
Supervisor(
    programs=[Program("one", command)], environment=os.environ, say=lambda line: print(line, flush=True), patience=1.0
).run()
"""


def supervisor(notes: Path, manner: str = "obedient") -> list[str]:
    return [sys.executable, "-c", SUPERVISOR.format(program=PROGRAM), str(notes), manner]


def noted(notes: Path, line: int) -> list[int] | None:
    """Return the process ids of the program's start number `line`, once it has started."""
    lines = notes.read_text().splitlines() if notes.exists() else []
    return [int(part) for part in lines[line].split()] if len(lines) > line and len(lines[line].split()) == 2 else None


@pytest.mark.parametrize(
    ("previous", "ran_for", "delay"), [(0, 0, 1), (1, 0, 2), (2, 29.9, 4), (16, 0, 30), (30, 5, 30), (30, 30, 1)]
)
def test_the_delay_doubles_up_to_half_a_minute_and_is_forgotten_after_a_good_run(
    previous: float, ran_for: float, delay: float
) -> None:
    assert next_delay(previous=previous, ran_for=ran_for) == delay


def test_a_program_that_dies_is_started_again_and_its_helper_does_not_outlive_it(tmp_path: Path) -> None:
    notes, log = tmp_path / "notes", tmp_path / "log"
    with running(supervisor(notes), log):
        first = until(lambda: noted(notes, 0), "the first start")
        os.kill(first[0], signal.SIGKILL)
        second = until(lambda: noted(notes, 1), "the second start")
        assert second[0] != first[0]
        assert not is_running(first[1])
    assert "one ended with -9; starting it again in 1 s" in log.read_text()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("manner", ["obedient", "deaf"])
def test_the_end_of_the_supervisor_is_the_end_of_all(tmp_path: Path, number: signal.Signals, manner: str) -> None:
    notes = tmp_path / "notes"
    with running(supervisor(notes, manner), tmp_path / "log") as process:
        pids = until(lambda: noted(notes, 0), "the start")
        process.send_signal(number)
        assert process.wait() == 0
    assert [pid for pid in pids if is_running(pid)] == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child that its parent was killed")
def test_a_killed_supervisor_takes_its_programs_with_it(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    with running(supervisor(notes), tmp_path / "log") as process:
        program, helper = until(lambda: noted(notes, 0), "the start")
        process.kill()
        until(lambda: not is_running(program), "the end of the program")
        os.kill(helper, signal.SIGKILL)
