"""The image's steps and the compose file's commands, taken from there, run without an engine.

A fresh environment of the runtime requirements, the image's user, a root file system that is read-only, PostgreSQL and
Redis from packages, two web processes, a worker, beat, and the proxy in front of them.
"""

import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.omniroute_admin.deployment.engine import (
    Engine,
    Running,
    can_confine,
    interpreter,
    open_folder,
    postgres,
    redis,
)
from tests.omniroute_admin.deployment.image import TOOLS, build, compose, last
from tests.processes import free_port, until
from tests.shared import ROOT

PASSWORD = "p4ss/w:rd@with#signs"
KEY = "the-start-of-the-image-is-signed-with-this-key-0123456789-0123456789"
PYTHON = interpreter()
pytestmark = [
    pytest.mark.redis,
    pytest.mark.skipif(
        os.environ.get("CI", "").lower() != "true",
        reason="installs the image's packages anew, which takes a minute; CI=true runs it",
    ),
    pytest.mark.skipif(shutil.which("redis-server") is None, reason="redis-server is not installed"),
    pytest.mark.skipif(PYTHON is None, reason="there is no Python that another user than this one may run"),
]


def seen(folder: Path) -> dict[str, tuple[int, int]]:
    """Return every file below a folder, with its size and when it was changed."""
    found = (path for path in folder.rglob("*") if path.is_file() or path.is_symlink())
    return {str(path): (path.lstat().st_size, path.lstat().st_mtime_ns) for path in found}


@pytest.fixture(scope="module")
def image() -> Iterator[Path]:
    """Build the image's tree; then it belongs to root and nobody may write it."""
    assert PYTHON is not None
    with open_folder() as root:
        build(root, PYTHON)
        (root / "run" / "secrets" / "secret_key").write_text(KEY)
        (root / "run" / "secrets" / "postgres_password").write_text(PASSWORD)
        subprocess.run(["chmod", "-R", "a+rX,a-w", str(root / "app"), str(root / "opt"), str(root / "run")], check=True)
        yield root


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    found: dict[str, Any] = compose()["services"]
    return found


@pytest.fixture(scope="module")
def engine(image: Path, services: dict[str, Any]) -> Iterator[Engine]:
    with ExitStack() as held:
        logs = image / "logs"
        logs.mkdir()
        port = held.enter_context(postgres(services["postgres"], PASSWORD))
        broker = held.enter_context(redis(services["redis"], logs))
        places = {"postgres:5432": f"127.0.0.1:{port}", "redis:6379": f"127.0.0.1:{broker}"}
        yield Engine(image, services, places, confined=can_confine())


def fetch(url: str, **headers: str) -> tuple[int, str, Any]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    context = ssl._create_unverified_context()

    class Stay(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_: Any) -> None:
            return None

    opener = urllib.request.build_opener(Stay, urllib.request.HTTPSHandler(context=context))
    try:
        with opener.open(urllib.request.Request(url, headers=named), timeout=20) as answer:
            return answer.status, answer.read().decode(), answer.headers
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.read().decode(), refused.headers
    except OSError:
        return 0, "", {}


def proxy(image: Path, ports: list[int], port: int, plain: int) -> "subprocess.Popen[bytes]":
    """Run Caddy by the configuration of the repository; only that it finds the web processes by DNS is replaced."""
    text = (ROOT / "docs" / "operations" / "Caddyfile").read_text()
    upstreams = " ".join(f"127.0.0.1:{one}" for one in ports)
    text, count = re.subn(r"dynamic a \{[^}]*\}", f"to {upstreams}", text)
    assert count == 1
    text = text.replace("{\n\tadmin off", f"{{\n\tadmin off\n\thttp_port {plain}\n\thttps_port {port}", 1)
    (image / "logs" / "Caddyfile").write_text(text)
    command = [str(TOOLS / "caddy"), "run", "--adapter", "caddyfile", "--config", str(image / "logs" / "Caddyfile")]
    homes = {"XDG_DATA_HOME": str(image / "logs"), "XDG_CONFIG_HOME": str(image / "logs"), "HOME": str(image / "logs")}
    homes |= {"PATH": os.environ["PATH"], "SITE_ADDRESS": "localhost"}
    with (image / "logs" / "caddy.log").open("wb") as log:
        return subprocess.Popen(command, env=homes, stdout=log, stderr=log)


def test_the_start_commands_run_as_an_ordinary_user_on_read_only_files_and_end_in_order(
    engine: Engine, image: Path, services: dict[str, Any]
) -> None:
    before = seen(image / "app") | seen(image / "opt")
    first = engine.start("migrate", "migrate")
    assert first.ended() == 0, first.output
    again = engine.start("migrate-again", "migrate")
    assert again.ended() == 0, again.output
    assert "No migrations to apply." in again.output

    ports = [free_port(), free_port()]
    webs = [engine.start(f"web-{port}", "web", port=port) for port in ports]
    worker, beat = engine.start("worker", "worker"), engine.start("beat", "beat")
    caddy = None
    try:
        for web, port in zip(webs, ports, strict=True):
            until(
                lambda p=port, w=web: w.process.poll() is not None or fetch(f"http://localhost:{p}/readyz")[0] == 200,
                web.name,
            )
            assert web.process.poll() is None, web.output
        _checks(engine, services, ports)
        _serves(engine, ports)
        beats = f"http://localhost:{ports[0]}/readyz"
        until(lambda: json.loads(fetch(beats)[1])["periodic_work"]["state"] == "running", "beat, broker and worker")
        tls, plain = free_port(), free_port()
        caddy = proxy(image, ports, tls, plain)
        _serves_through_the_proxy(tls, webs)
    finally:
        if caddy is not None:
            caddy.terminate()
            caddy.wait()
        codes = {one.name: one.stop() for one in [*webs, worker, beat]}
    assert set(codes.values()) == {0}, "\n".join(f"{one.name}: {one.output[-2000:]}" for one in [*webs, worker, beat])
    for one in [first, *webs, worker, beat]:
        assert KEY not in one.output
        assert PASSWORD not in one.output
        assert "Traceback" not in one.output, one.output
    assert seen(image / "app") | seen(image / "opt") == before
    kept = {folder.name: sorted(path.name for path in folder.iterdir()) for folder in (image / "state").iterdir()}
    # The ending is that of the database library that the interpreter has.
    assert [name.partition(".")[0] for name in kept.pop("beat")] == ["celerybeat-schedule"]
    assert not any(kept.values()), kept


def _await(web: Running, port: int) -> None:
    until(lambda: web.process.poll() is not None or fetch(f"http://localhost:{port}/readyz")[0] == 200, web.name)


def _checks(engine: Engine, services: dict[str, Any], ports: list[int]) -> None:
    """Run the health checks of the image and of the compose file, as the engine would."""
    own = last("HEALTHCHECK").words
    asked = services["web"]["healthcheck"]["test"][1:]
    of_worker = ["/bin/sh", "-c", services["worker"]["healthcheck"]["test"][1]]
    for name, service, command in (("image", "web", own), ("web", "web", asked), ("worker", "worker", of_worker)):
        # As an engine does: asked again until its start is over.
        until(lambda told=(f"check-{name}", service, command): _is_well(engine, *told, ports[0]), f"health of {name}")
    dead = engine.start("check-dead", "web", command=own, port=free_port())
    assert dead.ended() != 0


def _is_well(engine: Engine, name: str, service: str, command: list[str], port: int) -> bool:
    return engine.start(name, service, command=command, port=port).ended() == 0


def _serves(engine: Engine, ports: list[int]) -> None:
    made = engine.start("exec", "web", command=["python", "manage.py", "create_key", "router", "--scope", "pools:read"])
    assert made.ended() == 0, made.output
    secret = made.output.strip().splitlines()[-1]
    headers = {"Authorization": f"Bearer {secret}", "X_Forwarded_Proto": "https"}
    for port in ports:
        status, text, _ = fetch(f"http://localhost:{port}/api/v1/pools/auto/thrifty", **headers)
        assert (status, json.loads(text)["id"]) == (200, "auto/thrifty")
        assert fetch(f"http://localhost:{port}/login", X_Forwarded_Proto="https")[0] == 200
        assert fetch(f"http://localhost:{port}/login")[0] == 301, "without TLS it sends on to it"


def _serves_through_the_proxy(tls: int, webs: list[Running]) -> None:
    """Ask over TLS, whatever a client says of that by a header of its own; then one of two web processes ends."""
    site = f"https://localhost:{tls}"
    until(lambda: fetch(f"{site}/healthz")[0] == 200, "the proxy")
    assert fetch(f"{site}/login")[0] == 200
    assert fetch(f"{site}/login", X_Forwarded_Proto="http")[0] == 200
    assert webs[0].stop() == 0
    assert [fetch(f"{site}/healthz")[0] for _ in range(10)] == [200] * 10


def test_the_image_holds_no_tool_of_the_tests_and_no_pip(image: Path) -> None:
    installed = {path.name.partition("-")[0].lower() for path in (image / "opt").rglob("*.dist-info")}
    assert "django" in installed
    assert installed.isdisjoint({"pip", "setuptools", "pytest", "ruff", "mypy", "playwright"})
    assert not list((image / "app").rglob("tests"))
    assert sys.prefix != str(image / "opt" / "venv")
