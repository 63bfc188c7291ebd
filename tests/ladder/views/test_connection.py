"""The page of one connection, without a browser (SPEC 5, 2)."""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from html import unescape
from typing import Any

import pytest
import time_machine
from django.contrib.auth.models import Group
from django.db import connection as database
from django.test import Client
from django.test.utils import CaptureQueriesContext

from billing_catalog.models import BillingEntry
from ladder.core.ids import POOL_IDS
from ladder.models import Breaker, Connection, Cooldown, QuotaWindow
from ladder.services.connections import create_connection, delete_connection, update_connection
from omniroute_admin.common import clock
from omniroute_admin.common.history import Actor
from omniroute_admin.common.services.revision import deciding_write
from tests.browser.fleet import Window, add_reading, make_catalogue, make_connection, make_fleet
from tests.factories import ModelPriceFactory, ProviderAliasFactory, RungFlipFactory, UsageEventFactory

pytestmark = pytest.mark.django_db
MOMENT = datetime(2026, 8, 27, 8, 12, 40, tzinfo=UTC)
ALT = "/connections/claude/claude-alt"
MIRA = Actor(name="mira")


@pytest.fixture(autouse=True)
def moment(settings: Any) -> Any:
    settings.TIME_ZONE_DISPLAY = "Europe/Berlin"
    with time_machine.travel(MOMENT, tick=False) as traveller:
        yield traveller


@pytest.fixture
def operator(client: Client, django_user_model: Any) -> Client:
    client.force_login(django_user_model.objects.create_superuser("mira", "mira@example.com", "x"))
    return client


@pytest.fixture
def viewer(django_user_model: Any) -> Client:
    user = django_user_model.objects.create_user("vera", password="x")
    user.groups.add(Group.objects.get(name="viewer"))
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def fleet(db: None) -> None:
    make_fleet(now=clock.now())


def text_of(answer: Any) -> str:
    """Return the words of a page: tags gone, blanks single."""
    bare = re.sub(r"<[^>]+>", " ", answer.content.decode())
    return (
        re.sub(r"\s+", " ", unescape(bare)).replace(" ,", ",").replace(" .", ".").replace("( ", "(").replace(" )", ")")
    )


def token_in(html: str) -> str:
    found = re.search(r'data-token="([^"]+)"', html)
    assert found
    return found[1]


def test_the_page_tells_state_class_cooldown_and_pools_in_the_words_of_the_api(operator: Client, fleet: None) -> None:
    """C2, P8: asked and effective, and the code that a router gets."""
    answer = operator.get(ALT)
    text = text_of(answer)
    assert "Out of every pool until 10:29 (in 17 min), then it needs a fresh reading" in text
    assert "Asked until 13:12" in text
    assert "clamped to the reset of 5h" in text
    assert "by router-1" in text
    assert "a usable reading newer than the report, or an operator" in text
    assert "hard-stop, cannot bill past the plan" in text
    assert "catalogue row claude + oauth provider+auth_type" in text
    explained = operator.get("/api/v1/connections/claude-alt/explain").json()
    assert {place["code"] for place in explained["pools"]} == {"cooldown", "rung_not_in_pool", "capability_missing"}
    for code in {place["code"] for place in explained["pools"]}:
        assert code in text.replace("_ ", "_")
    assert all(pool_id in text.replace(": ", ":").replace("/ ", "/") for pool_id in POOL_IDS)


def test_a_held_window_says_above_what_it_comes_back(operator: Client, fleet: None) -> None:
    """Q4, Q5: hysteresis in words."""
    text = text_of(operator.get("/connections/claude/claude-team"))
    assert "Held until above 5 %." in text
    assert "4 % left 96 % used" in text


def test_a_stale_reading_is_told_as_what_it_was(operator: Client, fleet: None) -> None:
    """Q3."""
    text = text_of(operator.get("/connections/codex/codex-ops"))
    assert "was 35 % left" in text
    assert "Older than 180 s: not verified." in text


def test_a_reset_that_passed_draws_no_line_and_says_what_is_waited_for(operator: Client, fleet: None) -> None:
    """Q1."""
    answer = operator.get("/connections/cursor/cursor-seat")
    assert "Its reset has passed, 10:00 : it waits for a reading after it." in text_of(answer)
    assert "no line to draw" in text_of(answer)


def test_a_window_without_a_known_length_has_no_pace_and_says_so(operator: Client) -> None:
    make_catalogue()
    make_connection("cursor", "seat", "oauth", (Window("billing_cycle", "30", 600, 10),), now=clock.now())
    assert "How long it lasts is not known, so no pace is told." in text_of(operator.get("/connections/cursor/seat"))


def test_the_readings_tell_the_length_that_a_name_does_not(operator: Client) -> None:
    make_catalogue()
    now = clock.now()
    made = make_connection("cursor", "seat", "oauth", (Window("billing_cycle", "30", 600, 0),), now=now)
    window = made.windows.get()
    add_reading(window, left="9", observed_at=now - timedelta(minutes=700))
    window.readings.filter(observed_at__lt=now).update(reset_at=now - timedelta(minutes=600))
    text = text_of(operator.get("/connections/cursor/seat"))
    assert "20 % ahead of even pace. Reaches the cutoff" in text


def test_the_pace_is_told_with_the_numbers_of_the_line_as_a_table(operator: Client) -> None:
    make_catalogue()
    now = clock.now()
    made = make_connection("claude", "c1", "oauth", (Window("5h", "25", 150, 0),), now=now)
    for minutes, left in ((150, "100"), (75, "60")):
        add_reading(made.windows.get(), left=left, observed_at=now - timedelta(minutes=minutes))
    answer = operator.get("/connections/claude/c1")
    assert (
        "25 % ahead of even pace. Reaches the cutoff 10:58, 1 h 44 min before its reset 12:42 (in 2 h 30 min)."
        in text_of(answer)
    )
    html = answer.content.decode()
    assert 'points="24,8 89,40 154,68"' in html
    assert re.findall(r"<td>(\d+ %)</td>", html) == ["100 %", "60 %", "25 %"]


def test_an_own_cutoff_moves_the_line_and_is_told_as_such(operator: Client) -> None:
    """Q7."""
    make_catalogue()
    made = make_connection("claude", "c1", "oauth", (Window("5h", "60", 150, 0),), now=clock.now())
    made.windows.update(exit_cutoff_percent=Decimal(20))
    answer = operator.get("/connections/claude/c1")
    assert "cutoff 20 % (own)" in text_of(answer)
    assert 'class="cut" d="M24 72H284"' in answer.content.decode()


def test_a_used_up_window_says_since_when(operator: Client) -> None:
    make_catalogue()
    now = clock.now()
    made = make_connection("claude", "c1", "oauth", (Window("5h", "1", 60, 0),), now=now)
    for minutes, left in ((90, "40"), (30, "2"), (20, "1.5")):
        add_reading(made.windows.get(), left=left, observed_at=now - timedelta(minutes=minutes))
    text = text_of(operator.get("/connections/claude/c1"))
    assert "Used up since 09:42, 1 h 30 min before its reset. Resets 11:12" in text


def test_a_cooldown_of_one_model_and_an_endless_one_are_told_with_the_breaker(operator: Client, fleet: None) -> None:
    """C2, C3."""
    main = Connection.objects.get(connection_id="claude-main")
    common = {"connection": main, "reported_at": clock.now(), "set_by": "router-1"}
    Cooldown.objects.create(cause="rate_limit", model="claude-haiku-4-5", asked_until=clock.now() + timedelta(hours=1),
                            effective_until=clock.now() + timedelta(hours=1), **common)  # fmt: skip
    Cooldown.objects.create(cause="auth", asked_until=None, effective_until=None, origin="status 401", **common)
    with deciding_write():
        Breaker.objects.create(
            provider="claude", open_until=clock.now() + timedelta(minutes=5), reported_at=clock.now()
        )
    text = text_of(operator.get("/connections/claude/claude-main"))
    assert "only claude-haiku-4-5" in text
    assert "Effective until until it is cleared, as asked" in text
    assert "status 401" in text
    assert "an operator only" in text
    assert "Breaker of claude open" in text


def test_an_override_is_told_with_its_reason_and_what_it_replaces(operator: Client, fleet: None) -> None:
    """B4."""
    row = Connection.objects.get(connection_id="devin-core")
    update_connection(
        connection=row, changes={"overage_override": "hard-stop"}, actor=MIRA, reason="pay-as-you-go is off",
        now=clock.now()
    )  # fmt: skip
    text = text_of(operator.get("/connections/devin-desktop/devin-core"))
    assert "Override hard-stop, in place of meters-to-paid pay-as-you-go is off" in text


def test_the_review_of_the_row_that_matched_is_told(operator: Client, fleet: None) -> None:
    rows = BillingEntry.objects.filter(provider="claude")
    rows.update(reviewed_on="2026-01-01", reviewed_by="jonas", source_url="javascript:alert(1)", reason="by contract")
    answer = operator.get(ALT)
    assert "2026-01-01 by jonas, 238 days ago long ago" in text_of(answer)
    assert "by contract" in text_of(answer)
    assert "javascript:" not in answer.content.decode()


def test_the_pools_are_told_for_the_models_that_are_asked_for(operator: Client, fleet: None) -> None:
    text = text_of(operator.get("/connections/claude/claude-main?models=HAIKU"))
    assert "For claude-haiku-4-5, 2 in all" in text
    assert "None of 2 models has “ opus ” in its name." in text_of(operator.get(f"{ALT}?models=opus"))


def test_many_models_are_paged(operator: Client, fleet: None) -> None:
    ModelPriceFactory.create_batch(60, provider="claude")
    assert "For models 51 to 62 of 62" in text_of(operator.get(f"{ALT}?page=2"))
    assert "For models 51 to 62 of 62" in text_of(operator.get(f"{ALT}?page=99999"))


def test_what_it_spent_is_told_by_rung_with_plan_value_apart(operator: Client, fleet: None) -> None:
    """M5."""
    alt, api = Connection.objects.get(connection_id="claude-alt"), Connection.objects.get(connection_id="ds-api")
    now = clock.now()
    UsageEventFactory(connection=alt, occurred_at=now, booked_at=now, rung="subscription", billing="subscription",
                      money_kind="plan", booked_cost=Decimal("41.87"))  # fmt: skip
    UsageEventFactory(connection=api, occurred_at=now, booked_at=now, rung="cheap", booked_cost=Decimal("0.5"))
    text = text_of(operator.get(ALT))
    assert "Plan value $41.87 at list price, draws on no budget" in text
    assert "Overage $0.00" in text
    assert "Settled" not in text
    assert "Settled $0.50" in text_of(operator.get("/connections/deepseek/ds-api"))


def test_flips_and_changes_stand_in_one_list_newest_first(operator: Client, fleet: None) -> None:
    alt = Connection.objects.get(connection_id="claude-alt")
    RungFlipFactory(connection=alt, at=clock.now() - timedelta(hours=2), cause="cooldown", to_state="cooldown",
                    code="cooldown")  # fmt: skip
    update_connection(
        connection=alt, changes={"label": "second seat"}, actor=MIRA, reason="to tell them apart", now=clock.now()
    )
    text = text_of(operator.get(ALT))
    change, flip = text.index("to tell them apart"), text.index("a cooldown or breaker")
    assert change < flip
    assert "usable → to cooldown on subscription" in text


def test_a_long_history_is_paged_and_ends(operator: Client, fleet: None) -> None:
    alt = Connection.objects.get(connection_id="claude-alt")
    for number in range(45):
        RungFlipFactory(connection=alt, at=clock.now() - timedelta(minutes=number + 1), code=f"quota_{number}")
    assert "history=2" in operator.get(ALT).content.decode()
    assert "Older" not in text_of(operator.get(f"{ALT}?history=3"))
    assert "Nothing is told of it on this page" in text_of(operator.get(f"{ALT}?history=40"))


HAND_EDITED = [
    "?page=0",
    "?page=x",
    "?windows=-1",
    "?history=99999999999999",
    "?past=abc",
    "?past=0x1",
    "?models=%00%ff",
]
HAND_EDITED += ["?act=nonsense&window=%22%3E", "?models=" + "x" * 3000]
NOT_THERE = [
    "claude/nobody",
    "nowhere/claude-alt",
    "claude/%00",
    "claude/a/b",
    "claude/claude-alt/explode",
    "x/y/pause",
]


@pytest.mark.parametrize("query", HAND_EDITED)
def test_a_hand_edited_query_still_shows_a_page(operator: Client, fleet: None, query: str) -> None:
    assert operator.get(ALT + query).status_code == 200


@pytest.mark.parametrize("path", NOT_THERE)
def test_a_hand_edited_address_is_not_found(operator: Client, fleet: None, path: str) -> None:
    assert operator.get(f"/connections/{path}").status_code == 404


def test_capitals_lead_to_the_one_address(operator: Client, fleet: None) -> None:
    """SPEC 1: names are canonical."""
    answer = operator.get("/connections/CLAUDE/claude-alt")
    assert (answer.status_code, answer["Location"]) == (302, ALT)


def test_noauth_is_told_per_provider(operator: Client, fleet: None) -> None:
    """SPEC 1: one noauth per provider."""
    create_connection(connection_id="noauth", provider="kiro", actor=MIRA, reason="", now=clock.now())
    assert "No model" not in text_of(operator.get("/connections/opencode/noauth"))
    answer = operator.get("/connections/kiro/noauth")
    assert "the reserved keyless path" in text_of(answer)
    assert 'name="auth_type"' not in answer.content.decode()


def test_a_deleted_connection_says_when_and_keeps_history_and_spend(operator: Client, fleet: None) -> None:
    """SPEC 3: deleting takes out of routing, not out of the books."""
    alt = Connection.objects.get(connection_id="claude-alt")
    UsageEventFactory(connection=alt, occurred_at=MOMENT, booked_at=MOMENT, rung="subscription",
                      billing="subscription", money_kind="plan", booked_cost=Decimal(7))  # fmt: skip
    delete_connection(connection=alt, actor=MIRA, reason="seat given back", now=clock.now())
    answer = operator.get(ALT)
    text = text_of(answer)
    assert "This connection was deleted 10:12 (0 s ago)" in text
    assert "seat given back" in text
    assert "Plan value $7.00" in text
    assert "<form method" not in answer.content.decode().split('id="main"')[1]


def test_a_name_used_again_leads_to_the_earlier_one(operator: Client, fleet: None) -> None:
    alt = Connection.objects.get(connection_id="claude-alt")
    delete_connection(connection=alt, actor=MIRA, reason="", now=clock.now())
    create_connection(connection_id="claude-alt", provider="claude", actor=MIRA, reason="", now=clock.now())
    assert f"?past={alt.pk}" in operator.get(ALT).content.decode()
    assert "This connection was deleted" in text_of(operator.get(f"{ALT}?past={alt.pk}"))
    other = Connection.objects.get(connection_id="claude-main")
    assert operator.get(f"{ALT}?past={other.pk}").status_code == 302


@pytest.mark.parametrize("path", [ALT, "/live" + ALT, "/connections"])
def test_a_page_costs_as_many_queries_for_much_as_for_little(operator: Client, path: str) -> None:
    def fill(connections: int, windows: int) -> None:
        with deciding_write():
            for number in range(connections):
                make_connection(
                    "claude", f"more-{connections}-{number}", "oauth", (Window("5h", "50", 60, 5),), now=clock.now()
                )
            for number in range(windows):
                window = QuotaWindow.objects.create(
                    connection=Connection.objects.get(connection_id="claude-alt"), window=f"{windows}-{number}h",
                    remaining_percent=1, observed_at=clock.now(), received_at=clock.now(),
                    reset_at=clock.now() + timedelta(minutes=30),
                )  # fmt: skip
                add_reading(window, left="1", observed_at=clock.now())
                RungFlipFactory(
                    connection=window.connection, at=clock.now() - timedelta(minutes=number + windows * 300)
                )

    make_fleet(now=clock.now())
    fill(5, 5)
    operator.get(path)
    with CaptureQueriesContext(database) as few:
        operator.get(path)
    fill(200, 60)
    operator.get(path)
    with CaptureQueriesContext(database) as many:
        answer = operator.get(path)
    assert len(many) == len(few)
    assert len(answer.content) < 200_000


def test_an_unchanged_picture_is_answered_without_content_by_two_queries(operator: Client, fleet: None) -> None:
    token = token_in(operator.get(ALT).content.decode())
    with CaptureQueriesContext(database) as queries:
        answer = operator.get(f"/live{ALT}", {"v": token})
    assert answer.status_code == 204
    assert len(queries) <= 2


def test_a_poll_sends_only_the_regions_that_changed(operator: Client, fleet: None) -> None:
    token = token_in(operator.get(ALT).content.decode())
    row = Connection.objects.get(connection_id="claude-alt")
    update_connection(connection=row, changes={"is_enabled": False}, actor=MIRA, reason="", now=clock.now())
    html = operator.get(f"/live{ALT}", {"v": token}).content.decode()
    assert re.findall(r'id="r-(\w+)" hx-swap-oob', html) == ["now", "hist", "class", "pools", "foot", "acts"]
    assert operator.get(f"/live{ALT}", {"v": token_in(html)}).status_code == 204


def test_a_change_elsewhere_leaves_the_forms_alone(operator: Client, fleet: None) -> None:
    token = token_in(operator.get(ALT).content.decode())
    with deciding_write():
        Connection.objects.filter(connection_id="ds-api").update(auth_type="cookie")
    html = operator.get(f"/live{ALT}", {"v": token}).content.decode()
    assert re.findall(r'id="r-(\w+)" hx-swap-oob', html) == ["foot"]


def test_a_pace_moves_by_itself_within_a_minute(operator: Client, moment: Any) -> None:
    make_catalogue()
    make_connection("claude", "c1", "oauth", (Window("5h", "25", 150, 0),), now=clock.now())
    token = token_in(operator.get("/connections/claude/c1").content.decode())
    moment.shift(59)
    assert operator.get("/live/connections/claude/c1", {"v": token}).status_code == 204
    moment.shift(1)
    assert operator.get("/live/connections/claude/c1", {"v": token}).status_code == 200


def test_an_alias_leads_to_the_provider_that_it_means(operator: Client, fleet: None) -> None:
    """SPEC 1."""
    ProviderAliasFactory(alias="anthropic", provider="claude")
    assert operator.get("/connections/anthropic/claude-alt")["Location"] == ALT


def test_a_poll_of_a_deleted_connection_tells_so(operator: Client, fleet: None) -> None:
    token = token_in(operator.get(ALT).content.decode())
    row = Connection.objects.get(connection_id="claude-alt")
    delete_connection(connection=row, actor=MIRA, reason="", now=clock.now())
    answer = operator.get(f"/live{ALT}", {"v": token})
    assert "This connection was deleted" in text_of(answer)
    assert "claude/claude-alt · deleted" in text_of(answer)


def test_a_stranger_is_led_to_the_login_and_a_poll_refused(client: Client, fleet: None) -> None:
    assert client.get(ALT)["Location"] == f"/login?next={ALT}"
    assert client.get(f"/live{ALT}").status_code == 401


def test_a_viewer_sees_everything_but_the_acts(viewer: Client, fleet: None) -> None:
    html = viewer.get(ALT).content.decode()
    assert "Quota windows" in html
    assert "Set cutoff" not in html
    assert "Clear cooldown" not in html
    assert "All in Audit" not in html


def test_names_labels_and_reasons_are_text(operator: Client, fleet: None) -> None:
    row = Connection.objects.get(connection_id="claude-alt")
    evil = "<script>alert(1)</script> \u202e 日本語 " + "x" * 150
    update_connection(connection=row, changes={"label": evil[:200]}, actor=MIRA, reason=evil * 50, now=clock.now())
    answer = operator.get(ALT)
    assert "<script>alert" not in answer.content.decode()
    assert "日本語" in text_of(answer)
