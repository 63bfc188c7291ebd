"""The tuning page in a real browser: typed, previewed, saved, and seen on another page (SPEC 5, 3)."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from playwright.sync_api import Browser, Page, Route, expect

from billing_catalog.models import BillingEntry
from ladder.models import LadderSettings, RungBudget
from tests.browser.conftest import axe_violations

pytestmark = [pytest.mark.browser, pytest.mark.sqlite]


def moved(page: Page, name: str) -> Any:
    return page.locator("#whatif .moves tbody tr", has_text=name)


def test_a_cutoff_is_tuned_previewed_and_saved_and_the_ladder_changes_by_itself(
    signed_in: Page, live_server: Any, fleet: None
) -> None:
    ladder = signed_in.context.new_page()
    ladder.goto(live_server.url)
    ladder.evaluate("window.untouched = true")
    row = ladder.locator("#r-conns tbody tr", has=ladder.locator("a[id$='-claude-main']"))
    expect(row.locator(".state")).to_have_text("usable")

    signed_in.goto(live_server.url + "/tuning")
    signed_in.get_by_label("Exit cutoff").fill("50")
    expect(moved(signed_in, "claude/claude-main")).to_contain_text("quota_exhausted")
    expect(signed_in.locator("#was-exit_cutoff_percent")).to_have_text("changed, was 2 %")
    assert LadderSettings.objects.get().exit_cutoff_percent == 2
    signed_in.get_by_label("Why", exact=True).fill("tried in the browser")
    signed_in.get_by_role("button", name="Save 1 change").click()

    expect(signed_in.get_by_role("status").first).to_contain_text("Saved 1 change: Exit cutoff 2 % → 50 %.")
    expect(signed_in.get_by_label("Exit cutoff")).to_have_value("50")
    ladder.bring_to_front()
    expect(row.locator(".state")).to_have_text("exhausted")
    assert ladder.evaluate("window.untouched") is True


def test_who_writes_an_amount_has_chosen_it_and_who_chooses_another_kind_has_not(
    signed_in: Page, live_server: Any, fleet: None
) -> None:
    """M1: a limit that was written is never lost for want of a click beside it."""
    RungBudget.objects.filter(rung="premium").update(amount_usd=None)
    signed_in.goto(live_server.url + "/tuning")
    amount, kinds = signed_in.locator("#premium_amount"), signed_in.locator("[name=premium_kind]")
    expect(kinds.nth(1)).to_be_checked()
    amount.click()
    amount.press_sequentially("7")
    expect(kinds.nth(0)).to_be_checked()
    expect(signed_in.locator("#save-words")).to_have_text("Save 1 change")
    kinds.nth(1).check()
    expect(amount).to_have_value("")
    expect(signed_in.locator("#save-words")).to_have_text("Save changes")


def test_the_preview_follows_what_is_typed_and_keeps_the_focus(signed_in: Page, live_server: Any, fleet: None) -> None:
    signed_in.goto(live_server.url + "/tuning")
    field = signed_in.get_by_label("Re-entry floor")
    field.focus()
    field.press("Control+a")
    field.press_sequentially("3")
    expect(moved(signed_in, "claude/claude-team")).to_contain_text("above re-entry 3 %")
    expect(signed_in.locator("#band svg")).to_have_attribute("aria-label", re.compile("above 2 % up to 3 %"))
    expect(field).to_be_focused()

    field.fill("1")
    expect(signed_in.locator("#band")).to_contain_text("counts as 2 %, the exit cutoff")
    field.fill("5")
    expect(signed_in.locator("#whatif")).to_contain_text("No pool would change.")
    expect(signed_in.locator("#save-words")).to_have_text("Save changes")


def test_a_wrong_field_is_named_while_typing_and_again_on_saving(
    signed_in: Page, live_server: Any, fleet: None
) -> None:
    signed_in.goto(live_server.url + "/tuning")
    signed_in.get_by_label("Exit cutoff").fill("2,5")
    signed_in.get_by_label("cheap amount in USD").fill("")
    expect(signed_in.locator("#whatif")).to_contain_text("Budget of cheap: Write an amount, or choose No limit or Off")
    expect(signed_in.locator("#e-exit_cutoff_percent")).to_contain_text("with a point")
    signed_in.get_by_label("Why", exact=True).fill("x")
    signed_in.get_by_role("button", name=re.compile("^Save")).click()

    expect(signed_in.get_by_role("alert")).to_contain_text("2 fields need another value")
    expect(signed_in.get_by_label("Exit cutoff")).to_have_value("2,5")
    assert axe_violations(signed_in) == []


def test_two_browsers_that_edit_the_same_setting_are_told_of_each_other(
    signed_in: Page, chromium: Browser, live_server: Any, fleet: None, django_user_model: Any
) -> None:
    client = Client()
    jonas = django_user_model.objects.create_user("jonas", password="x")
    jonas.groups.add(Group.objects.get(name="operator"))
    client.force_login(jonas)
    second = chromium.new_context(viewport={"width": 1200, "height": 900})
    second.add_cookies([{"name": "sessionid", "value": client.cookies["sessionid"].value, "url": live_server.url}])
    other = second.new_page()
    for page, value in ((signed_in, "3"), (other, "6")):
        page.goto(live_server.url + "/tuning")
        page.get_by_label("Re-entry floor").fill(value)
        page.get_by_label("Why", exact=True).fill(f"to {value}")
    other.get_by_role("button", name=re.compile("^Save")).click()
    expect(other.get_by_role("status").first).to_contain_text("Saved 1 change")
    signed_in.get_by_role("button", name=re.compile("^Save")).click()

    conflict = signed_in.locator("#conflict")
    expect(conflict).to_contain_text("jonas saved other settings")
    expect(moved(signed_in, "claude/claude-team")).to_contain_text("above re-entry 3 %")
    assert axe_violations(signed_in) == []
    conflict.get_by_label("theirs").check()
    expect(signed_in.locator("#whatif")).to_contain_text("No pool would change.")
    conflict.get_by_label("mine").check()
    expect(signed_in.locator("#save-words")).to_have_text("Save 1 change")
    assert LadderSettings.objects.get().reentry_min_remaining_percent == 6
    signed_in.get_by_role("button", name="Save 1 change").click()
    expect(signed_in.get_by_role("status").first).to_contain_text("Re-entry floor 6 % → 3 %")
    second.close()


def test_the_back_button_after_a_save_saves_nothing_again(signed_in: Page, live_server: Any, fleet: None) -> None:
    signed_in.goto(live_server.url + "/tuning")
    signed_in.get_by_label("Exit cutoff").fill("3")
    signed_in.get_by_label("Why", exact=True).fill("once")
    signed_in.get_by_role("button", name=re.compile("^Save")).click()
    expect(signed_in.get_by_role("status").first).to_contain_text("Saved 1 change")
    versions = LadderSettings.history.count()
    signed_in.go_back()
    signed_in.get_by_label("Why", exact=True).fill("again")
    signed_in.get_by_role("button", name=re.compile("^Save")).click()
    expect(signed_in.get_by_role("status").first).to_contain_text(re.compile("Nothing was changed|Saved already"))
    assert LadderSettings.history.count() == versions


def test_everything_is_done_by_keyboard_alone(signed_in: Page, live_server: Any, fleet: None) -> None:
    signed_in.goto(live_server.url + "/tuning")
    keys = signed_in.keyboard

    def go_to(name: str) -> None:
        for _ in range(60):
            keys.press("Tab")
            focused = signed_in.locator(":focus")
            if focused.count() and focused.get_attribute("name") == name:
                return
        raise AssertionError(f"Tab never reaches {name}")

    go_to("cheap_kind")
    keys.press("ArrowRight")
    keys.press("ArrowRight")
    expect(signed_in.locator("#whatif")).to_contain_text("cheap would be off")
    go_to("reason")
    keys.type("off for the weekend")
    keys.press("Tab")
    expect(signed_in.locator(":focus")).to_have_text("Save 1 change")
    keys.press("Enter")
    expect(signed_in.get_by_role("status").first).to_contain_text("Budget of cheap $5.00 → off")
    assert RungBudget.objects.get(rung="cheap").amount_usd == 0


@pytest.mark.parametrize(
    ("status", "words"), [(503, "The preview could not be worked out."), (401, "You are signed out")]
)
def test_a_preview_that_fails_says_so_and_the_next_one_takes_it_back(
    signed_in: Page, live_server: Any, fleet: None, status: int, words: str
) -> None:
    signed_in.goto(live_server.url + "/tuning")

    def fail(route: Route) -> None:
        route.fulfill(status=status, body="")

    signed_in.route("**/whatif", fail)
    signed_in.get_by_label("Exit cutoff").fill("3")
    banner = signed_in.locator("#whatif-failed")
    expect(banner).to_contain_text(words)
    expect(signed_in.get_by_label("Exit cutoff")).to_have_value("3")
    signed_in.unroute("**/whatif", fail)
    signed_in.get_by_label("Exit cutoff").fill("4")
    expect(banner).to_be_hidden()
    expect(signed_in.locator("#save-words")).to_have_text("Save 1 change")


def test_a_save_is_rolled_back_from_the_history_beside_the_form(signed_in: Page, live_server: Any, fleet: None) -> None:
    for value in ("3", "4"):
        signed_in.goto(live_server.url + "/tuning")
        signed_in.get_by_label("Exit cutoff").fill(value)
        signed_in.get_by_label("Why", exact=True).fill(f"to {value}")
        signed_in.get_by_role("button", name=re.compile("^Save")).click()
        expect(signed_in.get_by_role("status").first).to_contain_text("Saved 1 change")
    row = signed_in.locator(".hist tbody tr", has_text="exit cutoff 2 % → 3 %")
    row.get_by_role("link", name="Look, roll back").click()
    signed_in.get_by_role("textbox", name=re.compile("^Why")).fill("3 was right")
    signed_in.get_by_role("button", name="Roll back").click()
    expect(signed_in.get_by_role("status").first).to_be_visible()
    signed_in.goto(live_server.url + "/tuning")
    expect(signed_in.get_by_label("Exit cutoff")).to_have_value("3")
    expect(signed_in.locator(".hist tbody tr").first).to_contain_text("3 was right")


def test_the_week_is_asked_for_only_where_it_counts(signed_in: Page, live_server: Any, fleet: None) -> None:
    signed_in.goto(live_server.url + "/tuning")
    week = signed_in.locator("#premium_week_starts_on")
    expect(week).to_be_hidden()
    signed_in.locator("#premium_period").select_option("weekly")
    expect(week).to_be_visible()


def test_without_a_script_a_button_shows_the_same(
    chromium: Browser, live_server: Any, fleet: None, client: Any, operator: Any
) -> None:
    client.force_login(operator)
    plain = chromium.new_context(java_script_enabled=False)
    plain.add_cookies([{"name": "sessionid", "value": client.cookies["sessionid"].value, "url": live_server.url}])
    page = plain.new_page()
    page.goto(live_server.url + "/tuning")
    page.get_by_label("Re-entry floor").fill("3")
    page.get_by_role("button", name="Show what would move").click()
    expect(moved(page, "claude/claude-team")).to_contain_text("above re-entry 3 %")
    page.get_by_label("Why", exact=True).fill("no script")
    page.get_by_role("button", name="Save 1 change").click()
    expect(page.get_by_role("status").first).to_contain_text("Saved 1 change")
    plain.close()


def test_the_count_of_a_budget_is_reset_apart(signed_in: Page, live_server: Any, fleet: None) -> None:
    signed_in.goto(live_server.url + "/tuning")
    signed_in.get_by_role("link", name="Keep usage or reset the count of cheap").click()
    expect(signed_in.locator("main")).to_contain_text("Every row of the ledger stays")
    assert axe_violations(signed_in) == []
    signed_in.get_by_label("Why", exact=True).fill("a new sprint")
    signed_in.get_by_role("button", name="Reset the count of cheap").click()
    expect(signed_in.get_by_role("status").first).to_contain_text("starts again now")
    assert RungBudget.objects.get(rung="cheap").counted_from is not None


def test_a_file_is_read_in_looked_at_and_saved(signed_in: Page, live_server: Any, fleet: None) -> None:
    signed_in.goto(live_server.url + "/tuning")
    content = b'{"subscriptionLadder": {"reentryMinRemainingPercent": 3}}'
    signed_in.get_by_label("Read a file in").set_input_files(
        {"name": "settings.json", "mimeType": "application/json", "buffer": content}
    )
    signed_in.get_by_role("button", name="Show what differs").click()
    expect(signed_in.locator("#imported")).to_contain_text("Re-entry floor: 5 % → 3 %")
    expect(moved(signed_in, "claude/claude-team")).to_contain_text("above re-entry 3 %")
    signed_in.get_by_label("Why", exact=True).fill("as the router has it")
    signed_in.get_by_role("button", name="Save 1 change").click()
    expect(signed_in.get_by_role("status").first).to_contain_text("Saved 1 change")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_nothing_is_wrong_for_accessibility_and_nothing_scrolls_sideways(
    signed_in: Page, live_server: Any, fleet: None, scheme: Any, width: int
) -> None:
    signed_in.set_viewport_size({"width": width, "height": 900})
    signed_in.emulate_media(color_scheme=scheme)
    signed_in.goto(live_server.url + "/tuning")
    signed_in.get_by_label("Exit cutoff").fill("50")
    expect(moved(signed_in, "claude/claude-main")).to_contain_text("quota_exhausted")
    assert signed_in.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert axe_violations(signed_in) == []


def test_a_catalogue_edit_is_previewed_before_it_is_saved(signed_in: Page, live_server: Any, fleet: None) -> None:
    entry = BillingEntry.objects.get(provider="claude", auth_type="oauth")
    signed_in.goto(f"{live_server.url}/catalogue/billing/{entry.pk}")
    signed_in.locator("#row-form").get_by_label("Billing", exact=True).select_option("metered")
    expect(moved(signed_in, "claude/claude-main").first).to_contain_text("subscription")
    expect(moved(signed_in, "claude/claude-main").first).to_contain_text("cheap")
    assert axe_violations(signed_in) == []
    entry.refresh_from_db()
    assert entry.billing == "subscription"


def test_an_overage_override_is_previewed_on_the_connections_page(
    signed_in: Page, live_server: Any, fleet: None
) -> None:
    signed_in.goto(live_server.url + "/connections/claude/claude-main")
    signed_in.locator("details", has=signed_in.locator("#override-overage_override")).locator("summary").first.click()
    signed_in.locator("#override-overage_override").select_option("meters-to-paid")
    expect(moved(signed_in, "claude/claude-main")).to_contain_text("may bill past the plan")
    assert axe_violations(signed_in) == []
