"""Numbers that several processes of one machine count, each in a file of its own that all of them read.

A process takes the first board that nobody holds and counts on from what stands there, so that counters never fall
when a process is started anew, and there are never more files than processes that lived at once. The lock on the file
is the holder's sign of life: the kernel lifts it with the process, however that ends.
"""

import fcntl
import logging
import mmap
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

SIZE = 1 << 19
"""Bytes of a board: room for some two thousand histograms; what finds no room is counted as left out."""

_CELL = 8
_SUFFIX = ".board"
_FOLDER = re.compile(r"layout-[0-9a-f]{12}")
_log = logging.getLogger(__name__)

Row = tuple[bytes, list[float]]
"""The key of a row and its numbers."""


class Board:
    """Rows of numbers in memory, each found by a key.

    The first cell says how many cells are in use. A row is a cell with the length of its key and the count of its
    numbers, the key, padded, and the numbers.
    """

    def __init__(self, memory: mmap.mmap, descriptor: int | None = None) -> None:
        """Take a memory, empty or as another process left it; `descriptor` holds the lock on its file."""
        self._memory, self._descriptor = memory, descriptor
        self._bytes = memoryview(memory)
        self._whole = self._bytes.cast("Q")
        self.cells = self._bytes.cast("d")
        if not self._whole[0]:
            self._whole[0] = 1
        try:
            self._places = {key: place for key, place, _ in _rows_in(self._bytes)}
        except ValueError:
            # Torn by a machine that lost its power: what was counted is gone, and counting goes on.
            self._places, self._whole[0] = {}, 1

    @property
    def is_shared(self) -> bool:
        """Tell whether other processes see it."""
        return self._descriptor is not None

    def place(self, key: bytes, *, numbers: int) -> int | None:
        """Return the cell of the first of a row's numbers, the row made where it is missing; None without room."""
        place = self._places.get(key)
        return self._append(key, numbers) if place is None else place

    def _append(self, key: bytes, numbers: int) -> int | None:
        start = int(self._whole[0])
        place = start + 1 + -(-len(key) // _CELL)
        if place + numbers > len(self._whole):
            return None
        begin = (start + 1) * _CELL
        # Another process may have ended in the middle of this, or left what is no board.
        self._bytes[start * _CELL : (place + numbers) * _CELL] = bytes((place + numbers - start) * _CELL)
        self._bytes[begin : begin + len(key)] = key
        self._whole[start] = len(key) << 32 | numbers
        # Last, so that nobody reads a row that is half there.
        self._whole[0] = place + numbers
        self._places[key] = place
        return place

    def rows(self) -> Iterator[Row]:
        """Yield what stands on it."""
        for key, place, numbers in _rows_in(self._bytes):
            yield key, list(self.cells[place : place + numbers])

    def close(self) -> None:
        """Let go of the memory and, in the process that took it, of the lock."""
        for view in (self.cells, self._whole, self._bytes):
            view.release()
        self._memory.close()
        if self._descriptor is not None:
            os.close(self._descriptor)


def _rows_in(content: memoryview) -> Iterator[tuple[bytes, int, int]]:
    """Yield the key, the place and the count of numbers of each row.

    Raises:
        ValueError: it is no board.
    """
    whole = content.cast("Q")
    used, at = int(whole[0]) if len(whole) else 0, 1
    if used > len(whole):
        raise ValueError("it says that more is in use than there is")
    while at < used:
        length, numbers = whole[at] >> 32, whole[at] & 0xFFFFFFFF
        place = at + 1 + -(-length // _CELL)
        if not length or not numbers or place + numbers > used:
            raise ValueError("a row goes beyond the end")
        begin = (at + 1) * _CELL
        yield bytes(content[begin : begin + length]), place, numbers
        at = place + numbers


def take_board(folder: Path | None) -> Board:
    """Return a board that no other living process counts on, in a folder that is made where it is missing.

    Where the folder cannot be used, or is None, it is one that no other process sees.
    """
    try:
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            return _first_free(folder)
    except OSError as error:
        _log.warning("METRICS_DIR: %s cannot be used (%s); this process counts for itself", folder, error.strerror)
    return Board(mmap.mmap(-1, SIZE))


def _first_free(folder: Path) -> Board:
    number = 0
    while (board := _taken(folder / f"{number}{_SUFFIX}")) is None:
        number += 1
    return board


def _taken(file: Path) -> Board | None:
    """Return the board of a file, None where another process counts on it."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if _lock(descriptor):
            # A hole in the file would end the process at the first number for which a full disk has no room.
            os.posix_fallocate(descriptor, 0, SIZE)
            return Board(mmap.mmap(descriptor, SIZE), descriptor)
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def read_boards(folder: Path) -> Iterator[Row]:
    """Yield the rows of all boards of a folder, those that a process left behind too."""
    for file in sorted(folder.glob(f"*{_SUFFIX}")):
        with suppress(OSError, ValueError):
            content = memoryview(file.read_bytes())
            content = content[: len(content) // _CELL * _CELL]
            cells = content.cast("d")
            yield from [(key, list(cells[place : place + size])) for key, place, size in _rows_in(content)]


def drop_old_layouts(folder: Path, *, present: Path) -> None:
    """Remove the boards of other versions, whose rows mean something else, where no process counts on them any more."""
    with suppress(OSError):
        for other in folder.iterdir():
            if other != present and _FOLDER.fullmatch(other.name) and not _is_held(other):
                shutil.rmtree(other, ignore_errors=True)


def _is_held(folder: Path) -> bool:
    for file in folder.glob(f"*{_SUFFIX}"):
        descriptor = os.open(file, os.O_RDONLY)
        try:
            if not _lock(descriptor):
                return True
        finally:
            os.close(descriptor)
    return False
