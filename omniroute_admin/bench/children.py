"""The processes a run starts: servers, and what goes on beside a measurement. None outlives the run."""

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from django.conf import settings

from omniroute_admin.bench.client import HOST, Client, request
from omniroute_admin.bench.errors import BenchError
from omniroute_admin.programs import child_environment, programs_to_run
from omniroute_admin.supervisor import end_with_parent, signal_session

PATIENCE = 60.0
_LOOK_EVERY = 0.05
_TAIL = 2_000


def free_port() -> int:
    """Return a port that nothing listened on a moment ago."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def bench_environment(*, database_url: str, var_dir: Path) -> dict[str, str]:
    """Return the environment of a process of the product that works on the database of the run."""
    return {
        **child_environment(),
        "DJANGO_SETTINGS_MODULE": "omniroute_admin.bench.settings",
        "DATABASE_URL": database_url,
        "VAR_DIR": str(var_dir),
        "STATIC_ROOT": str(var_dir / "static"),
        "SECRET_KEY": settings.SECRET_KEY,
        "CELERY_BROKER_URL": "filesystem://",
        "DEBUG": "false",
        "SECURE_SSL": "false",
    }


def collect_static(environment: Mapping[str, str]) -> None:
    """Put the files that pages name where a server of that environment looks for them.

    Raises:
        BenchError: that failed.
    """
    command = [sys.executable, "-m", "django", "collectstatic", "--no-input", "--verbosity", "0"]
    done = subprocess.run(command, env=dict(environment), capture_output=True, check=False)  # noqa: S603 - as above
    if done.returncode:
        raise BenchError(f"collectstatic failed: {done.stderr[-_TAIL:].decode(errors='replace')}")


@contextmanager
def serving(*, workers: int, environment: Mapping[str, str], log: Path) -> Iterator[int]:
    """Serve the product exactly as it serves itself, and yield the port once it is ready.

    Raises:
        BenchError: it does not get ready; with the end of what it said.
    """
    port = free_port()
    web = programs_to_run(host=HOST, port=port, workers=workers)[0]
    with log.open("ab") as output, _running(web.command, environment, stdin=subprocess.DEVNULL, output=output) as child:
        try:
            _wait_until_ready(child, port)
        except BenchError as error:
            raise BenchError(f"{error}\n{log.read_bytes()[-_TAIL:].decode(errors='replace')}".strip()) from None
        yield port


@contextmanager
def working(*, environment: Mapping[str, str], log: Path) -> Iterator[None]:
    """Run the worker and the scheduler as the product runs them itself, beside the block."""
    with ExitStack() as stack:
        output = stack.enter_context(log.open("ab"))
        for program in programs_to_run(host=HOST, port=1, workers=1)[1:]:
            stack.enter_context(_running(program.command, environment, stdin=subprocess.DEVNULL, output=output))
        yield


@contextmanager
def beside(kind: str, **what: Any) -> Iterator["Beside"]:
    """Run one of the loads of `omniroute_admin.bench.loads` in a process of its own, beside the block."""
    command = [sys.executable, "-m", "omniroute_admin.bench.loads"]
    with _running(command, child_environment(), stdin=subprocess.PIPE, output=subprocess.PIPE) as child:
        started = Beside(child)
        started.begin({"kind": kind, **what})
        yield started
        started.end()


def ask_program(module: str, *, environment: Mapping[str, str], **what: Any) -> dict[str, Any]:
    """Run a module of the product in a process of its own, and return what it has to say about something.

    Raises:
        BenchError: it said nothing.
    """
    command = [sys.executable, "-m", module]
    with _running(command, environment, stdin=subprocess.PIPE, output=subprocess.PIPE) as child:
        asked = Beside(child)
        asked.begin(what)
        return asked.said


class Beside:
    """What runs beside a measurement. `said` is what it told at its start, after the end what it did."""

    def __init__(self, child: "subprocess.Popen[bytes]") -> None:
        self._child = child
        self.said: dict[str, Any] = {}

    def begin(self, what: Mapping[str, Any]) -> None:
        """Tell it what to do and wait until it does so."""
        assert self._child.stdin is not None  # noqa: S101 - made with a pipe
        self._child.stdin.write(json.dumps(what).encode() + b"\n")
        self._child.stdin.flush()
        self._listen()

    def end(self) -> None:
        """Let it end, and hear what it did."""
        if self._child.stdin is not None and not self._child.stdin.closed:
            self._child.stdin.close()
            self._listen()

    def _listen(self) -> None:
        assert self._child.stdout is not None  # noqa: S101 - made with a pipe
        line = self._child.stdout.readline()
        if not line:
            raise BenchError("what should run beside the measurement has ended")
        self.said = json.loads(line)


@contextmanager
def _running(
    command: list[str], environment: Mapping[str, str], *, stdin: int, output: int | IO[bytes]
) -> Iterator["subprocess.Popen[bytes]"]:
    child = subprocess.Popen(  # noqa: S603 - the commands are this product's own
        command,
        env=dict(environment),
        stdin=stdin,
        stdout=output,
        stderr=None if output == subprocess.PIPE else output,
        # A key press in the terminal reaches the run alone, which then ends its children.
        start_new_session=True,
        preexec_fn=end_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509 - there are no threads here
    )
    try:
        yield child
    finally:
        _end(child)


def _end(child: "subprocess.Popen[bytes]") -> None:
    child.terminate()
    try:
        child.wait(timeout=10)
    except subprocess.TimeoutExpired:
        pass
    finally:
        signal_session(child, signal.SIGKILL)
        child.wait()
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                # What was to be written to it, nobody reads any more.
                with suppress(OSError):
                    pipe.close()


def _wait_until_ready(child: "subprocess.Popen[bytes]", port: int) -> None:
    asked = request("GET", "/readyz", headers={})
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if child.poll() is not None:
            raise BenchError(f"the server ended with {child.returncode} before it was ready")
        try:
            with Client(port=port, patience=PATIENCE) as client:
                if client.send(asked).status == 200:  # noqa: PLR2004 - HTTP
                    return
        except OSError:
            pass
        time.sleep(_LOOK_EVERY)
    raise BenchError(f"the server was not ready after {PATIENCE:.0f} s")
