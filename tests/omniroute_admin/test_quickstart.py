"""Two commands to a running product: `quickstart` prepares, prints its two secrets once, serves, and ends whole."""

import io
import json
import re
import signal
import socket
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import authenticate, get_user_model
from django.core.management import call_command

from billing_catalog.models import BillingEntry, ModelPrice
from omniroute_admin.common.models import ApiKey
from omniroute_admin.management.commands.quickstart import ROUTER_SCOPES, base_url
from tests.processes import free_port, manage, running, until
from tests.shared import ROOT


def said(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    assert found, f"{pattern} is not in:\n{text}"
    return found.group(1)


def prepare(*options: str) -> str:
    out = io.StringIO()
    call_command("quickstart", "--no-serve", *options, stdout=out)
    return out.getvalue()


@pytest.mark.django_db
def test_the_first_run_loads_facts_and_prices_and_makes_an_operator_and_a_router_key() -> None:
    text = prepare()
    operator = authenticate(username="operator", password=said(r"password \(shown once\): (\S+)", text))
    assert operator is not None
    assert operator.is_superuser
    key = ApiKey.objects.get()
    assert (key.name, key.scopes, key.made_by) == ("router", ROUTER_SCOPES, "quickstart")
    assert said(r"Router key \(shown once\): (\S+)", text).startswith(key.prefix)
    assert BillingEntry.objects.exists()
    assert ModelPrice.objects.exists()


@pytest.mark.django_db
def test_a_second_run_keeps_everything_and_prints_no_secret() -> None:
    prepare()
    kept = [*get_user_model().objects.values_list("pk", "password"), *ApiKey.objects.values_list("pk", "secret_hash")]
    facts = BillingEntry.objects.count(), ModelPrice.objects.count()
    text = prepare()
    assert "shown once" not in text
    assert "http://" not in text
    assert "Prepared. Without --no-serve this command serves it." in text
    assert kept == [
        *get_user_model().objects.values_list("pk", "password"),
        *ApiKey.objects.values_list("pk", "secret_hash"),
    ]
    assert facts == (BillingEntry.objects.count(), ModelPrice.objects.count())


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "http://127.0.0.1:8000"),
        ("0.0.0.0", "http://127.0.0.1:8000"),
        ("::", "http://[::1]:8000"),
        ("::1", "http://[::1]:8000"),
        ("ladder.example", "http://ladder.example:8000"),
    ],
)
def test_the_printed_address_can_be_opened(host: str, address: str) -> None:
    assert base_url(host=host, port=8000) == address


def test_a_taken_port_is_named_before_anything_is_changed(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = manage("quickstart", "--port", str(port), VAR_DIR=str(tmp_path), DATABASE_URL="")
    assert done.returncode == 1
    assert f"Port {port} on 127.0.0.1 is in use: end what listens there, or choose another with --port." in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "omniroute_admin.sqlite3").exists()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--port", "65536"], "a port is a number from 1 to 65535"),
        (["--port", "0"], "a port is a number from 1 to 65535"),
        (["--workers", "0"], "--workers 0: give a number from 1 to 64."),
        (["--workers", "65"], "--workers 65: give a number from 1 to 64."),
        (["--host", "192.0.2.1", "--port", "28000"], "Cannot serve on 192.0.2.1, port 28000"),
    ],
)
def test_an_address_that_cannot_be_served_is_refused(options: list[str], sentence: str) -> None:
    done = manage("quickstart", *options)
    assert done.returncode == 1
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_a_database_that_does_not_answer_is_one_sentence() -> None:
    url = f"postgres://u:hidden@127.0.0.1:{free_port()}/none"
    done = manage("quickstart", "--no-serve", DATABASE_URL=url)
    assert done.returncode == 1
    assert "The database cannot be used" in done.stderr
    assert "Traceback" not in done.stderr
    assert "hidden" not in done.stderr


def test_a_folder_for_static_files_that_cannot_be_written_is_named_before_anything_is_changed(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = manage(
        "quickstart", "--no-serve", VAR_DIR=str(tmp_path / "var"), DATABASE_URL="", STATIC_ROOT=str(tmp_path / "file/x")
    )
    assert done.returncode == 1
    assert f"STATIC_ROOT: the folder {tmp_path}/file/x cannot be written" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "var" / "omniroute_admin.sqlite3").exists()


def test_the_sqlite_file_of_a_first_run_is_its_owners_alone(tmp_path: Path) -> None:
    done = manage("quickstart", "--no-serve", VAR_DIR=str(tmp_path), DATABASE_URL="")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "omniroute_admin.sqlite3").stat().st_mode & 0o777 == 0o600


def fetch(url: str, key: str = "") -> Any:
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {key}"} if key else {})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.read().decode()
    except OSError:
        return None


def of_session(head: int) -> list[int]:
    """Return the processes of a session: what a supervised child started, and what that started."""
    members = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, session = stat.read_text().rpartition(")")[2].split()[:4]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(session) == head and state != "Z":
            members.append(int(stat.parent.name))
    return members


def test_one_command_serves_pages_api_and_schedule_and_ctrl_c_ends_all(tmp_path: Path, database_url: str) -> None:
    port = free_port()
    site, log = f"http://127.0.0.1:{port}", tmp_path / "log"
    command = [sys.executable, str(ROOT / "manage.py"), "quickstart", "--port", str(port), "--workers", "1"]
    with running(command, log, DATABASE_URL=database_url, VAR_DIR=str(tmp_path / "var"), HEARTBEAT_SECONDS="1") as main:
        until(lambda: main.poll() is not None or fetch(f"{site}/healthz"), "the web server")
        assert main.poll() is None, log.read_text()
        until(lambda: json.loads(fetch(f"{site}/readyz"))["periodic_work"]["last_beat_at"], "the schedule")
        key = said(r"Router key \(shown once\): (\S+)", log.read_text())
        assert json.loads(fetch(f"{site}/api/v1/pools/auto/thrifty", key))["id"] == "auto/thrifty"
        assert fetch(f"{site}/api/v1/pools/auto/thrifty") is None
        assert "csrfmiddlewaretoken" in fetch(f"{site}/admin/login/")
        heads = [int(pid) for pid in re.findall(r"started \(process (\d+)\)", log.read_text())]
        assert len(heads) == 3
        assert all(of_session(head) for head in heads)
        main.send_signal(signal.SIGINT)
        assert main.wait() == 0
    assert [of_session(head) for head in heads] == [[], [], []]
    assert fetch(f"{site}/healthz") is None
