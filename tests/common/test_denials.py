"""Every denial is logged once, without the secret, and a flood of them fills no disk."""

import io
import logging
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.contrib.auth.models import Group
from django.db import DatabaseError, connection
from django.test import Client

from omniroute_admin.common import denials
from omniroute_admin.common.blotting import Blot, Undenied
from omniroute_admin.common.denials import LINES_A_MINUTE, MOST_LINES, flush_denials
from omniroute_admin.common.history import Actor
from omniroute_admin.common.models import ApiKey
from omniroute_admin.common.services.key_rotation import rotate_key
from omniroute_admin.common.services.keys import create_key, revoke_key
from tests.factories import ConnectionFactory

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 8, 22, 12, tzinfo=UTC)
ADDRESS = "/api/v1/settings"
ACTOR = Actor(name="a test")


class Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@pytest.fixture
def lines() -> Iterator[list[str]]:
    """Return what is logged of denials, as it grows; the clock stands still."""
    kept = Kept()
    kept.addFilter(lambda record: lines.append(record.getMessage()) or record.levelno == logging.WARNING)  # type: ignore[func-returns-value]
    lines: list[str] = []
    logger = logging.getLogger("omniroute_admin.security")
    logger.addHandler(kept)
    with time_machine.travel(NOW, tick=False):
        yield lines
    logger.removeHandler(kept)


def make(*scopes: str, **given: Any) -> tuple[ApiKey, str]:
    values = {"expires_at": None, "actor": ACTOR, "reason": "", "now": NOW - timedelta(hours=1)} | given
    return create_key(name="router", scopes=scopes or ["pools:read"], **values)


def get(client: Client, header: str | None, address: str = ADDRESS) -> int:
    return client.get(address, headers={} if header is None else {"authorization": header}).status_code


def test_a_refused_call_of_each_kind_is_one_line_that_says_what_and_who(client: Client, lines: list[str]) -> None:
    live, secret = make()
    dead, revoked = make()
    _, expired = make(expires_at=NOW)
    old, replaced = make()
    _, limited = make("settings:read", calls_per_minute=1)
    revoke_key(key=dead, actor=ACTOR, reason="", now=NOW)
    rotate_key(key_id=old.pk, overlap=timedelta(0), anyway=False, actor=ACTOR, reason="", now=NOW)
    assert get(client, f"Bearer {limited}") == 200
    stranger = "orl_" + "aB3_-" * 8 + "xyz"
    for header, status, code, who in (
        (None, 401, "unauthenticated", "nobody signed in"),
        ("Basic b3JsXw==", 401, "unauthenticated", "no key of ours"),
        ("Bearer s3cret-of-another-product", 401, "unauthenticated", "no key of ours"),
        (f"Bearer {secret}x", 401, "unauthenticated", "no key of ours"),
        (f"Bearer {stranger}", 401, "unauthenticated", "unknown key orl_aB3_..."),
        (f"Bearer {revoked}", 401, "unauthenticated", f"key router ({revoked[:12]}), revoked"),
        (f"Bearer {expired}", 401, "unauthenticated", f"key router ({expired[:12]}), expired"),
        (f"Bearer {replaced}", 401, "unauthenticated", f"key router ({replaced[:12]}), replaced"),
        (f"Bearer {secret}", 403, "scope_lacking", f"key router ({live.prefix})"),
        (f"Bearer {limited}", 429, "rate_limited", f"key router ({limited[:12]})"),
    ):
        lines.clear()
        assert get(client, header, f"{ADDRESS}?key={secret}&x=1") == status
        assert lines == [f"denied {code}: {who}, GET {ADDRESS} from 127.0.0.1"]


def test_refused_acts_of_pages_are_one_line_each(django_user_model: Any, lines: list[str]) -> None:
    mira = django_user_model.objects.create_user("mira")
    mira.groups.add(Group.objects.get(name="viewer"))
    client, stranger, strict = Client(), Client(), Client(enforce_csrf_checks=True)
    client.force_login(mira)
    strict.force_login(mira)
    ConnectionFactory(connection_id="c1", provider="claude")
    for act, code, who in (
        (lambda: client.get("/keys"), "role_needed", "user mira"),
        (lambda: client.post("/keys/new", {}), "role_needed", "user mira"),
        (lambda: client.post("/connections/claude/c1/pause", {}), "role_needed", "user mira"),
        (lambda: client.get("/admin/auth/user/"), "role_needed", "user mira"),
        (lambda: client.delete("/api/v1/connections/c1"), "scope_lacking", "user mira"),
        (lambda: strict.post("/tuning", {}), "csrf_failed", "user mira"),
        (lambda: strict.patch("/api/v1/settings", "{}", "application/json"), "csrf_failed", "user mira"),
        (lambda: stranger.post("/keys/new", {}), "signed_out", "nobody signed in"),
        (lambda: stranger.post("/admin/auth/user/add/", {}), "signed_out", "nobody signed in"),
        (lambda: stranger.get("/live/ladder"), "signed_out", "nobody signed in"),
    ):
        lines.clear()
        act()
        assert len(lines) == 1, (code, lines)
        assert lines[0].startswith(f"denied {code}: {who}, "), lines


def test_giving_more_than_one_has_is_a_denial_too(client: Client, django_user_model: Any, lines: list[str]) -> None:
    boss = django_user_model.objects.create_user("boss")
    boss.groups.add(Group.objects.get(name="administrator"))
    mira = django_user_model.objects.create_superuser("mira")
    client.force_login(boss)
    client.post(f"/admin/auth/user/{mira.pk}/change/", {"username": "mira", "change_reason": "x"})
    assert len(lines) == 1
    assert "user boss, POST /admin/auth/user/" in lines[0]


def test_what_is_allowed_or_not_there_is_no_denial(client: Client, lines: list[str]) -> None:
    _, secret = make("settings:read")
    for address in (ADDRESS, "/nothing", "/api/v1/nothing", "/healthz", "/login", "/"):
        get(client, f"Bearer {secret}", address)
    assert lines == []
    client.post("/login", {"username": "x", "password": "y"})
    assert lines == ["sign-in failed: account of no such name, from 127.0.0.1"]


@pytest.mark.parametrize("place", ["path", "query", "both"])
def test_a_key_in_an_address_is_in_no_line(client: Client, lines: list[str], place: str) -> None:
    _, secret = make()
    path = f"/api/v1/connections/{secret}/explain" if place != "query" else ADDRESS
    query = f"?reason={secret}" if place != "path" else ""
    assert get(client, f"Bearer {secret}", path + query) == 403
    assert len(lines) == 1
    assert secret[:13] not in lines[0]
    assert "reason" not in lines[0]


def test_a_path_cannot_forge_a_line_nor_be_endless(client: Client, lines: list[str]) -> None:
    get(client, None, "/api/v1/connections/a%0Adenied%20x:%20user%20root%1b[31m/explain")
    get(client, None, f"/api/v1/connections/{'a' * 3000}/explain")
    assert "\n" not in lines[0] + lines[1]
    assert "\x1b" not in lines[0]
    assert len(lines[1]) < 400


def test_a_flood_is_so_many_lines_and_then_one(client: Client, lines: list[str]) -> None:
    for _ in range(LINES_A_MINUTE + 512):
        get(client, None)
    assert len(lines) == LINES_A_MINUTE
    with time_machine.travel(NOW + timedelta(minutes=1), tick=False):
        get(client, None)
    assert lines[LINES_A_MINUTE] == "denied unauthenticated: and 512 more from 127.0.0.1"
    assert len(lines) == LINES_A_MINUTE + 2


def test_the_count_is_told_although_nothing_more_comes(client: Client, lines: list[str]) -> None:
    for _ in range(LINES_A_MINUTE + 3):
        get(client, None)
    waiting = [one for one in threading.enumerate() if isinstance(one, threading.Timer) and one.daemon]
    assert any(one.function is flush_denials for one in waiting)
    flush_denials()
    assert lines[-1] == "denied unauthenticated: and 3 more from 127.0.0.1"
    flush_denials()
    assert len(lines) == LINES_A_MINUTE + 1
    for one in waiting:
        one.cancel()


def test_many_addresses_fill_no_disk_either(lines: list[str]) -> None:
    _, secret = make()
    for number in range(MOST_LINES + 70):
        Client(REMOTE_ADDR=f"10.1.{number // 250}.{number % 250}").get(
            ADDRESS, headers={"authorization": f"Bearer {secret}"}
        )
    assert len(lines) == MOST_LINES
    flush_denials()
    assert len(lines) <= MOST_LINES + LINES_A_MINUTE + 1
    told = sum(int(line.split(" and ")[1].split()[0]) for line in lines[MOST_LINES:])
    assert told == 70


def test_one_noisy_address_silences_no_other(client: Client, lines: list[str]) -> None:
    for _ in range(LINES_A_MINUTE * 3):
        get(client, None)
    Client(REMOTE_ADDR="10.9.9.9").get(ADDRESS)
    assert lines[-1].endswith("from 10.9.9.9")


@pytest.mark.parametrize(
    ("trusted", "named", "told"),
    [
        (False, "10.0.0.9", "127.0.0.1"),
        (True, "1.2.3.4, 10.0.0.9", "10.0.0.9"),
        (True, "1.2.3.4, 2001:db8::1", "2001:db8::1"),
        (True, "nonsense\n", "127.0.0.1"),
        (True, "", "127.0.0.1"),
    ],
)
def test_the_address_is_the_proxys_word_only_where_it_is_trusted(
    client: Client, lines: list[str], settings: Any, trusted: bool, named: str, told: str
) -> None:
    settings.TRUST_PROXY = trusted
    client.get(ADDRESS, headers={"x-forwarded-for": named})
    assert lines[0].endswith(f" from {told}")


def test_a_database_that_fails_in_the_middle_of_it_breaks_no_answer(client: Client, lines: list[str]) -> None:
    def refuse(execute: Any, sql: str, *rest: Any) -> Any:
        if "common_apikey" in sql and "revoked_at IS NULL" not in sql.replace('"', "").replace("common_apikey.", ""):
            raise DatabaseError("gone")
        return execute(sql, *rest)

    with connection.execute_wrapper(refuse):
        assert get(client, "Bearer orl_" + "a" * 43) == 401
    assert "somebody who cannot be looked up now" in lines[0]


def test_the_line_has_its_parts_for_logs_that_are_read_by_machines(client: Client, lines: list[str]) -> None:
    kept = Kept()
    logging.getLogger("omniroute_admin.security").addHandler(kept)
    get(client, None)
    logging.getLogger("omniroute_admin.security").removeHandler(kept)
    (record,) = kept.records
    assert (record.name, record.levelname) == ("omniroute_admin.security", "WARNING")
    assert record.denial == {  # type: ignore[attr-defined]
        "code": "unauthenticated",
        "who": "nobody signed in",
        "method": "GET",
        "path": ADDRESS,
        "address": "127.0.0.1",
    }


def test_djangos_own_lines_of_denials_are_left_out_and_its_others_stay(client: Client) -> None:
    kept = Kept()
    kept.addFilter(Blot())
    logging.getLogger().addHandler(kept)
    _, secret = make("settings:read")
    try:
        get(client, None)
        get(client, f"Bearer {secret}", f"/api/v1/nothing/{secret}")
    finally:
        logging.getLogger().removeHandler(kept)
    told = [(one.name, one.getMessage()) for one in kept.records]
    assert [name for name, _ in told] == ["omniroute_admin.security", "django.request"]
    assert told[1][1] == f"Not Found: /api/v1/nothing/{secret[:8]}..."
    assert not [one for one in logging.getLogger("django.request").filters if not isinstance(one, Undenied)]


def test_a_key_in_a_record_is_blotted_out_wherever_it_stands() -> None:
    secret = "orl_" + "k" * 43
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.addFilter(Blot())
    logger = logging.getLogger("tests.blot")
    logger.propagate = False
    logger.addHandler(handler)
    try:
        int(f"not a number: {secret}")
    except ValueError:
        logger.exception("it was %s, and %s", secret, {"key": secret})
    logger.warning("100 % of nothing")
    logger.removeHandler(handler)
    assert secret[:9] not in out.getvalue()
    assert out.getvalue().count("orl_kkkk...") == 3
    assert "Traceback" in out.getvalue()
    assert "100 % of nothing" in out.getvalue()


def test_the_table_of_what_was_counted_does_not_grow_without_end(lines: list[str], monkeypatch: Any) -> None:
    monkeypatch.setattr(denials, "_MOST_COUNTED", 50)
    for number in range(200):
        Client(REMOTE_ADDR=f"10.2.0.{number}").get(ADDRESS)
    assert len(denials._minute.seen) <= 51
