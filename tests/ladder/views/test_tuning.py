"""The tuning page without a browser: what it shows, refuses and saves (SPEC 5, 3)."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
import time_machine
from django.db import connection as database
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from ladder.core.values import Period, Weekday
from ladder.models import Connection, LadderSettings, RungBudget
from ladder.selectors.settings import read_stored_settings
from ladder.selectors.tuning import texts_of
from ladder.services.settings import BudgetChanges, BudgetsChanges, SettingsChanges, ThresholdChanges, update_settings
from omniroute_admin.common import clock
from omniroute_admin.common.forms import seen_text
from omniroute_admin.common.history import Actor
from tests.browser.fleet import Window, make_connection, make_fleet
from tests.factories import QuotaReadingFactory, QuotaWindowFactory, SpendHoldFactory, UsageEventFactory
from tests.ladder.views.tuning import client_of, fields_of, open_page, part, text_of

pytestmark = pytest.mark.django_db
MOMENT = datetime(2026, 8, 27, 8, 12, 40, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _at_the_moment() -> Any:
    with time_machine.travel(MOMENT, tick=False):
        yield


@pytest.fixture
def fleet(db: None) -> None:
    make_fleet(now=clock.now())


@pytest.fixture
def operator(django_user_model: Any) -> Client:
    return client_of(django_user_model, "mira", "operator")


@pytest.fixture
def viewer(django_user_model: Any) -> Client:
    return client_of(django_user_model, "vera", "viewer")


def texts() -> dict[str, str]:
    return texts_of(read_stored_settings())


def other(who: str = "jonas", **fields: Any) -> None:
    update_settings(changes=SettingsChanges(**fields), actor=Actor(who), reason="meanwhile", now=clock.now())


# --- who -------------------------------------------------------------------------------------------------------------


def test_a_stranger_is_led_to_signing_in(client: Client) -> None:
    assert client.get("/tuning")["Location"] == "/login?next=/tuning"


def test_somebody_without_a_role_is_told_which_one_is_needed(django_user_model: Any) -> None:
    answer = client_of(django_user_model, "nobody").get("/tuning")
    assert answer.status_code == 403
    assert "viewer" in text_of(answer.content.decode())


@pytest.mark.parametrize("role", ["viewer", "curator", "auditor"])
def test_a_role_that_may_not_change_settings_sees_no_button_and_is_refused(django_user_model: Any, role: str) -> None:
    client = client_of(django_user_model, "vera", role)
    html = client.get("/tuning").content.decode()
    assert "save-words" not in html
    assert "/reset" not in html
    assert 'type="file"' not in html
    sent = {**fields_of(html), "exit_cutoff_percent": "3", "reason": "no"}
    answer = client.post("/tuning", sent)
    assert answer.status_code == 403
    assert "operator or administrator" in text_of(answer.content.decode())
    assert texts()["exit_cutoff_percent"] == "2"


@pytest.mark.parametrize(
    ("role", "sees"), [("viewer", False), ("curator", True), ("auditor", True), ("operator", True)]
)
def test_who_may_not_read_the_audit_sees_no_names_and_reasons(django_user_model: Any, role: str, sees: bool) -> None:
    other(exit_cutoff_percent=Decimal(3))
    html = client_of(django_user_model, "vera", role).get("/tuning").content.decode()
    assert ("jonas" in html) is sees
    assert ("meanwhile" in html) is sees


def test_a_form_from_elsewhere_is_refused(django_user_model: Any) -> None:
    mira = client_of(django_user_model, "mira", "operator")
    checked = Client(enforce_csrf_checks=True, headers={"Cookie": f"sessionid={mira.cookies['sessionid'].value}"})
    assert checked.post("/tuning", {**open_page(mira), "reason": "x"}).status_code == 403


# --- what it shows ---------------------------------------------------------------------------------------------------


def test_the_form_opens_as_the_settings_are_stored(operator: Client, fleet: None) -> None:
    sent = open_page(operator)
    assert sent["exit_cutoff_percent"] == "2"
    assert (sent["cheap_kind"], sent["cheap_amount"], sent["cheap_period"]) == ("amount", "5", "weekly")
    assert (sent["cheap_zone"], sent["premium_kind"], sent["premium_amount"]) == ("Europe/Berlin", "off", "")


def test_a_budget_tells_spend_holds_and_the_end_of_its_window_in_its_own_zone(operator: Client, fleet: None) -> None:
    """M2, M3: by the function that enforces it; M9: since when it counts."""
    UsageEventFactory(booked_cost=Decimal("3.65"), occurred_at=clock.now() - timedelta(days=2))
    SpendHoldFactory(amount_usd=Decimal("0.15"), expires_at=clock.now() + timedelta(minutes=5))
    html = operator.get("/tuning").content.decode()
    assert part(html, 'id="line-cheap"', "</p>").endswith(
        "$3.65 spent + $0.15 on hold, since Mon 24 Aug 00:00 until Mon 31 Aug 00:00 Europe/Berlin."
        " A new amount keeps window and usage."
    )
    assert "no spend reported" in part(html, 'id="line-premium"', "</p>")


def test_a_floor_below_the_cutoff_is_shown_as_what_it_counts_as(operator: Client) -> None:
    """SPEC 2, Settings: accepted as max(), but shown as such."""
    other(exit_cutoff_percent=Decimal(4), reentry_min_remaining_percent=Decimal(1))
    html = operator.get("/tuning").content.decode()
    assert "counts as 4 %, the exit cutoff" in part(html, 'id="band"', "</div>")


@pytest.mark.parametrize(("minutes", "is_short"), [(5, True), (3, False), (1, False)])
def test_an_age_shorter_than_the_usual_gap_is_told_in_words(operator: Client, minutes: int, is_short: bool) -> None:
    """SPEC 2, Settings: `subscription` is then empty most of the time; 180 s are just long enough for 3 minutes."""
    window = QuotaWindowFactory()
    for number in range(6):
        QuotaReadingFactory(window=window, observed_at=clock.now() - timedelta(minutes=minutes * number))
    html = operator.get("/tuning").content.decode()
    words = part(html, 'id="h-max_reading_age_seconds"', "</p>")
    assert f"every {minutes} min" in words
    assert ("empty most of the time" in words) is is_short


def test_the_history_of_all_settings_is_told_newest_first_and_leads_to_each_version(
    operator: Client, fleet: None
) -> None:
    other(exit_cutoff_percent=Decimal(3))
    other("mira", rung_budgets=BudgetsChanges(premium=BudgetChanges(amount_usd=None)))
    html = operator.get("/tuning").content.decode()
    panel = part(html, 'id="h-history"', "</section>")
    assert panel.index("premium budget off → no limit") < panel.index("exit cutoff 2 % → 3 %")
    assert "saved 08:12 by mira" in part(html, "<h1>Tuning", "</div>")
    version = RungBudget.history.filter(rung="premium").order_by("-history_id").first()
    assert f'href="/audit/budget/{version.history_id}"' in html


def test_html_and_long_reasons_are_text(operator: Client) -> None:
    reason = "<script>alert(1)</script> אבג 漢字 " + "x" * 9_900
    update_settings(
        changes=SettingsChanges(exit_cutoff_percent=Decimal(3)),
        actor=Actor("<b>jonas</b>"),
        reason=reason,
        now=clock.now(),
    )
    html = operator.get("/tuning").content.decode()
    assert "<script>alert" not in html
    assert "<b>jonas" not in html
    assert "&lt;b&gt;jonas&lt;/b&gt;" in html


def test_the_queries_do_not_grow_with_the_fleet_and_the_history(operator: Client, fleet: None) -> None:
    def queries() -> int:
        with CaptureQueriesContext(database) as asked:
            assert operator.get("/tuning").status_code == 200
        return len(asked)

    other(exit_cutoff_percent=Decimal(3), rung_budgets=BudgetsChanges(cheap=BudgetChanges(amount_usd=Decimal(1))))
    other(tier_thresholds=ThresholdChanges(cheap=Decimal(2)))
    few = queries()
    for number in range(30):
        make_connection("claude", f"more-{number}", "oauth", (Window("5h", "50", 87, 22),), now=clock.now())
        other(exit_cutoff_percent=Decimal(number + 4))
    assert queries() <= few < 15


# --- saving ----------------------------------------------------------------------------------------------------------


def test_a_change_is_saved_with_the_name_and_the_reason_of_who_sent_it(operator: Client) -> None:
    sent = {**open_page(operator), "exit_cutoff_percent": "2.50", "cheap_kind": "off", "reason": "  cap it  "}
    answer = operator.post("/tuning", sent, follow=True)
    assert answer.redirect_chain == [("/tuning", 302)]
    assert "Saved 2 changes: Exit cutoff 2 % → 2.5 %; Budget of cheap no limit → off." in text_of(
        answer.content.decode()
    )
    newest = LadderSettings.history.order_by("-history_id").first()
    assert (newest.history_actor, newest.history_user.username) == ("mira", "mira")
    assert (newest.history_change_reason, newest.history_date) == ("cap it", clock.now())
    assert (texts()["exit_cutoff_percent"], texts()["cheap_amount"]) == ("2.5", "off")


@pytest.mark.parametrize("reason", ["", "   ", "\n"])
def test_saving_asks_why(operator: Client, reason: str) -> None:
    answer = operator.post("/tuning", {**open_page(operator), "exit_cutoff_percent": "3", "reason": reason})
    assert answer.status_code == 400
    assert "Say why" in text_of(answer.content.decode())
    assert texts()["exit_cutoff_percent"] == "2"


def test_a_reason_of_ten_thousand_characters_is_kept_and_a_longer_one_refused(operator: Client) -> None:
    sent = {**open_page(operator), "exit_cutoff_percent": "3"}
    assert operator.post("/tuning", {**sent, "reason": "y" * 10_001}).status_code == 400
    assert operator.post("/tuning", {**sent, "reason": "y" * 10_000}).status_code == 302
    assert len(LadderSettings.history.order_by("-history_id").first().history_change_reason) == 10_000


def test_every_wrong_field_is_named_beside_itself_and_what_was_typed_stays(operator: Client) -> None:
    sent = {
        **open_page(operator),
        "exit_cutoff_percent": "2,5",
        "max_reading_age_seconds": "9",
        "cheap_kind": "amount",
        "cheap_amount": "",
        "premium_zone": "Mars/Base",
        "tier_free": "7",
        "reason": "all wrong",
    }
    answer = operator.post("/tuning", sent)
    html = answer.content.decode()
    assert answer.status_code == 400
    assert "with a point" in part(html, 'id="e-exit_cutoff_percent"', "</p>")
    assert "from 10 to 3,600" in part(html, 'id="e-max_reading_age_seconds"', "</p>")
    assert "choose No limit or Off" in part(html, 'id="e-cheap_amount"', "</p>")
    assert "IANA zone" in part(html, 'id="e-premium_zone"', "</p>")
    assert "not below that of free" in part(html, 'id="e-tier_cheap"', "</p>")
    assert "5 fields need another value" in part(html, 'id="wrong"', "</section>")
    kept = fields_of(html)
    assert {name: kept[name] for name in sent if name not in {"reason", "seen"}} == {
        name: value for name, value in sent.items() if name not in {"reason", "seen"}
    }
    assert "all wrong</textarea>" in html
    assert texts()["tier_free"] == "0"


@pytest.mark.parametrize("seen", ["", "nonsense", seen_text({"exit_cutoff_percent": "2"})], ids=["none", "odd", "part"])
def test_a_form_that_is_not_whole_is_refused_and_keeps_what_was_typed(operator: Client, seen: str) -> None:
    sent = {**open_page(operator), "exit_cutoff_percent": "3", "reason": "x", "seen": seen}
    answer = operator.post("/tuning", sent)
    assert answer.status_code == 400
    assert fields_of(answer.content.decode())["exit_cutoff_percent"] == "3"
    assert texts()["exit_cutoff_percent"] == "2"


def test_a_body_without_any_field_is_refused_in_words(operator: Client) -> None:
    answer = operator.post("/tuning", {})
    assert answer.status_code == 400
    assert "Open the page again" in text_of(answer.content.decode())


def test_a_double_submit_and_the_back_button_save_once(operator: Client) -> None:
    sent = {**open_page(operator), "exit_cutoff_percent": "3", "reason": "once"}
    operator.post("/tuning", sent)
    before = LadderSettings.history.count()
    answer = operator.post("/tuning", sent, follow=True)
    assert "Saved already" in text_of(answer.content.decode())
    assert LadderSettings.history.count() == before


def test_an_unchanged_form_saves_nothing_and_says_so(operator: Client) -> None:
    before = LadderSettings.history.count()
    answer = operator.post("/tuning", {**open_page(operator), "reason": "nothing"}, follow=True)
    assert "Nothing was changed" in text_of(answer.content.decode())
    assert LadderSettings.history.count() == before


# --- two people ------------------------------------------------------------------------------------------------------


def clash(operator: Client) -> tuple[dict[str, str], str]:
    sent = {**open_page(operator), "reentry_min_remaining_percent": "3", "reason": "let it in"}
    other(reentry_min_remaining_percent=Decimal(6), max_reading_age_seconds=240)
    answer = operator.post("/tuning", sent)
    assert answer.status_code == 409
    html = answer.content.decode()
    return fields_of(html), html


def test_the_second_is_told_what_the_first_changed_and_nothing_is_saved(operator: Client) -> None:
    kept, html = clash(operator)
    panel = part(html, 'id="conflict"', "</section>")
    assert "jonas saved other settings" in panel
    assert "Re-entry floor 5 % 6 % 3 %" in panel
    assert "Maximum age of a reading 180 s 240 s not touched theirs is taken" in panel
    assert (kept["reentry_min_remaining_percent"], kept["max_reading_age_seconds"]) == ("3", "240")
    assert "let it in</textarea>" in html
    assert texts()["reentry_min_remaining_percent"] == "6"


@pytest.mark.parametrize(("keep", "text"), [("mine", "3"), ("theirs", "6")])
def test_what_is_chosen_per_field_is_saved_then(operator: Client, keep: str, text: str) -> None:
    kept, _ = clash(operator)
    sent = {**kept, "keep_reentry_min_remaining_percent": keep, "exit_cutoff_percent": "1", "reason": "both"}
    assert operator.post("/tuning", sent).status_code == 302
    now = texts()
    assert (now["reentry_min_remaining_percent"], now["exit_cutoff_percent"]) == (text, "1")
    assert now["max_reading_age_seconds"] == "240"


def test_a_third_who_saves_in_between_is_asked_about_again(operator: Client) -> None:
    kept, _ = clash(operator)
    other("kim", reentry_min_remaining_percent=Decimal(7))
    answer = operator.post("/tuning", {**kept, "keep_reentry_min_remaining_percent": "mine", "reason": "again"})
    assert answer.status_code == 409
    assert "kim saved other settings" in part(answer.content.decode(), 'id="conflict"', "</section>")


def test_a_save_of_another_budget_is_told_of_its_own_saver(operator: Client) -> None:
    sent = {**open_page(operator), "exit_cutoff_percent": "3", "reason": "x"}
    other(
        "kim", rung_budgets=BudgetsChanges(premium=BudgetChanges(period=Period.WEEKLY, week_starts_on=Weekday.FRIDAY))
    )
    panel = part(operator.post("/tuning", sent).content.decode(), 'id="conflict"', "</section>")
    assert "kim saved" in panel
    assert "Window of premium daily weekly not touched" in panel


def test_nothing_stored_is_touched_by_looking(operator: Client, viewer: Client, fleet: None) -> None:
    before = list(LadderSettings.objects.values()), list(RungBudget.objects.values()), Connection.objects.count()
    for client in (operator, viewer):
        client.get(reverse("tuning"))
        client.head(reverse("tuning"))
    assert (
        list(LadderSettings.objects.values()),
        list(RungBudget.objects.values()),
        Connection.objects.count(),
    ) == before
