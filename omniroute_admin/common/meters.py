"""What every process counts while it works, shared among the processes of a machine (see `boards`).

Labels are of few values each, known from the code: the template of an address and never an address, a code and never a
sentence. One more of a kind costs a microsecond or so.
"""

import hashlib
import os
import threading
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from omniroute_admin.common.boards import Board, drop_old_layouts, read_boards, take_board

Labels = tuple[str, ...]
Numbers = dict[Labels, list[float]]

_lock = threading.Lock()
_folder: Path | None = None
_board: Board | None = None
_meters: list["Meter"] = []


class Meter:
    """A named count, apart by labels. `numbers` is how many numbers each has."""

    def __init__(self, name: str, help_text: str, labels: Sequence[str], *, numbers: int = 1) -> None:
        self.name, self.help_text, self.labels = name, help_text, tuple(labels)
        self._numbers = numbers
        self._places: dict[Labels, int] = {}
        _meters.append(self)

    def forget_places(self) -> None:
        """Look for the places again: the board is another one."""
        self._places.clear()

    def place_first(self, board: Board) -> None:
        """Make sure of a place on a new board, for what is counted when it is full."""
        self._place(board, ())

    def _place(self, board: Board, values: Labels) -> int | None:
        """Return where these labels are counted; None without room. The lock is held."""
        place = board.place(msgspec.json.encode((self.name, values)), numbers=self._numbers)
        if place is not None:
            self._places[values] = place
        return place


class Counter(Meter):
    """A count that only grows."""

    def add(self, values: Labels, amount: float = 1) -> None:
        """Count `amount` more."""
        with _lock:
            board = _board or _take()
            place = self._places.get(values)
            if place is None:
                place = self._place(board, values)
            if place is not None:
                board.cells[place] += amount
                return
        LEFT_OUT.add(())


class Histogram(Meter):
    """How many amounts fell below each bound, and their sum. Numbers: the sum, then each bucket, the last unbounded."""

    def __init__(self, name: str, help_text: str, labels: Sequence[str], *, bounds: Sequence[float]) -> None:
        super().__init__(name, help_text, labels, numbers=len(bounds) + 2)
        self.bounds = tuple(bounds)

    def observe(self, values: Labels, amount: float) -> None:
        """Count one amount."""
        with _lock:
            board = _board or _take()
            place = self._places.get(values)
            if place is None:
                place = self._place(board, values)
            if place is not None:
                cells = board.cells
                cells[place] += amount
                cells[place + 1 + bisect_left(self.bounds, amount)] += 1
                return
        LEFT_OUT.add(())


def share_in(folder: Path) -> None:
    """Let this process count beside the others of a folder; said once, before anything is counted."""
    global _folder  # noqa: PLW0603 - one board per process is what this module is for
    _folder = folder


def meters() -> tuple[Meter, ...]:
    """Return all there are, in the order in which they are told."""
    return tuple(_meters)


def totals() -> dict[str, Numbers]:
    """Return what all processes counted, by name of the meter and labels."""
    with _lock:
        board = _board or _take()
        own = [] if board.is_shared else list(board.rows())
    others = [] if _folder is None else read_boards(_layout_folder(_folder))
    found: dict[str, Numbers] = {meter.name: {} for meter in _meters}
    for key, numbers in (*own, *others):
        name, values = msgspec.json.decode(key, type=tuple[str, Labels])
        _add(found.setdefault(name, {}), values, numbers)
    return found


def _add(known: Numbers, values: Labels, numbers: Iterable[float]) -> None:
    before = known.get(values)
    known[values] = list(numbers) if before is None else [sum(two) for two in zip(before, numbers, strict=True)]


def let_go() -> None:
    """Forget the board of this process: the next count takes one anew."""
    global _board
    board, _board = _board, None
    for meter in _meters:
        meter.forget_places()
    if board is not None:
        board.close()


def _take() -> Board:
    global _board  # noqa: PLW0603 - see share_in
    folder = None if _folder is None else _layout_folder(_folder)
    _board = take_board(folder)
    LEFT_OUT.place_first(_board)
    if _folder is not None and folder is not None:
        drop_old_layouts(_folder, present=folder)
    return _board


def _layout_folder(folder: Path) -> Path:
    """Return where boards of this very set of meters are: numbers of another one would be read as something else."""
    shape = [(meter.name, meter.labels, getattr(meter, "bounds", ())) for meter in _meters]
    return folder / f"layout-{hashlib.sha256(repr(shape).encode()).hexdigest()[:12]}"


def _begin_anew() -> None:
    """Count for oneself after a fork: the board is the parent's, and the lock may be held by a thread of its own."""
    global _lock  # noqa: PLW0603 - see share_in
    _lock = threading.Lock()
    let_go()


os.register_at_fork(after_in_child=_begin_anew)

REQUESTS = Histogram(
    "omniroute_http_request_duration_seconds",
    "Time from a request's arrival, its body included, to its answer, by template of the address.",
    ("route", "method", "status"),
    bounds=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
PROBLEMS = Counter(
    "omniroute_problems_total",
    "Calls that were refused or failed with a problem document, by its code; denials among them.",
    ("code",),
)
ITEMS = Counter(
    "omniroute_telemetry_items_total",
    "Items that routers reported, by what became of them.",
    ("kind", "outcome"),
)
REBUILDS = Histogram(
    "omniroute_snapshot_rebuild_seconds",
    "Time it took to prepare the state that decisions are made from: all of it, or what was touched since.",
    ("how",),
    bounds=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
LEFT_OUT = Counter(
    "omniroute_metrics_left_out_total",
    "Counts that found no room among the shared numbers.",
    (),
)
