"""SPEC 4: whatever is sent, every call answers as the OpenAPI document says, and none fails.

The fuzzer runs against a real server: each call alone (every boundary of its schema, then chance), and calls in a row
along the document's links. `FUZZ_EXAMPLES` and `FUZZ_SEED` in the environment make a longer run, or another one.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import call_command

from ladder.services.demo import start_demo
from omniroute_admin.bench.client import Client, request
from omniroute_admin.common.clock import now
from omniroute_admin.programs import programs_to_run
from tests.processes import environment, free_port, manage, running, until
from tests.router import make_router
from tests.shared import ROOT

pytestmark = pytest.mark.slow
CONFIG = Path(__file__).with_name("schemathesis.toml")
EXAMPLES = os.environ.get("FUZZ_EXAMPLES", "5")
SEED = os.environ.get("FUZZ_SEED", "20261130")
ALWAYS_AT_LEAST = 4_000
"""Cases of a run: the boundaries alone are as many."""


@pytest.fixture
def key(database_url: str) -> str:
    """Store what calls can be about, and return a key with every scope."""
    call_command("load_facts", verbosity=0)
    start_demo(now=now())
    return make_router().headers["Authorization"]


@pytest.fixture
def port(database_url: str, tmp_path: Path) -> Iterator[int]:
    port = free_port()
    web = programs_to_run(host="127.0.0.1", port=port, workers=1)[0]
    own = {"VAR_DIR": str(tmp_path), "DATABASE_URL": database_url}
    assert manage("collectstatic", "--noinput", "--verbosity", "0", **own).returncode == 0
    with running(web.command, tmp_path / "web.log", **own):
        until(lambda: is_ready(port), "the server")
        yield port


def is_ready(port: int) -> bool:
    try:
        with Client(port=port) as client:
            return client.send(request("GET", "/readyz", headers={})).status == 200
    except OSError:
        return False


def failures_in(log: Path) -> str:
    """Return what the server wrote from its first failure on."""
    text = log.read_text()
    return text[max(0, text.find("Traceback") - 200) :][:10_000] if "Traceback" in text else ""


def test_every_call_answers_as_described_whatever_is_sent(key: str, port: int, tmp_path: Path) -> None:
    fuzz = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(CONFIG), "run"]
    how = ["--max-examples", EXAMPLES, "--seed", SEED, "--continue-on-failure", "--no-color", "--warnings", "off"]
    # What hangs is a failure.
    done = subprocess.run(
        [*fuzz, f"http://127.0.0.1:{port}/api/schema/", "-H", f"Authorization: {key}", *how, "--request-timeout", "60"],
        env=environment(PYTHONPATH=str(ROOT)),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    told = f"{done.stdout[-20_000:]}\n{done.stderr[-5_000:]}\n{failures_in(tmp_path / 'web.log')}"
    assert done.returncode == 0, told
    cases = re.search(r"(\d+) generated", done.stdout)
    assert cases, told
    assert int(cases[1]) >= ALWAYS_AT_LEAST, told
    assert failures_in(tmp_path / "web.log") == ""
    print(f"\n{cases[1]} cases")
