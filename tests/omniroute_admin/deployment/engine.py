"""In the place of a container engine: servers from packages, and processes as the image's user on read-only files."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from tests.omniroute_admin.deployment.image import image_environment, last, moved
from tests.postgres import _identity, _programs, _run
from tests.processes import free_port, until

INTERPRETERS = ("/usr/bin/python3.13", "/usr/bin/python3.12", "/usr/bin/python3.11", "/usr/bin/python3")
HAS_ROOT = os.geteuid() == 0
_INSIDE = """set -e
mount --make-rprivate /
mount --bind "$1/state/$2" "$1/var/lib/omniroute_admin"
mount -t tmpfs -o size=64m,mode=1777 tmpfs "$1/tmp"
mount -o remount,bind,ro /
cd "$1/app"; user=$3; shift 3
exec setpriv --reuid "${user%:*}" --regid "${user#*:}" --clear-groups --no-new-privs --bounding-set=-all "$@"
"""


def interpreter() -> str | None:
    """Return a Python that the image's user may run; one in root's home is none."""
    ids: dict[str, Any] = {"user": 10001, "group": 10001, "extra_groups": []} if HAS_ROOT else {}
    for path in INTERPRETERS:
        if Path(path).exists():
            asked = [path, "-c", "import sys, venv; sys.exit(sys.version_info < (3, 11))"]
            if subprocess.run(asked, check=False, capture_output=True, cwd="/", **ids).returncode == 0:
                return path
    return None


def can_confine() -> bool:
    """Tell whether this user may make a root file system read-only for one process."""
    asked = ["unshare", "--mount", "sh", "-c", "mount --make-rprivate / && mount -o remount,bind,ro /"]
    return HAS_ROOT and bool(shutil.which("setpriv")) and subprocess.run(asked, check=False).returncode == 0


@contextmanager
def open_folder() -> Iterator[Path]:
    """Yield a folder that every user can reach, unlike those that the tests are given."""
    folder = Path(tempfile.mkdtemp(prefix="omniroute-image-", dir="/tmp"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        subprocess.run(["chmod", "-R", "u+w", str(folder)], check=False)
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def postgres(service: dict[str, Any], password: str) -> Iterator[int]:
    """Run PostgreSQL with the options of the compose file, asking for the password, and yield its port."""
    with open_folder() as folder:
        identity, programs, port, data = _identity(), _programs(), free_port(), folder / "data"
        data.mkdir(mode=0o700)
        secret = folder / "password"
        secret.write_text(password)
        for path in (data, secret):
            if identity:
                os.chown(path, identity["user"], identity["group"])
        user = service["environment"]["POSTGRES_USER"]
        made = ["-U", user, "-A", "scram-sha-256", f"--pwfile={secret}", "--no-sync"]
        _run(
            [programs / "initdb", "-D", data, *made, *service["environment"]["POSTGRES_INITDB_ARGS"].split()], identity
        )
        options = " ".join([*service["command"][1:], f"-c listen_addresses=127.0.0.1 -c port={port}"])
        control = [programs / "pg_ctl", "-D", data, "-w", "-l", data / "log"]
        _run([*control, "-o", f"{options} -c unix_socket_directories={data}", "start"], identity)
        try:
            told = {"host": "127.0.0.1", "port": port, "user": user, "password": password, "dbname": "postgres"}
            with psycopg.connect(autocommit=True, **told) as server:
                server.execute(f'CREATE DATABASE "{service["environment"]["POSTGRES_DB"]}"')
            yield port
        finally:
            _run([*control, "-m", "immediate", "stop"], identity)


@contextmanager
def redis(service: dict[str, Any], folder: Path) -> Iterator[int]:
    """Run Redis by the compose file's command and yield its port."""
    port = free_port()
    command = [*service["command"], "--bind", "127.0.0.1", "--port", str(port), "--dir", str(folder)]
    with (folder / "redis.log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        until(lambda: subprocess.run(["redis-cli", "-p", str(port), "ping"], check=False).returncode == 0, "Redis")
        yield port
    finally:
        server.terminate()
        server.wait()


class Engine:
    """Starts the services of the compose file below a folder in which the image was built."""

    def __init__(self, root: Path, services: dict[str, Any], addresses: dict[str, str], *, confined: bool) -> None:
        self.root, self._services, self._addresses, self._confined = root, services, addresses, confined

    def start(self, name: str, service: str, *, command: list[str] | None = None, port: int = 0) -> "Running":
        """Start a service's command, or another in its place, under a name of its own."""
        told = self._services[service]
        words = command or told.get("command") or last("CMD").words
        state = self.root / "state" / name
        state.mkdir(parents=True, exist_ok=True)
        environment = {**image_environment(), **told["environment"]}
        environment = {key: self._placed(value or "", port) for key, value in environment.items()}
        environment |= {"PATH": f"{self.root}/opt/venv/bin:/usr/bin:/bin", "TMPDIR": f"{self.root}/tmp"}
        run = [self._placed(word, port) for word in words]
        if HAS_ROOT:
            user, _, group = told["user"].partition(":")
            os.chown(state, int(user), int(group))
        if self._confined:
            run = ["unshare", "--mount", "sh", "-c", _INSIDE, "sh", str(self.root), name, told["user"], *run]
        else:
            environment["VAR_DIR"] = str(state)
        return Running(self, name, run, environment, grace=told.get("stop_grace_period", "10s"), user=told["user"])

    def _placed(self, text: str, port: int) -> str:
        """Return a text with the image's paths, and names of servers, as they are here."""
        for name, place in self._addresses.items():
            text = text.replace(name, place)
        text = _with_port(text, port) if port else text
        return moved(text.replace("$$", "$"), self.root)


def _with_port(text: str, port: int) -> str:
    """Return a text with another port than the image's: here all share one machine."""
    return str(port) if text == "8000" else text.replace("localhost:8000", f"localhost:{port}")


class Running:
    """One process of a service, its output in a file."""

    def __init__(
        self, engine: Engine, name: str, command: list[str], environment: dict[str, str], *, grace: str, user: str
    ) -> None:
        self.name, self.grace = name, sum(int(n) * s for n, s in _spans(grace))
        self.log = engine.root / "logs" / f"{name}.log"
        self.log.parent.mkdir(exist_ok=True)
        ids: dict[str, Any] = {}
        if HAS_ROOT and command[0] != "unshare":
            uid, _, gid = user.partition(":")
            ids = {"user": int(uid), "group": int(gid), "extra_groups": []}
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                command, env=environment, stdout=output, stderr=subprocess.STDOUT, cwd=engine.root / "app", **ids
            )

    def ended(self) -> int:
        """Wait for the end and return the exit code."""
        return self.process.wait(timeout=300)

    def stop(self) -> int:
        """Send SIGTERM as an engine does, and return the exit code; beyond the grace it would be killed."""
        self.process.terminate()
        try:
            return self.process.wait(timeout=self.grace)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return -9

    @property
    def output(self) -> str:
        """Return what it printed so far."""
        return self.log.read_text(errors="replace")


def _spans(text: str) -> list[tuple[str, int]]:
    units = {"h": 3600, "m": 60, "s": 1}
    return [(number, units[unit]) for number, unit in re.findall(r"(\d+)([hms])", text)]
