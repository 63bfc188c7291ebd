"""The list of connections, and adding one, without a browser (SPEC 5, 2)."""

import re
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection as database
from django.test import Client
from django.test.utils import CaptureQueriesContext

from ladder.models import Connection
from ladder.services.connections import delete_connection, update_connection
from omniroute_admin.common import clock
from omniroute_admin.common.history import Actor
from omniroute_admin.common.services.revision import deciding_write
from tests.browser.fleet import Window, make_connection, make_fleet
from tests.factories import ProviderAliasFactory

pytestmark = pytest.mark.django_db
MIRA = Actor(name="mira")
NEW = {
    "provider": "Claude ",
    "connection_id": "c-new",
    "auth_type": "OAuth",
    "label": "third seat",
    "reason": "more room",
}


@pytest.fixture
def operator(client: Client, django_user_model: Any) -> Client:
    user = django_user_model.objects.create_user("mira", password="x")
    user.groups.add(Group.objects.get(name="operator"))
    client.force_login(user)
    return client


@pytest.fixture
def fleet(db: None) -> None:
    make_fleet(now=clock.now())


def listed(answer: Any) -> list[str]:
    """Return the names on a page of the list, in their order."""
    html = answer.content.decode()
    return re.findall(r'class="c-name who-is"><a href="/connections/([^"]+)"', html)


def words(answer: Any) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", answer.content.decode())))


def test_every_stored_connection_is_listed_once_by_name(operator: Client, fleet: None) -> None:
    names = listed(operator.get("/connections"))
    assert len(names) == 11
    assert names == sorted(names)
    assert "11 of 11 connections." in words(operator.get("/connections"))


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("q=ALT", ["claude/claude-alt"]),
        ("q=claude/claude-m", ["claude/claude-main"]),
        ("q=second seat", ["claude/claude-team"]),
        ("provider=codex", ["codex/codex-ops", "codex/codex-plus"]),
        ("provider=codex&state=stale", ["codex/codex-ops"]),
        ("state=cooldown&state=held", ["claude/claude-alt", "claude/claude-team"]),
        ("billing=keyless", ["opencode/noauth"]),
        ("enabled=paused", ["kiro/kiro-1"]),
        ("q=nothing-like-it", []),
    ],
)
def test_search_and_filters_narrow_the_list(operator: Client, fleet: None, query: str, names: list[str]) -> None:
    for name, changes in (("claude-team", {"label": "the second SEAT"}), ("kiro-1", {"is_enabled": False})):
        row = Connection.objects.get(connection_id=name)
        update_connection(connection=row, changes=changes, actor=MIRA, reason="", now=clock.now())
    assert listed(operator.get(f"/connections?{query}")) == names


@pytest.mark.parametrize(
    ("sort", "first"),
    [
        ("", "claude/claude-alt"),
        ("state", "claude/claude-main"),
        ("left", "claude/claude-alt"),
        ("reset", "cursor/cursor-seat"),
    ],
)
def test_the_list_is_ordered_as_asked(operator: Client, fleet: None, sort: str, first: str) -> None:
    assert listed(operator.get(f"/connections?sort={sort}"))[0] == first


def test_a_filter_counts_what_it_would_show_beside_the_others(operator: Client, fleet: None) -> None:
    text = words(operator.get("/connections?provider=claude"))
    assert "claude 3 codex 2" in text
    assert "usable 1 unverified 0" in text


@pytest.mark.parametrize(
    "query",
    ["page=0", "page=-1", "page=99999999", "page=x", "sort=nonsense", "state=nonsense", "enabled=maybe", "q=%00%00"],
)
def test_a_hand_edited_query_still_shows_a_list(operator: Client, fleet: None, query: str) -> None:
    answer = operator.get(f"/connections?{query}")
    assert answer.status_code == 200
    assert len(listed(answer)) == 11


def test_a_provider_that_is_none_shows_that_nothing_matches(operator: Client, fleet: None) -> None:
    assert "No connection matches these filters." in words(operator.get("/connections?provider=<script>"))


def test_many_connections_are_paged_and_cost_no_more_queries(operator: Client, fleet: None) -> None:
    operator.get("/connections")
    with CaptureQueriesContext(database) as few:
        operator.get("/connections")
    with deciding_write():
        for number in range(200):
            make_connection("claude", f"x{number:03}", "oauth", (Window("5h", "50", 60, 5),), now=clock.now())
    operator.get("/connections")
    with CaptureQueriesContext(database) as many:
        answer = operator.get("/connections?q=x&page=2")
    assert len(many) == len(few)
    assert listed(answer)[0] == "claude/x050"
    assert 'href="?q=x&amp;page=3"' in answer.content.decode()
    assert len(answer.content) < 200_000


def test_an_empty_list_says_how_to_begin(operator: Client) -> None:
    text = words(operator.get("/connections"))
    assert "python manage.py import_omniroute" in text


def test_a_deleted_connection_is_listed_apart_with_the_way_to_its_page(operator: Client, fleet: None) -> None:
    """SPEC 3."""
    row = Connection.objects.get(connection_id="claude-alt")
    delete_connection(connection=row, actor=MIRA, reason="", now=clock.now())
    answer = operator.get("/connections")
    assert "claude/claude-alt" not in listed(answer)
    assert f"/connections/claude/claude-alt?past={row.pk}" in answer.content.decode()


def test_a_connection_is_added_by_its_canonical_name_and_its_page_is_shown(operator: Client) -> None:
    """SPEC 1."""
    ProviderAliasFactory(alias="anthropic", provider="claude")
    answer = operator.post("/connections/new", NEW | {"provider": "Anthropic", "excluded_models": "*opus*\n"})
    assert (answer.status_code, answer["Location"]) == (302, "/connections/claude/c-new")
    row = Connection.objects.get()
    assert (row.provider, row.auth_type, row.excluded_models) == ("claude", "oauth", ["*opus*"])
    assert row.history.get().history_change_reason == "more room"
    assert row.history.get().history_actor == "mira"


def test_a_connection_added_twice_is_stored_once(operator: Client) -> None:
    for _ in range(2):
        assert operator.post("/connections/new", NEW)["Location"] == "/connections/claude/c-new"
    assert Connection.objects.count() == 1


def test_an_id_that_is_taken_is_refused_beside_the_field(operator: Client) -> None:
    """SPEC 1: unique by id alone except noauth."""
    operator.post("/connections/new", NEW)
    answer = operator.post("/connections/new", NEW | {"provider": "codex"})
    assert answer.status_code == 400
    assert "A connection of that id exists already" in words(answer)
    assert 'value="third seat"' in answer.content.decode()


def test_every_bad_field_of_a_new_connection_is_named_at_once(operator: Client) -> None:
    answer = operator.post("/connections/new", {"provider": "", "connection_id": "", "label": "x" * 201, "reason": ""})
    text = words(answer)
    assert answer.status_code == 400
    assert text.count("This field is required.") == 2
    assert "Say why; it goes to the history." in text
    assert "at most 200 characters" in text
    answer = operator.post("/connections/new", NEW | {"provider": "<b>", "connection_id": "-x", "auth_type": "a b"})
    text = words(answer)
    assert "A provider is lower-case letters" in text
    assert "A connection id is letters" in text
    assert "An auth type is letters" in text
    assert not Connection.objects.exists()


def test_noauth_takes_its_auth_type_by_itself(operator: Client) -> None:
    """SPEC 1."""
    operator.post("/connections/new", NEW | {"connection_id": "noauth", "auth_type": ""})
    assert Connection.objects.get().auth_type == "none"
    answer = operator.post("/connections/new", NEW | {"connection_id": "c2", "auth_type": "none"})
    assert "The auth type none belongs to the connection noauth" in words(answer)


def test_a_viewer_sees_the_list_and_may_not_add(django_user_model: Any, fleet: None) -> None:
    user = django_user_model.objects.create_user("vera", password="x")
    user.groups.add(Group.objects.get(name="viewer"))
    client = Client()
    client.force_login(user)
    answer = client.get("/connections")
    assert len(listed(answer)) == 11
    assert "Add a connection" not in words(answer)
    for refused in (client.get("/connections/new"), client.post("/connections/new", NEW)):
        assert refused.status_code == 403
        assert "operator or administrator" in words(refused)


def test_a_stranger_is_led_to_the_login(client: Client) -> None:
    assert client.get("/connections")["Location"] == "/login?next=/connections"
    assert client.post("/connections/new", NEW)["Location"] == "/login?next=/connections/new"


def test_labels_are_text(operator: Client, fleet: None) -> None:
    row = Connection.objects.get(connection_id="claude-alt")
    update_connection(
        connection=row,
        changes={"label": "<script>alert(1)</script>\u202e日本語"},
        actor=MIRA,
        reason="",
        now=clock.now(),
    )
    html = operator.get("/connections").content.decode()
    assert "<script>alert" not in html
    assert "日本語" in html
