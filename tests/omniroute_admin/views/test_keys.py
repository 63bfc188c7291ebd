"""SPEC 4; 5, 8: keys are made on a page, shown once, and revoked with a reason."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from omniroute_admin.common.history import Actor
from omniroute_admin.common.models import ApiKey
from omniroute_admin.common.models_sign_in import Session
from omniroute_admin.common.selectors.keys import live_key
from omniroute_admin.common.selectors.revision import current_revision
from omniroute_admin.common.services.keys import create_key, revoke_key

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 8, 22, 12, tzinfo=UTC)


@pytest.fixture
def boss(client: Client, django_user_model: Any) -> Client:
    user = django_user_model.objects.create_user("boss")
    user.groups.add(Group.objects.get(name="administrator"))
    client.force_login(user)
    return client


def key(**values: Any) -> tuple[ApiKey, str]:
    given: dict[str, Any] = {"name": "router", "scopes": ["pools:read"], "expires_at": None} | values
    return create_key(**given, actor=Actor(name="a test"), reason="", now=NOW)


def form(client: Client, **values: Any) -> dict[str, Any]:
    found = re.search(r'name="form_name" value="([\w-]+)"', client.get(reverse("key-new")).content.decode())
    assert found is not None
    given = {"name": "router", "scopes": ["pools:read"], "lasts": "90", "reason": "new router"}
    return {"form_name": found[1]} | given | values


def made(client: Client, **values: Any) -> Any:
    return client.post(reverse("key-new"), form(client, **values))


def test_a_key_is_made_shown_once_and_works_at_once(boss: Client) -> None:
    before = current_revision()
    response = made(boss, scopes=["pools:read", "telemetry:write"])
    secret = response.context["secret"]
    assert secret in response.content.decode()
    assert "no-store" in response["Cache-Control"]
    row = ApiKey.objects.get()
    assert (row.scopes, row.made_by) == (["pools:read", "telemetry:write"], "boss")
    assert row.expires_at - row.created_at == timedelta(days=90)
    assert ApiKey.history.get().history_change_reason == "new router"
    assert live_key(secret=secret, now=row.created_at) is not None
    assert current_revision() == before + 1


def test_the_text_of_a_key_is_kept_nowhere(boss: Client) -> None:
    response = made(boss)
    secret, row = response.context["secret"], ApiKey.objects.get()
    for address in (reverse("keys"), reverse("key-revoke", args=[row.pk]), reverse("key-new"), reverse("audit")):
        text = boss.get(address).content.decode()
        assert secret not in text, address
        assert row.secret_hash not in text, address
    sessions = repr([one.get_decoded() for one in Session.objects.all()])
    history = repr(list(ApiKey.history.values()))
    assert secret not in sessions + history + str(boss.cookies)
    assert row.secret_hash not in sessions + history


def test_a_form_sent_twice_makes_one_key(boss: Client) -> None:
    values = form(boss)
    assert "secret" in boss.post(reverse("key-new"), values).context
    before = current_revision()
    again = boss.post(reverse("key-new"), values)
    assert again.status_code == 409
    assert "was sent before" in again.content.decode()
    assert (ApiKey.objects.count(), current_revision()) == (1, before)
    assert "secret" in made(boss).context


@pytest.mark.parametrize(
    ("lasts", "until", "expected"),
    [
        ("never", "", None),
        ("until", "2099-01-02T03:04", datetime(2099, 1, 2, 2, 4, tzinfo=UTC)),
        ("until", "2099-01-02T03:04:00+00:00", datetime(2099, 1, 2, 3, 4, tzinfo=UTC)),
    ],
)
def test_an_expiry_is_told_in_the_zone_of_the_screens(
    boss: Client, settings: Any, lasts: str, until: str, expected: datetime | None
) -> None:
    settings.TIME_ZONE_DISPLAY = "Europe/Berlin"
    made(boss, lasts=lasts, until=until)
    assert ApiKey.objects.get().expires_at == expected


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"name": " "}, "required"),
        ({"name": "x" * 101}, "100"),
        ({"name": "a\x07b"}, "printable"),
        ({"scopes": []}, "at least one"),
        ({"scopes": ["users:write"]}, "not one of the available"),
        ({"lasts": "7000"}, "not one of the available"),
        ({"lasts": "until", "until": ""}, "Give a day"),
        ({"lasts": "until", "until": "soon"}, "Give a day"),
        ({"lasts": "until", "until": "2001-01-01T00:00"}, "passed already"),
        ({"lasts": "until", "until": "0001-01-01T00:00+14:00"}, "Give a day"),
        ({"reason": " "}, "Say why"),
        ({"reason": "x" * 10_001}, "10000"),
        ({"form_name": ""}, "required"),
    ],
)
def test_a_bad_form_makes_no_key_and_says_what_is_wrong(boss: Client, bad: dict[str, Any], words: str) -> None:
    response = made(boss, **bad)
    assert response.status_code == 400
    assert words in response.content.decode()
    assert not ApiKey.objects.exists()


def test_nothing_but_scopes_can_be_given_to_a_key(boss: Client) -> None:
    assert 'value="audit:read"' not in boss.get(reverse("key-new")).content.decode()
    assert 'value="metrics:read"' in boss.get(reverse("key-new")).content.decode()


def test_keys_are_listed_with_their_state_and_filtered_by_it(boss: Client) -> None:
    key(name="alpha")
    key(name="beta", expires_at=NOW + timedelta(hours=1))
    revoke_key(key=key(name="gamma")[0], actor=Actor(name="t"), reason="", now=NOW)

    def names(query: str) -> set[str]:
        text = boss.get(f"{reverse('keys')}?{query}").content.decode()
        return {name for name in ("alpha", "beta", "gamma") if name in text}

    assert names("") == names("state=rubbish&page=x") == {"alpha", "beta", "gamma"}
    assert names("state=live") == {"alpha"}
    assert names("state=expired") == {"beta"}
    assert names("state=revoked") == {"gamma"}
    assert "No key is" not in boss.get(reverse("keys")).content.decode()


def test_without_a_key_the_page_says_what_a_router_needs(boss: Client) -> None:
    assert "There is no key yet" in boss.get(reverse("keys")).content.decode()
    assert "No key is revoked" in boss.get(f"{reverse('keys')}?state=revoked").content.decode()


def test_revoking_asks_why_and_acts_at_once(boss: Client) -> None:
    row, secret = key()
    address, before = reverse("key-revoke", args=[row.pk]), current_revision()
    assert "there is no way back" in boss.get(address).content.decode()
    assert boss.post(address, {"reason": ""}).status_code == 400
    assert (live_key(secret=secret, now=NOW) is not None, current_revision()) == (True, before)
    response = boss.post(address, {"reason": "lost"}, follow=True)
    assert response.redirect_chain == [(reverse("keys"), 302)]
    assert live_key(secret=secret, now=NOW) is None
    written = ApiKey.history.latest("history_id")
    assert (written.history_actor, written.history_change_reason) == ("boss", "lost")
    moved = current_revision()
    assert "revoked before" in boss.post(address, {"reason": "again"}, follow=True).content.decode()
    assert (current_revision(), ApiKey.history.count()) == (moved, 2)


@pytest.mark.parametrize("number", ["0", "99999999999999999999999999"])
def test_a_key_that_is_not_there_is_404(boss: Client, number: str) -> None:
    assert boss.get(f"/keys/{number}/revoke").status_code == 404


def test_the_queries_of_the_list_do_not_grow_with_the_keys(boss: Client) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as caught:
            assert len(boss.get(reverse("keys")).content) < 200_000
        return len(caught)

    key()
    few = queries()
    for number in range(60):
        key(name=f"<i>key {number}</i>")
    assert queries() == few < 10
    assert "&lt;i&gt;key 59" in boss.get(reverse("keys")).content.decode()
