"""Keys are edited and rotated on pages, each with a reason; the list tells asked from acting, and what is unused."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse

from omniroute_admin.common.history import Actor
from omniroute_admin.common.models import ApiKey
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


def make(maker: Any = None, **values: Any) -> tuple[ApiKey, str]:
    given: dict[str, Any] = {"name": "router", "scopes": ["pools:read"], "expires_at": None} | values
    actor = Actor(name="a test") if maker is None else Actor(name=maker.username, user_id=maker.pk)
    now = given.pop("now", NOW)
    return create_key(**given, actor=actor, reason="", now=now)


def hidden(client: Client, address: str, name: str) -> str:
    found = re.search(rf'name="{name}" value="([^"]+)"', client.get(address).content.decode())
    assert found is not None
    return found[1]


def text(client: Client, address: str) -> str:
    """Return a page's words, the blanks between them made one."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", client.get(address).content.decode()))


def edit_form(client: Client, address: str, **values: Any) -> dict[str, Any]:
    given = {"name": "router", "scopes": ["pools:read"], "calls_per_minute": "", "lasts": "keep", "reason": "why"}
    return {"seen": hidden(client, address, "seen")} | given | values


def rotate_form(client: Client, address: str, **values: Any) -> dict[str, Any]:
    return {"form_name": hidden(client, address, "form_name"), "overlap": "24", "reason": "yearly"} | values


def test_a_key_is_edited_with_a_reason_and_acts_so_at_once(boss: Client) -> None:
    key, secret = make()
    address, before = reverse("key-edit", args=[key.pk]), current_revision()
    change = {"name": "cellar", "scopes": ["settings:read", "metrics:read"], "calls_per_minute": "90", "lasts": "30"}
    assert boss.post(address, edit_form(boss, address, **change), follow=True).redirect_chain == [("/keys", 302)]
    key.refresh_from_db()
    assert (key.name, key.scopes, key.granted) == ("cellar", ["settings:read", "metrics:read"], key.scopes)
    assert (key.calls_per_minute, current_revision()) == (90, before + 1)
    assert key.expires_at is not None
    facts = live_key(secret=secret, now=NOW)
    assert facts is not None
    assert (facts.scopes, facts.calls_per_minute) == ({"settings:read", "metrics:read"}, 90)
    version = ApiKey.history.latest("history_id")
    assert (version.history_actor, version.history_change_reason) == ("boss", "why")


def test_an_edit_that_leaves_the_expiry_leaves_it_to_the_microsecond(boss: Client) -> None:
    ends = NOW + timedelta(days=9000, microseconds=17)
    key, _ = make(expires_at=ends)
    address = reverse("key-edit", args=[key.pk])
    boss.post(address, edit_form(boss, address, name="x"))
    key.refresh_from_db()
    assert (key.name, key.expires_at) == ("x", ends)
    boss.post(address, edit_form(boss, address, lasts="never"))
    key.refresh_from_db()
    assert key.expires_at is None


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"name": " "}, "required"),
        ({"scopes": []}, "at least one"),
        ({"scopes": ["users:write"]}, "not one of the available"),
        ({"calls_per_minute": "0"}, "greater than or equal to 1"),
        ({"calls_per_minute": "100001"}, "less than or equal to 100000"),
        ({"calls_per_minute": "ten"}, "whole number"),
        ({"lasts": "until", "until": "2001-01-01T00:00"}, "passed already"),
        ({"reason": " "}, "Say why"),
        ({"seen": "forged"}, "not whole any more"),
    ],
)
def test_a_bad_edit_changes_nothing_and_says_what_is_wrong(boss: Client, bad: dict[str, Any], words: str) -> None:
    key, _ = make()
    address, before = reverse("key-edit", args=[key.pk]), current_revision()
    response = boss.post(address, edit_form(boss, address, **bad))
    assert (response.status_code, current_revision()) == (400, before)
    assert words in response.content.decode()


def test_of_two_who_edit_at_once_the_second_is_told(boss: Client) -> None:
    key, _ = make()
    address = reverse("key-edit", args=[key.pk])
    first, second = edit_form(boss, address, name="first"), edit_form(boss, address, name="second")
    assert boss.post(address, first).status_code == 302
    response = boss.post(address, second)
    assert response.status_code == 409
    assert "changed by another meanwhile" in response.content.decode()
    key.refresh_from_db()
    assert key.name == "first"


def test_a_key_that_has_ended_is_not_edited(boss: Client) -> None:
    key, _ = make()
    address = reverse("key-edit", args=[key.pk])
    form = edit_form(boss, address, name="other")
    revoke_key(key=key, actor=Actor(name="t"), reason="", now=NOW)
    assert boss.post(address, form).status_code == 409
    assert "nothing to change in it" in text(boss, address)


def test_rotating_shows_the_new_key_once_and_tells_how_long_the_old_one_goes_on(boss: Client) -> None:
    key, first = make(calls_per_minute=5)
    address = reverse("key-rotate", args=[key.pk])
    form = rotate_form(boss, address, overlap="2")
    response = boss.post(address, form)
    second = response.context["secret"]
    page = response.content.decode()
    assert second in page
    assert (first[:12] in page, "goes on until" in page, "no-store" in response["Cache-Control"]) == (True, True, True)
    new = ApiKey.objects.exclude(pk=key.pk).get()
    key.refresh_from_db()
    assert (new.made_by, new.calls_per_minute, key.replaced_by_id) == ("boss", 5, new.pk)
    assert key.replaced_until is not None
    again = boss.post(address, form)
    assert (again.status_code, ApiKey.objects.count()) == (409, 2)
    listed = text(boss, reverse("keys"))
    assert f"replaced by {new.prefix}… until" in listed
    assert second not in listed


def test_a_key_rotated_before_is_rotated_again_only_where_that_is_ticked(boss: Client) -> None:
    key, _ = make()
    address = reverse("key-rotate", args=[key.pk])
    assert "Rotate it all the same" not in text(boss, address)
    boss.post(address, rotate_form(boss, address))
    assert "was replaced by" in text(boss, address)
    response = boss.post(address, rotate_form(boss, address))
    assert (response.status_code, ApiKey.objects.count()) == (409, 2)
    assert boss.post(address, rotate_form(boss, address, anyway="on")).status_code == 200
    assert ApiKey.objects.count() == 3


@pytest.mark.parametrize("bad", [{"overlap": "-1"}, {"overlap": "721"}, {"overlap": ""}, {"reason": ""}])
def test_a_bad_rotation_makes_no_key(boss: Client, bad: dict[str, str]) -> None:
    key, _ = make()
    address = reverse("key-rotate", args=[key.pk])
    assert boss.post(address, rotate_form(boss, address, **bad)).status_code == 400
    assert ApiKey.objects.count() == 1


@pytest.mark.parametrize("act", ["edit", "rotate"])
@pytest.mark.parametrize("number", ["0", "99999999999999999999999999"])
def test_a_key_that_is_not_there_is_404(boss: Client, act: str, number: str) -> None:
    assert boss.get(f"/keys/{number}/{act}").status_code == 404


def test_the_list_tells_what_was_asked_from_what_acts_and_how_that_is_mended(
    boss: Client, django_user_model: Any
) -> None:
    maker = django_user_model.objects.create_user("mira")
    maker.groups.add(Group.objects.get(name="operator"))
    key, secret = make(maker, scopes=["pools:read", "settings:write"])
    assert "Asked too" not in text(boss, reverse("keys"))
    maker.groups.set(Group.objects.filter(name="viewer"))
    listed = text(boss, reverse("keys"))
    assert "acts with less" in listed
    assert "acts pools:read Asked too: settings:write Its maker has it no more." in listed
    maker.groups.clear()
    listed = text(boss, reverse("keys"))
    assert "opens nothing" in listed
    assert "acts with nothing Asked: pools:read settings:write Its maker has them no more." in listed
    address = reverse("key-edit", args=[key.pk])
    assert "does not act with all that it was given" in text(boss, address)
    boss.post(address, edit_form(boss, address, scopes=["pools:read", "settings:write"]))
    assert "Asked too" not in text(boss, reverse("keys"))
    facts = live_key(secret=secret, now=NOW)
    assert facts is not None
    assert facts.scopes == {"pools:read", "settings:write"}


def test_the_list_tells_keys_that_nobody_uses(boss: Client) -> None:
    make(name="young", now=NOW - timedelta(days=1))
    make(name="idle", now=NOW - timedelta(days=90))
    used, secret = make(name="used", now=NOW - timedelta(days=400))
    ApiKey.objects.filter(pk=used.pk).update(last_used_at=NOW - timedelta(days=91))
    with time_machine.travel(NOW, tick=False):
        assert text(boss, reverse("keys")).count("never used") == 2
        assert text(boss, reverse("keys")).count("unused for 90 days") == 2
        boss.get("/api/v1/pools", headers={"authorization": f"Bearer {secret}"})
        assert text(boss, reverse("keys")).count("unused for 90 days") == 1
    assert ApiKey.history.filter(id=used.pk).count() == 1


def values(row: Any, *roles: str, **given: Any) -> dict[str, Any]:
    ids = [Group.objects.get(name=name).pk for name in roles]
    base = {"username": row.username, "email": "", "is_active": "on", "groups": ids, "change_reason": "asked"}
    return {name: value for name, value in (base | given).items() if value is not None}


def test_an_account_says_which_keys_would_stop_or_lose_what_before_it_is_changed(
    boss: Client, django_user_model: Any
) -> None:
    mira = django_user_model.objects.create_user("mira")
    mira.groups.add(Group.objects.get(name="operator"))
    key, secret = make(mira, name="cellar", scopes=["pools:read", "settings:write"])
    make(mira, name="gone", scopes=["settings:write"], expires_at=NOW + timedelta(hours=1))
    address = f"/admin/auth/user/{mira.pk}/change/"
    with time_machine.travel(NOW + timedelta(hours=2), tick=False):
        assert f"cellar ({key.prefix}…): pools:read, settings:write" in text(boss, address)
        for given, words in (
            (values(mira, "viewer"), f"cellar ({key.prefix}…) loses settings:write."),
            (values(mira, "operator", is_active=None), f"cellar ({key.prefix}…) stops."),
            (values(mira), f"cellar ({key.prefix}…) stops."),
        ):
            response = boss.post(address, given)
            assert response.status_code == 200
            page = response.content.decode()
            assert words in page
            assert "gone (" not in page.split("Nothing was changed.")[1]
            mira = django_user_model.objects.get(pk=mira.pk)
            assert (mira.is_active, [group.name for group in mira.groups.all()]) == (True, ["operator"])
        assert boss.post(address, values(mira, "operator", "viewer", email="m@example.com")).status_code == 302
        assert boss.post(address, values(mira, "viewer", keys_may_lose="on")).status_code == 302
    facts = live_key(secret=secret, now=NOW)
    assert facts is not None
    assert facts.scopes == {"pools:read"}
