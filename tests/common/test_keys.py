"""SPEC 4: keys are shown once, stored hashed, expire, are revoked, and carry scopes."""

import hashlib
import io
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection
from django.test import Client
from django.urls import path
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from omniroute_admin.common.authentication import caller
from omniroute_admin.common.errors import BadRequest
from omniroute_admin.common.history import Actor
from omniroute_admin.common.models import ApiKey
from omniroute_admin.common.scopes import SCOPES
from omniroute_admin.common.selectors.keys import live_key
from omniroute_admin.common.selectors.revision import current_revision
from omniroute_admin.common.services import key_use
from omniroute_admin.common.services.keys import create_key, revoke_key
from omniroute_admin.common.services.revision import deciding_write

NOW = datetime(2026, 8, 22, 12, tzinfo=UTC)
ACTOR = Actor(name="a test")


class Guarded(APIView):
    required_scopes = {"GET": "pools:read", "POST": "connections:write"}

    def get(self, request: Request) -> Response:
        who = caller(request)
        return Response({"actor": who.actor.name, "user": who.actor.user_id, "scopes": sorted(who.scopes)})

    post = get


class Undeclared(APIView):
    required_scopes = {"GET": "pools:read"}

    def delete(self, request: Request) -> Response:
        return Response()


urlpatterns = [path("api/v1/guarded", Guarded.as_view()), path("api/v1/undeclared", Undeclared.as_view())]
pytestmark = [pytest.mark.urls(__name__), pytest.mark.django_db]
ADDRESS = "/api/v1/guarded"


def make(*scopes: str, expires_at: datetime | None = None, now: datetime = NOW) -> tuple[ApiKey, str]:
    return create_key(
        name="router", scopes=scopes or ("pools:read",), expires_at=expires_at, actor=ACTOR, reason="why", now=now
    )


def bearer(secret: str) -> dict[str, str]:
    return {"authorization": f"Bearer {secret}"}


def assert_refused(response: Any) -> None:
    assert (response.status_code, response["WWW-Authenticate"]) == (401, "Bearer")
    assert response.json()["code"] == "unauthenticated"
    assert response["Content-Type"] == "application/problem+json"


def test_a_key_is_kept_as_a_hash_and_shown_once() -> None:
    key, secret = make("pools:read", "metrics:read")
    assert re.fullmatch(r"orl_[\w-]{43}", secret)
    row = ApiKey.objects.get()
    assert row.secret_hash == hashlib.sha256(secret.encode()).hexdigest()
    assert (row.prefix, row.scopes, row.made_by) == (secret[:12], ["pools:read", "metrics:read"], "a test")
    written = [getattr(row, f.attname) for f in ApiKey._meta.fields] + list(ApiKey.history.values_list())
    assert secret not in repr([row, key, written])
    history = ApiKey.history.get()
    assert (history.history_actor, history.history_change_reason, history.history_date) == ("a test", "why", NOW)
    assert not hasattr(history, "secret_hash")


def test_every_problem_of_a_new_key_is_named() -> None:
    with pytest.raises(BadRequest) as caught:
        create_key(name=" ", scopes=["all"], expires_at=NOW, actor=ACTOR, reason="", now=NOW)
    assert [error.pointer for error in caught.value.errors] == ["/name", "/scopes", "/expires_at"]
    with pytest.raises(BadRequest) as caught:
        create_key(name="x" * 101, scopes=[], expires_at=None, actor=ACTOR, reason="", now=NOW)
    assert [error.pointer for error in caught.value.errors] == ["/name", "/scopes"]
    assert not ApiKey.objects.exists()


def test_a_long_reason_is_cut_to_what_the_history_keeps() -> None:
    create_key(name="r", scopes=["pools:read"], expires_at=None, actor=ACTOR, reason="x" * 10_001, now=NOW)
    assert ApiKey.history.get().history_change_reason == "x" * 10_000


def test_making_and_revoking_move_the_revision_and_revoking_twice_does_not() -> None:
    before = current_revision()
    key, _ = make()
    assert current_revision() == before + 1
    revoked = revoke_key(key=key, actor=ACTOR, reason="lost", now=NOW)
    assert (current_revision(), revoked.revoked_at) == (before + 2, NOW)
    assert ApiKey.history.first().history_change_reason == "lost"
    again = revoke_key(key=key, actor=ACTOR, reason="again", now=NOW + timedelta(hours=1))
    assert (current_revision(), again.revoked_at, ApiKey.history.count()) == (before + 2, NOW, 2)


def test_a_key_opens_what_its_scope_names(client: Client) -> None:
    _, secret = make("pools:read")
    body = client.get(ADDRESS, headers=bearer(secret)).json()
    assert body == {"actor": f"key router ({secret[:12]})", "user": None, "scopes": ["pools:read"]}
    assert client.head(ADDRESS, headers=bearer(secret)).status_code == 200
    response = client.post(ADDRESS, headers=bearer(secret))
    assert (response.status_code, response.json()["code"]) == (403, "scope_lacking")
    assert "connections:write" in response.json()["detail"]
    assert client.delete(ADDRESS, headers=bearer(secret)).status_code == 405


@pytest.mark.parametrize(
    "header",
    [
        None, "", "Bearer", "Bearer ", "Bearer x", "Bearer orl_" + "a" * 43, "Basic b3JsXw==", "Bearer orl_\u00e9",
        "bearer a b c",
    ],
)  # fmt: skip
def test_a_missing_or_malformed_key_is_401(client: Client, header: str | None) -> None:
    assert_refused(client.get(ADDRESS, headers={} if header is None else {"authorization": header}))


def test_revoked_and_expired_keys_are_401_at_the_very_next_call(client: Client, time_machine_at: Any) -> None:
    revoked, first = make()
    _, second = make(expires_at=NOW + timedelta(minutes=1))
    with time_machine_at(NOW):
        assert [client.get(ADDRESS, headers=bearer(secret)).status_code for secret in (first, second)] == [200, 200]
    revoke_key(key=revoked, actor=ACTOR, reason="", now=NOW)
    assert_refused(client.get(ADDRESS, headers=bearer(first)))
    with time_machine_at(NOW + timedelta(minutes=1)):
        assert_refused(client.get(ADDRESS, headers=bearer(second)))


def test_a_change_by_another_process_is_seen_by_its_revision() -> None:
    key, secret = make()
    assert live_key(secret=secret, now=NOW) is not None
    with deciding_write():
        ApiKey.objects.filter(pk=key.pk).update(granted=["catalog:read", "no:such"])
    facts = live_key(secret=secret, now=NOW)
    assert facts is not None
    assert facts.scopes == {"catalog:read"}
    with deciding_write():
        ApiKey.objects.filter(pk=key.pk).delete()
    assert live_key(secret=secret, now=NOW) is None


def test_a_remembered_key_costs_one_query(django_assert_num_queries: Any) -> None:
    _, secret = make()
    live_key(secret=secret, now=NOW)
    with django_assert_num_queries(1) as seen:
        assert live_key(secret=secret, now=NOW) is not None
    assert "common_revision" in seen.captured_queries[0]["sql"]


def test_a_malformed_key_costs_no_query(django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(0):
        assert live_key(secret="orl_short", now=NOW) is None


def test_a_bearer_header_leaves_no_room_for_a_session(admin_client: Client) -> None:
    assert admin_client.get(ADDRESS).status_code == 200
    assert_refused(admin_client.get(ADDRESS, headers=bearer("orl_" + "a" * 43)))
    _, secret = make("pools:read")
    assert admin_client.get(ADDRESS, headers=bearer(secret)).json()["scopes"] == ["pools:read"]


def test_a_superusers_session_has_every_scope_and_staff_none(client: Client) -> None:
    boss = get_user_model().objects.create_superuser("boss")
    client.force_login(boss)
    body = client.get(ADDRESS).json()
    assert (body["actor"], body["user"], body["scopes"]) == ("boss", boss.pk, sorted(SCOPES))
    client.force_login(get_user_model().objects.create_user("staff", is_staff=True))
    assert client.get(ADDRESS).status_code == 403


def test_a_session_needs_the_csrf_token_to_change_something_and_a_key_does_not() -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(get_user_model().objects.create_superuser("boss"))
    response = client.post(ADDRESS)
    assert (response.status_code, response.json()["code"]) == (403, "csrf_failed")
    _, secret = make("connections:write")
    assert client.post(ADDRESS, headers=bearer(secret)).status_code == 200


def test_a_method_without_a_declared_scope_is_closed(client: Client) -> None:
    client.raise_request_exception = False
    assert client.delete("/api/v1/undeclared", headers=bearer(make(*SCOPES)[1])).status_code == 500


def test_the_last_use_is_written_after_the_answer_at_most_once_a_minute(client: Client, time_machine_at: Any) -> None:
    key, secret = make()
    revision = current_revision()
    seen = []
    for seconds in (0, 30, 59, 61):
        with time_machine_at(NOW + timedelta(seconds=seconds)):
            assert client.get(ADDRESS, headers=bearer(secret)).status_code == 200
        key.refresh_from_db()
        seen.append(key.last_used_at)
    assert seen == [NOW, NOW, NOW, NOW + timedelta(seconds=61)]
    assert current_revision() == revision
    assert ApiKey.history.count() == 1


def test_a_last_use_that_cannot_be_written_fails_no_request(client: Client) -> None:
    key, secret = make()

    def refuse(execute: Any, sql: str, *rest: Any) -> Any:
        if "last_used_at" in sql and sql.startswith("UPDATE"):
            raise OperationalError("database is locked")
        return execute(sql, *rest)

    with connection.execute_wrapper(refuse):
        assert client.get(ADDRESS, headers=bearer(secret)).status_code == 200
    key.refresh_from_db()
    assert key.last_used_at is None
    assert not key_use._waiting


def test_a_database_out_of_reach_is_503_and_never_a_remembered_key(client: Client) -> None:
    _, secret = make()
    assert client.get(ADDRESS, headers=bearer(secret)).status_code == 200

    def refuse(*_: Any) -> Any:
        raise OperationalError("connection to db.internal refused")

    with connection.execute_wrapper(refuse):
        response = client.get(ADDRESS, headers=bearer(secret))
    assert (response.status_code, response.json()["code"]) == (503, "state_unavailable")
    assert b"db.internal" not in response.content


@pytest.mark.sqlite
@pytest.mark.django_db(transaction=True)
def test_a_locked_database_delays_no_answer(client: Client, database_url: str) -> None:
    import sqlite3

    key, secret = make()
    other = sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        assert client.get(ADDRESS, headers=bearer(secret)).status_code == 200
    finally:
        other.close()
    key.refresh_from_db()
    assert key.last_used_at is None
    with connection.cursor() as cursor:
        assert cursor.execute("PRAGMA busy_timeout").fetchone()[0] > 1_000


def run(*arguments: str) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    call_command("create_key", *arguments, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def test_the_command_prints_the_key_alone_on_standard_output(time_machine_at: Any) -> None:
    with time_machine_at(NOW):
        out, err = run(
            "router", "--scope", "pools:read", "--scope", "telemetry:write", "--expires", "90d", "--reason", "new"
        )
    secret = out.strip()
    assert secret not in err
    key = ApiKey.objects.get()
    assert (key.prefix, key.scopes) == (secret[:12], ["pools:read", "telemetry:write"])
    assert key.expires_at == NOW + timedelta(days=90)
    assert (ApiKey.history.get().history_change_reason, key.made_by) == ("new", "command create_key")
    assert live_key(secret=secret, now=NOW) is not None


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("12h", NOW + timedelta(hours=12)),
        ("2w", NOW + timedelta(weeks=2)),
        ("2026-09-01", datetime(2026, 9, 1, tzinfo=UTC)),
        ("2026-09-01T02:00:00+02:00", datetime(2026, 9, 1, tzinfo=UTC)),
    ],
)
def test_the_command_takes_ages_and_dates(given: str, meant: datetime, time_machine_at: Any) -> None:
    with time_machine_at(NOW):
        run("router", "--scope", "pools:read", "--expires", given)
    assert ApiKey.objects.get().expires_at == meant


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["router", "--scope", "pools:write"], "telemetry:write"),
        (["router"], "pools:read"),
        ([" ", "--scope", "pools:read"], "name"),
        (["router", "--scope", "pools:read", "--expires", "soon"], "90d"),
        (["router", "--scope", "pools:read", "--expires", "2026-13-01"], "90d"),
        (["router", "--scope", "pools:read", "--expires", "999999w"], "90d"),
        (["router", "--scope", "pools:read", "--expires", "2001-01-01"], "passed"),
    ],
)
def test_the_command_says_what_is_wrong_and_makes_nothing(arguments: list[str], says: str) -> None:
    with pytest.raises(CommandError, match=re.escape(says)) as caught:
        run(*arguments)
    assert caught.value.returncode == 1
    assert not ApiKey.objects.exists()
