"""SPEC 6: a disk that is full refuses what would be written, in words; nothing that was acknowledged is lost."""

import contextlib
import os
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.omniroute_admin.faults.installation import PROGRAMS, Installation, instant
from tests.omniroute_admin.faults.load import bad, check_nothing_is_lost, refusals, under_load
from tests.processes import until

pytestmark = pytest.mark.slow
MEGABYTE = 1024 * 1024
WRITES = ("readings", "usage", "holds")
READS = ("get", "post", "page")
NO_ROOM = (503, "state_unavailable")
MOUNT, UNMOUNT = "/usr/bin/mount", "/usr/bin/umount"


class SmallDisk:
    """A file system in memory with room for little more than what is on it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._filler = folder, folder / "filler"

    def fill(self, installed: Installation) -> None:
        with contextlib.suppress(OSError), self._filler.open("ab", buffering=0) as filler:
            for size in (MEGABYTE, 4096):
                with contextlib.suppress(OSError):
                    while filler.write(b"x" * size) == size:
                        pass

    def empty(self, installed: Installation) -> None:
        self._filler.unlink()


class Limit:
    """A limit to the size of files, for who may not mount: what grows beyond it cannot be written either."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fill(self, installed: Installation) -> None:
        largest = max(file.stat().st_size for file in self.folder.glob("state.sqlite3*"))
        self._set(installed, largest)

    def empty(self, installed: Installation) -> None:
        self._set(installed, resource.RLIM_INFINITY)

    def _set(self, installed: Installation, size: int) -> None:
        for pid in processes_of(installed):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def processes_of(installed: Installation) -> list[int]:
    """Return every process of the installation's programs: each program heads a session."""
    heads = {program.pid for program in installed.programs.values()}
    numbers = [int(one.name) for one in Path("/proc").iterdir() if one.name.isdigit()]
    return [number for number in numbers if session_of(number) in heads]


def session_of(pid: int) -> int:
    try:
        return os.getsid(pid)
    except (ProcessLookupError, PermissionError):
        return 0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk | Limit]:
    """Return a real file system where this user may mount one, else a limit that the kernel sets to files."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        [MOUNT, "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        yield Limit(folder)
        return
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run([UNMOUNT, "--lazy", str(folder)], check=True)


@pytest.fixture
def installed(disk: SmallDisk | Limit, tmp_path: Path) -> Iterator[Installation]:
    installed = Installation(tmp_path, f"sqlite:///{disk.folder / 'state.sqlite3'}")
    try:
        installed.prepare()
        installed.start(*PROGRAMS)
        yield installed
    finally:
        installed.end()


def test_a_disk_that_is_full_and_has_room_again(installed: Installation, disk: SmallDisk | Limit) -> None:
    with under_load(installed) as load:
        installed.beats()
        for _ in range(2):
            begun = instant()
            disk.fill(installed)
            for kind in WRITES:
                until(lambda kind=kind, begun=begun: bad(load.between(begun, None, kind)), f"{kind} that find no room")
            load.is_answered()
            full = instant()
            load.is_answered(times=10)
            still = instant()
            # What is only read goes on.
            assert bad(load.between(full, still, *READS)) == []
            disk.empty(installed)
            room = instant()
            load.is_answered(times=10)
            installed.beats()
            installed.looks()
            assert bad(load.between(room)) == []
    assert refusals(load.told) == {NO_ROOM}
    assert all(b"no room to write" in body for _, _, _, body in bad(load.told))
    assert installed.kept_running()
    check_nothing_is_lost(installed, load)
    assert installed.rows("PRAGMA integrity_check") == [("ok",)]
