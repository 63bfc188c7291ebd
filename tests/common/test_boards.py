"""Counts are whole among processes, outlive them, and never pile up."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from omniroute_admin.common import boards, meters
from omniroute_admin.common.boards import Board, drop_old_layouts, read_boards, take_board
from tests.processes import environment

COUNT = """
import sys
from pathlib import Path
from omniroute_admin.common.meters import PROBLEMS, REQUESTS, share_in
share_in(Path(sys.argv[1]))
for _ in range(int(sys.argv[2])):
    PROBLEMS.add(("unauthenticated",))
    REQUESTS.observe(("route", "GET", "2xx"), 0.004)
print("counted", flush=True)
sys.stdin.read()
"""


def counting(folder: Path, times: int) -> "subprocess.Popen[bytes]":
    """Start a process that counts so often and then lives until its input ends; return when it has counted."""
    command = [sys.executable, "-c", COUNT, str(folder), str(times)]
    child = subprocess.Popen(command, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"counted\n"
    return child


def end(child: "subprocess.Popen[bytes]", *, kill: bool = False) -> None:
    if kill:
        child.kill()
    child.communicate()


@pytest.fixture
def shared(tmp_path: Path) -> Any:
    """Let this process count in a folder of the test, and as before afterwards."""
    before = meters._folder
    meters.let_go()
    meters.share_in(tmp_path)
    yield tmp_path
    meters.let_go()
    meters._folder = before


def denials() -> float:
    return meters.totals()[meters.PROBLEMS.name].get(("unauthenticated",), [0.0])[0]


def files(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.rglob("*.board"))


def test_the_total_is_of_all_processes_whichever_is_asked(shared: Path) -> None:
    meters.PROBLEMS.add(("unauthenticated",), 2)
    children = [counting(shared, 30), counting(shared, 12)]
    assert denials() == 44
    assert files(shared) == ["0.board", "1.board", "2.board"]
    buckets = meters.totals()[meters.REQUESTS.name]["route", "GET", "2xx"]
    # 4 ms lie above the third bound and at or below the fourth.
    assert (buckets[0], buckets[1:6]) == (pytest.approx(42 * 0.004), [0, 0, 0, 42, 0])
    for child in children:
        end(child)


def test_processes_that_end_and_begin_leave_neither_a_gap_nor_a_file(shared: Path) -> None:
    for turn in range(1, 6):
        child = counting(shared, 7)
        assert denials() == 7 * turn
        end(child, kill=turn % 2 == 0)
        assert denials() == 7 * turn
    assert len(files(shared)) <= 2


def test_a_fork_counts_beside_its_parent_and_not_in_its_place(shared: Path) -> None:
    meters.PROBLEMS.add(("unauthenticated",))
    child = os.fork()
    if child == 0:
        meters.PROBLEMS.add(("unauthenticated",), 5)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    meters.PROBLEMS.add(("unauthenticated",))
    assert denials() == 7
    assert files(shared) == ["0.board", "1.board"]


def test_a_folder_that_cannot_be_used_is_said_and_the_process_counts_alone(
    shared: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (shared / "file").touch()
    meters.share_in(shared / "file" / "metrics")
    meters.PROBLEMS.add(("unauthenticated",))
    assert denials() == 1
    assert "METRICS_DIR" in caplog.text


def test_what_finds_no_room_is_counted_as_left_out_and_nothing_fails(shared: Path) -> None:
    meters.PROBLEMS.add(("unauthenticated",))
    assert meters._board is not None
    room = meters._board
    names = iter(range(boards.SIZE))
    while room.place(b"other %d" % next(names), numbers=100) is not None:
        pass
    meters.REQUESTS.observe(("new", "GET", "2xx"), 1.0)
    meters.PROBLEMS.add(("unauthenticated",))
    totals = dict(meters.read_boards(meters._layout_folder(shared)))
    assert totals[b'["omniroute_metrics_left_out_total",[]]'] == [1.0]
    assert totals[b'["omniroute_problems_total",["unauthenticated"]]'] == [2.0]


@pytest.mark.parametrize("content", [b"", b"\xff" * 64, b"\x09" + b"\x00" * 7 + b"\xff" * 8, b"abc"])
def test_a_file_that_is_no_board_is_passed_over_and_begun_anew(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "0.board").write_bytes(content)
    assert list(read_boards(tmp_path)) == []
    board = take_board(tmp_path)
    place = board.place(b"key", numbers=1)
    assert place is not None
    board.cells[place] += 3
    assert list(read_boards(tmp_path)) == [(b"key", [3.0])]
    board.close()


def test_a_board_that_is_taken_again_goes_on(tmp_path: Path) -> None:
    for number in range(1, 4):
        board = take_board(tmp_path)
        place = board.place(b"key", numbers=2)
        assert place is not None
        board.cells[place + 1] += 1
        assert list(board.rows()) == [(b"key", [0.0, number])]
        board.close()


def test_boards_of_another_version_go_when_nobody_counts_on_them(tmp_path: Path) -> None:
    old, held, present, foreign = (tmp_path / f"layout-{c * 12}" for c in "abcd")
    take_board(old).close()
    other: Board = take_board(held)
    take_board(present).close()
    foreign = tmp_path / "photographs"
    foreign.mkdir()
    drop_old_layouts(tmp_path, present=present)
    assert sorted(one.name for one in tmp_path.iterdir()) == sorted([held.name, present.name, foreign.name])
    other.close()


def test_no_two_meters_have_one_name() -> None:
    names = [meter.name for meter in meters.meters()]
    assert len(set(names)) == len(names)
