"""A session of use, after which no secret stands in a log, a page, an export, a table, a traceback or a command line.

The one place where a key may be read is the page, or the output of the command, that shows it once.
"""

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection

from omniroute_admin.common.models import ApiKey
from omniroute_admin.common.services.keys import PREFIX_LENGTH
from omniroute_admin.programs import programs_to_run
from tests.factories import ConnectionFactory
from tests.omniroute_admin.using import FORM, Person
from tests.processes import free_port, manage, running, until

pytestmark = pytest.mark.django_db(transaction=True)

BOSS, HERS, ANEW = "boss-opens-the-cellar-1", "mira-sings-loudly-22", "mira-sings-softly-33"
WRONG, NAME_FIELD = "not-the-right-one-44", "typed-where-the-name-goes-55"
DATABASE_PASSWORD = "db-Pass-word-66-only-here"
SIGNING = "signing-key-that-nobody-may-see-" + "x7Q" * 10
FOREIGN = "orl_" + "Wr0ng-_" * 6 + "K"
A_KEY = re.compile(r"orl_[A-Za-z0-9_-]{5,}")
MOST_PAGES = 250


class Running(NamedTuple):
    """The processes of an installation, and where they log."""

    port: int
    folder: Path
    variables: dict[str, str]

    def logs(self) -> dict[str, str]:
        return {file.name: file.read_text(errors="replace") for file in self.folder.glob("*.log")}


def with_password(url: str) -> str:
    """Return a database address that names a password; the tests' PostgreSQL asks for none and takes any."""
    user, _, rest = url.partition("@")
    return f"{user}:{DATABASE_PASSWORD}@{rest}" if url.startswith("postgres") and user.count(":") == 1 else url


@pytest.fixture(params=["false", "true"], ids=["served", "debug"])
def installation(request: pytest.FixtureRequest, tmp_path: Path, database_url: str) -> Iterator[Running]:
    """Run web, worker and beat, all of them telling as much as they can."""
    variables = {
        "VAR_DIR": str(tmp_path / "var"),
        "DATABASE_URL": with_password(database_url),
        "SECRET_KEY": SIGNING,
        "LOG_LEVEL": "DEBUG",
        "DEBUG": request.param,
        "HEARTBEAT_SECONDS": "1",
    }
    assert manage("collectstatic", "--noinput", "--verbosity", "0", **variables).returncode == 0
    port = free_port()
    with ExitStack() as stack:
        for program in programs_to_run(host="127.0.0.1", port=port, workers=1):
            command = ["DEBUG" if part == "WARNING" else part for part in program.command]
            stack.enter_context(running(command, tmp_path / f"{program.name}.log", **variables))
        until(lambda: _answers(port), "the web server")
        yield Running(port, tmp_path, variables)


def _answers(port: int) -> bool:
    try:
        return Person(port).open("/healthz").status == 200
    except OSError:
        return False


@pytest.fixture
def boss(installation: Running) -> Person:
    """Return an administrator who is signed in."""
    who = {"DJANGO_SUPERUSER_USERNAME": "boss", "DJANGO_SUPERUSER_EMAIL": "", "DJANGO_SUPERUSER_PASSWORD": BOSS}
    assert manage("createsuperuser", "--noinput", **installation.variables, **who).returncode == 0
    ConnectionFactory(connection_id="c1", provider="claude")
    person = Person(installation.port)
    assert person.sign_in("boss", BOSS).status == 302
    return person


class Used(NamedTuple):
    """What a session of use left behind: its secrets, and what was answered, but for pages that show a key once."""

    secrets: set[str]
    answers: list[tuple[str, str]]
    shown: dict[str, str]


def use(boss: Person, installation: Running) -> Used:
    """Do everything that has to do with a secret, rightly and wrongly."""
    answers: list[tuple[str, str]] = []

    def note(what: str, page: Any) -> Any:
        answers.append((what, page.text))
        return page

    accounts(boss, installation, note)
    shown = keys(boss, installation, note)
    calls(boss, shown["page"], note)
    forms(boss, shown["page"], note)
    passwords = {BOSS, HERS, ANEW, WRONG, NAME_FIELD}
    told = boss.told | {value for value in boss.cookies.values() if len(value) > 8}
    return Used(passwords | set(shown.values()) | told | {SIGNING, DATABASE_PASSWORD, FOREIGN}, answers, shown)


def accounts(boss: Person, installation: Running, note: Any) -> None:
    role = Group.objects.get(name="viewer").pk
    new = {"username": "mira", "password1": HERS, "password2": HERS, "groups": [role], "change_reason": "new"}
    assert note("new account", boss.send("/admin/auth/user/add/", **new)).status == 302
    mira = User.objects.get(username="mira")
    address = f"/admin/auth/user/{mira.pk}/password/"
    given = {"password1": ANEW, "password2": HERS, "change_reason": "forgotten"}
    assert note("a password that does not match", boss.send(address, **given)).status == 200
    assert note("a new password", boss.send(address, **(given | {"password2": ANEW}))).status == 302
    other = Person(installation.port)
    note("wrong password", other.sign_in("mira", WRONG))
    note("a password where the name goes", other.sign_in("mira", NAME_FIELD))
    assert other.sign_in("mira", ANEW).status == 302
    note("what a viewer may not", other.open("/keys"))
    boss.told |= other.told


def keys(boss: Person, installation: Running, note: Any) -> dict[str, str]:
    """Make and rotate keys by pages and commands; return what each showed."""
    scopes = ["pools:read", "settings:read", "connections:write", "telemetry:write"]
    form = {"name": "router", "scopes": scopes, "calls_per_minute": "5000", "lasts": "90", "reason": "new"}
    made = key_in(boss.send("/keys/new", **form).text)
    row = ApiKey.objects.get(prefix=made[:PREFIX_LENGTH])
    rotated = key_in(boss.send(f"/keys/{row.pk}/rotate", overlap="24", reason="yearly").text)
    edited = boss.send(f"/keys/{row.pk}/edit", name="router", scopes=scopes, lasts="keep", reason="again")
    assert note("edited", edited).status == 302
    printed = manage("create_key", "cellar", "--scope", "pools:read", **installation.variables)
    again = manage("rotate_key", printed.stdout.strip()[:PREFIX_LENGTH], **installation.variables)
    assert (printed.returncode, again.returncode) == (0, 0), printed.stderr + again.stderr
    note("commands", type(edited)(0, "", printed.stderr + again.stderr))
    wrong = manage("rotate_key", made, **installation.variables)
    assert wrong.returncode != 0
    note("a key on a command line", type(edited)(0, "", wrong.stderr + wrong.stdout))
    return {"page": made, "rotated": rotated, "command": printed.stdout.strip(), "again": again.stdout.strip()}


def calls(boss: Person, key: str, note: Any) -> None:
    """Call the API rightly, and with a key in every wrong place."""
    router, keyed = Person(boss._port), {"Authorization": f"Bearer {key}"}
    assert note("used", router.open("/api/v1/pools/auto/thrifty", **keyed)).status == 200
    for header in (f"Basic {key}", f"Token {key}", key, f"Bearer {key}{key}", f"Bearer {key}x", f"Bearer {FOREIGN}"):
        assert note("a wrong header", router.open("/api/v1/pools", Authorization=header)).status == 401
    note("a scope that lacks", router.open("/api/v1/catalog/prices", **keyed))
    for address in (
        f"/api/v1/pools?key={key}", f"/api/v1/pools/{key}", f"/api/v1/connections/{key}/explain", f"/{key}",
        f"/keys/{key}", f"/v1/models?api_key={key}", f"/connections/claude/{key}",
    ):  # fmt: skip
        note("in an address", router.open(address))
        note("in an address, keyed", router.open(address, **keyed))
    note("in an agent", router.open("/api/v1/pools", User_Agent=key, Cookie=f"sessionid={key}"))
    note("a reason in a query", router.ask("DELETE", f"/api/v1/connections/c1/cooldown?reason={key}", **keyed))
    item = {"connection_id": key, "window": "5h", "used_percent": 4, "observed_at": "2026-08-22T11:59:30Z"}
    for method, path, body in (
        ("POST", "connections", {"connection_id": "c2", "provider": "claude", "label": key}),
        ("POST", "connections", {"connection_id": key, "provider": "claude"}),
        ("PATCH", "connections/c1", {"label": "x", "reason": f"as told by {key}"}),
        ("POST", "telemetry/readings", {"readings": [item]}),
        ("PATCH", "connections/c1", {key: "x"}),
    ):
        told = {**keyed, "Content_Type": "application/json"}
        page = note("in a body", router.ask(method, f"/api/v1/{path}", json.dumps(body).encode(), **told))
        assert (page.status, json.loads(page.text)["code"]) == (400, "key_in_body"), path
    # Nothing is kept of what a pool is asked for: its answer may repeat it to whoever asked, and nobody else.
    pool = json.dumps({"candidates": [{"provider": "x", "model": key, "connection_id": key}]}).encode()
    assert router.ask("POST", "/api/v1/pools/auto/thrifty", pool, Content_Type="application/json", **keyed).status < 500


def forms(boss: Person, key: str, note: Any) -> None:
    """Send a key by forms and in files: each is refused."""
    row = ApiKey.objects.get(prefix=key[:PREFIX_LENGTH])
    lines = f"provider,billing,overage,reason\nclaude,subscription,hard-stop,{key}\n"
    for page in (
        boss.send(f"/keys/{row.pk}/rotate", overlap="1", reason=f"leaked: {key}"),
        boss.send("/keys/new", name=key, scopes=["pools:read"], lasts="90", reason="x"),
        boss.send("/connections/claude/c1/pause", opened="/connections/claude/c1", reason=key),
        boss.send("/admin/common/apikey/add/", name="x", scopes=["pools:read"], change_reason=key),
        Person(boss._port).sign_in(key, key),
        boss.upload("/catalogue/files", file=lines, name="billing.csv", act="check", reason="x"),
        boss.upload("/catalogue/files", file="provider\n", name=f"{key}.csv", act="check", reason="x"),
    ):
        assert note("by a form", page).status == 400
        assert "The form holds a key" in page.text
    note("searched for", boss.open(f"/audit?kind=key&what={key[:PREFIX_LENGTH]}"))
    strict = Person(boss._port)
    strict.cookies = dict(boss.cookies)
    refused = strict.ask("POST", "/keys/new", f"reason={key}".encode(), Content_Type=FORM)
    assert note("without the token", refused).status == 403


def key_in(text: str) -> str:
    found = re.search(r'value="(orl_[\w-]{43})"', text)
    assert found is not None, text
    return found[1]


def dump() -> Iterator[tuple[str, str]]:
    """Yield each table as text, every column of it."""
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
            yield f"table {table}", "\n".join(str(row) for row in cursor.fetchall())


def assert_holds_none(where: str, text: str, secrets: set[str]) -> None:
    held = {one for one in secrets if one in text}
    assert not held, f"{where} holds {held}"
    parts = {one for one in A_KEY.findall(text) if len(one) > PREFIX_LENGTH}
    assert not parts, f"{where} holds most of a key: {parts}"


def command_lines() -> str:
    return subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout


def break_database(boss: Person, key: str) -> list[tuple[str, str]]:
    """Take a table away and use what needs it: what fails then tells as much as it can."""
    answers = []
    for table, acts in (
        ("common_apikey", [
            lambda: Person(boss._port).open(f"/api/v1/pools?x={key}", Authorization=f"Bearer {FOREIGN}"),
            lambda: boss.open("/keys", Authorization=f"Bearer {key}", X_Password=BOSS),
            lambda: boss.send("/keys/new", name="y", scopes=["pools:read"], lasts="90", reason="x"),
        ]),
        ("common_userversion", [
            lambda: boss.send(
                "/admin/auth/user/add/", username="omar", password1=HERS, password2=HERS, change_reason="new"
            ),
        ]),
        ("auth_user", [lambda: Person(boss._port).sign_in("mira", ANEW), lambda: boss.open("/")]),
    ):  # fmt: skip
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER TABLE {table} RENAME TO gone_{table}")
        try:
            pages = [act() for act in acts]
        finally:
            with connection.cursor() as cursor:
                cursor.execute(f"ALTER TABLE gone_{table} RENAME TO {table}")
        assert {page.status for page in pages} <= {500, 503}, (table, [page.status for page in pages])
        answers += [(f"without {table}", page.text) for page in pages]
    return answers


def test_no_secret_of_a_session_of_use_is_to_be_found_anywhere(boss: Person, installation: Running) -> None:
    used = use(boss, installation)
    assert len(used.secrets) >= 14
    lines = command_lines()
    broken = break_database(boss, used.shown["page"])
    secrets = used.secrets | boss.told

    crawled = list(boss.crawl(MOST_PAGES))
    opened = {address for address, page in crawled if page.status == 200}
    assert {"/keys", "/audit", "/audit.csv", "/audit.json", "/admin/auth/user/", "/admin/common/apikey/"} <= opened
    metrics = Person(installation.port).open("/metrics", Authorization=f"Bearer {used.shown['page']}")
    asked = [("/metrics", metrics), ("/api/schema/", boss.open("/api/schema/"))]

    for where, text in (*used.answers, *broken, ("the process table", lines)):
        assert_holds_none(where, text, secrets)
    for address, page in (*crawled, *asked):
        assert_holds_none(f"the page {address}", page.text, secrets)
    for where, text in dump():
        assert_holds_none(where, text, secrets)
    until(lambda: "heartbeat" in installation.logs()["worker.log"], "the worker's own lines")
    logs = installation.logs()
    assert "denied unauthenticated" in logs["web.log"]
    assert "Traceback" in logs["web.log"] or "out of reach" in logs["web.log"]
    for name, text in logs.items():
        assert_holds_none(f"the log {name}", text, secrets)
    assert all(shown[:PREFIX_LENGTH] in dict(crawled)["/keys"].text for shown in used.shown.values())
