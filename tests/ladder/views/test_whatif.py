"""The address that previews what a change would move, for every form that asks it (SPEC 5, 3)."""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
import time_machine
from django.db import connection as database
from django.test import Client
from django.test.utils import CaptureQueriesContext

from billing_catalog.models import BillingEntry
from ladder.models import Connection, LadderSettings, QuotaWindow
from ladder.services.settings import SettingsChanges, update_settings
from omniroute_admin.common import clock
from omniroute_admin.common.history import Actor
from omniroute_admin.common.selectors.revision import current_token
from tests.browser.fleet import Window, make_connection, make_fleet
from tests.factories import FreeProviderFactory, ProviderAliasFactory, TierOverrideFactory, UsageEventFactory
from tests.ladder.views.tuning import client_of, fields_of, open_page, part, text_of

pytestmark = pytest.mark.django_db
MOMENT = datetime(2026, 8, 27, 8, 12, 40, tzinfo=UTC)
SCRIPT = {"HX-Request": "true"}


@pytest.fixture(autouse=True)
def _at_the_moment() -> Any:
    with time_machine.travel(MOMENT, tick=False):
        yield


@pytest.fixture
def fleet(db: None) -> None:
    make_fleet(now=clock.now())


@pytest.fixture
def viewer(django_user_model: Any) -> Client:
    return client_of(django_user_model, "vera", "viewer")


def ask(client: Client, kind: str, **fields: Any) -> str:
    answer = client.post("/whatif", {"kind": kind, **fields}, headers=SCRIPT)
    assert answer.status_code == 200, answer.content
    return answer.content.decode()


def typed(client: Client, **changes: str) -> str:
    return ask(client, **{**open_page(client), **changes})


def moves_in(html: str) -> set[tuple[str, str, str]]:
    """Return (connection, state now, state after) of every row."""
    table = re.search(r'<table[^>]*class="cards moves".*?</table>', html, re.DOTALL)
    rows = re.findall(r'<tr role="row"><th role="rowheader".*?</tr>', table[0], re.DOTALL) if table else []
    cells = [re.findall(r'<td role="cell">(.*?)</td>', row, re.DOTALL) for row in rows]
    states = [[_state(cell) for cell in pair] for pair in cells]
    names = [re.search(r'href="/connections/[^"]*/([^"/]+)"', row)[1] for row in rows]  # type: ignore[index]
    return {(name, was, becomes) for name, (was, becomes) in zip(names, states, strict=True)}


def _state(cell: str) -> str:
    found = re.search(r'class="state is-[a-z]+">.*?</svg>([^<]*)<', cell, re.DOTALL)
    return found[1] if found else text_of(cell)


# --- who, and what may be asked --------------------------------------------------------------------------------------


def test_a_script_of_a_stranger_is_told_to_sign_in(client: Client) -> None:
    assert client.post("/whatif", {"kind": "settings"}, headers=SCRIPT).status_code == 401


@pytest.mark.parametrize("kind", ["settings", "billing", "tier-override", "free-provider", "override"])
def test_somebody_without_a_role_is_refused(django_user_model: Any, kind: str) -> None:
    client = client_of(django_user_model, "nobody")
    assert client.post("/whatif", {"kind": kind}, headers=SCRIPT).status_code == 403


def test_it_is_only_posted_to_and_only_with_the_pages_own_token(viewer: Client) -> None:
    assert viewer.get("/whatif").status_code == 405
    checked = Client(enforce_csrf_checks=True, headers={"Cookie": f"sessionid={viewer.cookies['sessionid'].value}"})
    assert checked.post("/whatif", {"kind": "settings"}, headers=SCRIPT).status_code == 403


@pytest.mark.parametrize("kind", ["", "nonsense", "settings'--"])
def test_a_kind_that_there_is_not_is_refused_by_name(viewer: Client, kind: str) -> None:
    answer = viewer.post("/whatif", {"kind": kind}, headers=SCRIPT)
    assert (answer.status_code, b"tier-override" in answer.content) == (400, True)


@pytest.mark.parametrize("kind", ["settings", "billing", "tier-override", "free-provider", "override"])
def test_an_empty_form_of_any_kind_is_answered_in_words(viewer: Client, fleet: None, kind: str) -> None:
    html = ask(viewer, kind)
    assert "Left out of this" in html
    assert moves_in(html) == set()


@pytest.mark.parametrize("kind", ["settings", "billing"])
def test_an_empty_ladder_is_answered_too(viewer: Client, kind: str) -> None:
    html = ask(viewer, kind, provider="claude", billing="metered", overage="unknown")
    assert "auto/thrifty would still be empty" in text_of(html)


# --- settings --------------------------------------------------------------------------------------------------------


def test_a_floor_is_tried_before_it_is_saved(viewer: Client, fleet: None) -> None:
    """The mock's example: held at 4 %, in above 3 %; and nothing is stored."""
    revision = current_token()
    html = typed(viewer, reentry_min_remaining_percent="3")
    assert moves_in(html) == {("claude-team", "held", "usable")}
    assert "above re-entry 3 %" in html
    assert "would still serve from subscription ( 4 of 7 usable)" in text_of(html)
    assert "auto/subscription 3 5 +2 in claude-team" in text_of(html)
    assert "changed, was 5 %" in part(html, 'id="was-reentry_min_remaining_percent"', "</span>")
    assert "Save 1 change" in text_of(html)
    assert LadderSettings.objects.get().reentry_min_remaining_percent == 5
    assert current_token() == revision


def test_a_smaller_budget_closes_its_rung_in_the_sentence_and_in_the_table(viewer: Client, fleet: None) -> None:
    UsageEventFactory(booked_cost=Decimal("3.65"), occurred_at=clock.now() - timedelta(days=1))
    html = typed(viewer, cheap_amount="3.50")
    assert moves_in(html) == {("ds-api", "usable", "exhausted"), ("or-main", "usable", "exhausted")}
    assert "cheap would be closed until Mon 00:00 Europe/Berlin ." in text_of(html)


@pytest.mark.parametrize(("kind", "words"), [("off", "cheap would be off ."), ("none", "cheap would have no limit .")])
def test_off_and_no_limit_are_told_as_words(viewer: Client, fleet: None, kind: str, words: str) -> None:
    """M1."""
    assert words in text_of(typed(viewer, cheap_kind=kind))


def test_another_window_tells_what_happened_in_it(viewer: Client, fleet: None) -> None:
    """M4."""
    UsageEventFactory(booked_cost=Decimal("3.65"), occurred_at=clock.now() - timedelta(days=1))
    html = typed(viewer, cheap_period="daily", cheap_zone="asia/tokyo")
    assert part(html, 'id="line-cheap"', "</p>").endswith(
        "The window would be the one since Thu 27 Aug 00:00 until Fri 28 Aug 00:00 Asia/Tokyo, with what happened in"
        " it: no spend reported."
    )
    assert "changed, was Europe/Berlin" in part(html, 'id="was-cheap_zone"', "</span>")


def test_a_field_that_is_wrong_is_named_and_the_rest_is_tried(viewer: Client, fleet: None) -> None:
    html = typed(viewer, exit_cutoff_percent="2,5", reentry_min_remaining_percent="3")
    assert moves_in(html) == {("claude-team", "held", "usable")}
    assert "Exit cutoff: Write decimals with a point" in text_of(html)
    assert "with a point" in part(html, 'id="e-exit_cutoff_percent"', "</p>")
    assert "Save 1 change" in text_of(html)


def test_the_drawing_and_the_words_follow_what_is_typed(viewer: Client, fleet: None) -> None:
    html = typed(viewer, exit_cutoff_percent="6", max_reading_age_seconds="10")
    assert "counts as 6 %, the exit cutoff" in html
    assert 'aria-label="Up to 6 % out, above 6 % in"' in html


def test_a_form_opened_before_another_saved_says_so_and_does_not_undo_the_other(viewer: Client, fleet: None) -> None:
    sent = open_page(viewer)
    update_settings(
        changes=SettingsChanges(max_reading_age_seconds=3600), actor=Actor("jonas"), reason="", now=clock.now()
    )
    html = ask(viewer, **{**sent, "reentry_min_remaining_percent": "3"})
    assert "Somebody saved other settings" in text_of(html)
    assert moves_in(html) == {("claude-team", "held", "usable")}


def test_without_a_script_the_same_stands_on_the_page_with_what_was_typed(viewer: Client, fleet: None) -> None:
    answer = viewer.post("/whatif", {**open_page(viewer), "reentry_min_remaining_percent": "3"})
    html = answer.content.decode()
    assert answer.status_code == 200
    assert moves_in(html) == {("claude-team", "held", "usable")}
    assert fields_of(html)["reentry_min_remaining_percent"] == "3"
    assert "Say why" not in html
    assert LadderSettings.objects.get().reentry_min_remaining_percent == 5


def test_a_connections_label_is_text(viewer: Client, fleet: None) -> None:
    Connection.objects.filter(connection_id="claude-team").update(label="<i>אבג</i> team")
    html = typed(viewer, reentry_min_remaining_percent="3")
    assert "<i>" not in html
    assert "&lt;i&gt;" in html


def test_a_crowd_that_moves_is_cut_and_counted(viewer: Client, fleet: None) -> None:
    for number in range(80):
        make_connection("claude", f"more-{number}", "oauth", (Window("5h", "20", 87, 22),), now=clock.now())
    html = typed(viewer, exit_cutoff_percent="20")
    assert len(moves_in(html)) == 50
    words = text_of(html)
    assert "81 of 92 places would move" in words
    assert "And 31 more: 31 usable on subscription → exhausted on subscription." in words
    assert "and 77 more" in words


def test_the_queries_do_not_grow_with_the_fleet(viewer: Client, fleet: None) -> None:
    def queries() -> int:
        sent = open_page(viewer)
        with CaptureQueriesContext(database) as asked:
            ask(viewer, **{**sent, "exit_cutoff_percent": "20", "cheap_amount": "1"})
        return len(asked)

    few = queries()
    for number in range(80):
        made = make_connection("claude", f"more-{number}", "oauth", (Window("5h", "20", 87, 22),), now=clock.now())
        QuotaWindow.objects.create(connection=made, window="weekly")
    assert queries() == few


# --- catalogue and connections ---------------------------------------------------------------------------------------


def entry(provider: str) -> int:
    return int(BillingEntry.objects.get(provider=provider).pk)


def test_an_edited_entry_moves_its_connections_to_another_rung(viewer: Client, fleet: None) -> None:
    fields = {"provider": "claude", "auth_type": "oauth", "billing": "metered", "overage": "meters-to-paid"}
    html = ask(viewer, "billing", id=entry("claude"), **fields)
    assert {name for name, _, _ in moves_in(html)} == {"claude-main", "claude-team", "claude-alt"}
    assert "subscription" in html
    assert "cheap" in html
    assert BillingEntry.objects.get(provider="claude").billing == "subscription"


def test_a_new_entry_is_read_with_its_names_folded_and_aliases_resolved(viewer: Client, fleet: None) -> None:
    ProviderAliasFactory(alias="kiro-dev", provider="kiro")
    html = ask(viewer, "billing", provider=" Kiro-Dev ", auth_type="", billing="subscription", overage="hard-stop")
    assert {name for name, _, _ in moves_in(html)} == {"kiro-1"}


def test_deleting_an_entry_asks_nothing_but_which(viewer: Client, fleet: None) -> None:
    html = ask(viewer, "billing", id=entry("codex"), delete="1")
    assert {name for name, _, _ in moves_in(html)} == {"codex-plus", "codex-ops"}


def test_an_entry_that_is_gone_is_said_to_be(viewer: Client, fleet: None) -> None:
    html = ask(viewer, "billing", id=987654, delete="1")
    assert "not there any more" in text_of(html)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"provider": "no provider"}, "provider: A provider is letters"),
        ({"auth_type": "o auth"}, "auth type: An auth type is letters"),
        ({"billing": "prepaid"}, "billing: Choose one of"),
        ({"overage": ""}, "overage: Choose one of"),
        ({"id": "x"}, "id:"),
        ({"id": "9" * 40}, "id:"),
        ({"provider": "<b>"}, "provider:"),
    ],
)
def test_a_wrong_entry_is_told_field_by_field(viewer: Client, fleet: None, fields: dict[str, str], words: str) -> None:
    good = {"provider": "claude", "auth_type": "oauth", "billing": "metered", "overage": "unknown"}
    html = ask(viewer, "billing", **{**good, **fields})
    assert words in text_of(html)
    assert moves_in(html) == set()


def test_a_tier_override_moves_metered_connections(viewer: Client, fleet: None) -> None:
    html = ask(viewer, "tier-override", provider="deepseek", model_pattern="", tier="free")
    assert {name for name, _, _ in moves_in(html)} == {"ds-api"}
    made = TierOverrideFactory(provider="deepseek", model_pattern=None, tier="free")
    html = ask(viewer, "tier-override", id=made.pk, delete="on")
    assert {name for name, _, _ in moves_in(html)} == {"ds-api"}


def test_a_free_provider_moves_its_metered_connections(viewer: Client, fleet: None) -> None:
    assert {name for name, _, _ in moves_in(ask(viewer, "free-provider", provider="DeepSeek"))} == {"ds-api"}
    made = FreeProviderFactory(provider="deepseek")
    assert {name for name, _, _ in moves_in(ask(viewer, "free-provider", id=made.pk, delete="1"))} == {"ds-api"}


def test_an_overage_override_is_tried_on_one_connection(viewer: Client, fleet: None) -> None:
    """B4: the plan that may bill past its allowance leaves the plan pools and is marked."""
    sent = {"provider": "claude", "connection_id": "claude-main", "overage_override": "meters-to-paid"}
    html = ask(viewer, "override", **sent)
    assert moves_in(html) == {("claude-main", "usable", "usable")}
    assert "may bill past the plan" in html
    assert "−2 out" in html
    assert "No place" in ask(viewer, "override", **{**sent, "overage_override": ""})


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"connection_id": "nobody"}, "not there any more"),
        ({"connection_id": "a b"}, "connection id: A connection id is"),
        ({"overage_override": "never"}, "overage override: Choose one of"),
    ],
)
def test_a_wrong_override_is_told(viewer: Client, fleet: None, fields: dict[str, str], words: str) -> None:
    sent = {"provider": "claude", "connection_id": "claude-main", "overage_override": "unknown", **fields}
    assert words in text_of(ask(viewer, "override", **sent))


def test_without_a_script_another_form_gets_a_page(viewer: Client, fleet: None) -> None:
    answer = viewer.post("/whatif", {"kind": "free-provider", "provider": "deepseek"})
    html = answer.content.decode()
    assert "<h1>What would move</h1>" in html
    assert {name for name, _, _ in moves_in(html)} == {"ds-api"}
