"""What a run does to its processes, its database and its queue, looked at from outside (Linux)."""

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
from django.db import connection

from omniroute_admin.bench.soak.verdict import Sample

_PROC = Path("/proc")
_KILO = 1024
# The worker is started without a heartbeat, whose name has a "beat" in it.
_NAMES = {"granian": "web", " worker ": "worker", " beat ": "beat"}


class Watch:
    """The memory of every process that this one started, and the longest the queue ever was."""

    def __init__(self, var_dir: Path) -> None:
        self._var_dir = var_dir
        self.samples: dict[str, list[Sample]] = {}
        self.longest_queue = 0

    def look(self, *, at: float) -> None:
        """Take a sample of everything, `at` seconds after the run began."""
        for name, held in held_by_children():
            self.samples.setdefault(name, []).append(Sample(at, held))
        self.longest_queue = max(self.longest_queue, waiting(self._var_dir))


class _Process(msgspec.Struct, frozen=True):
    pid: int
    parent: int
    command: str


def held_by_children() -> Iterator[tuple[str, int]]:
    """Yield a name for each process below this one, and the bytes of its own that are resident.

    Pages of files do not count: SQLite maps its file, which grows by what is stored.
    """
    processes = {one.pid: one for one in _processes()}
    for name, one in _named(processes, os.getpid()):
        held = _own_memory(one.pid)
        if held is not None:
            yield name, held


def _named(processes: dict[int, _Process], top: int) -> Iterator[tuple[str, _Process]]:
    """Yield the programs this process started, and what each of them started, with its process number."""
    for head in (one for one in processes.values() if one.parent == top):
        word = next((name for part, name in _NAMES.items() if part in head.command), None)
        if word is not None:
            yield word, head
            below = [one for one in processes.values() if one.parent == head.pid]
            yield from ((f"{word}/{one.pid}", one) for one in below)


def _processes() -> Iterator[_Process]:
    for folder in _PROC.iterdir():
        if folder.name.isdigit():
            try:
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except (OSError, IndexError):  # it has just ended
                continue
            yield _Process(int(folder.name), parent, command)


def _own_memory(pid: int) -> int | None:
    try:
        lines = (_PROC / str(pid) / "status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * _KILO for line in lines if line.startswith("RssAnon:")), None)


def waiting(var_dir: Path) -> int:
    """Return how many messages of the run's own broker, which is in files, wait for its worker."""
    return len(list((var_dir / "broker" / "messages").glob("*.msg")))


def database_bytes() -> int:
    """Return how large the database is, SQLite's log beside it included."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_database_size(current_database())")
            return int(cursor.fetchone()[0])
    file = Path(str(connection.settings_dict["NAME"]))
    return sum(one.stat().st_size for one in file.parent.glob(f"{file.name}*"))
