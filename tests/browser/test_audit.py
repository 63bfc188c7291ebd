"""The audit page, one version, and the page of keys in a real browser (SPEC 5, 7 and 8)."""

import json
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from playwright.sync_api import Page, expect

from ladder.models import Connection, LadderSettings
from ladder.services.connections import update_connection
from ladder.services.settings import BudgetChanges, BudgetsChanges, SettingsChanges, update_settings
from omniroute_admin.common import clock
from omniroute_admin.common.history import Actor
from omniroute_admin.common.models import ApiKey
from omniroute_admin.common.services.keys import create_key
from tests.browser.conftest import axe_violations

pytestmark = [pytest.mark.browser, pytest.mark.sqlite]
LONG = "סיבה ארוכה מאוד 理由がとても長い " + "x" * 9000 + " <script>alert(1)</script>"


def by(name: str = "jonas", reason: str = "it was too tight") -> dict[str, Any]:
    return {"actor": Actor(name=name), "reason": reason, "now": clock.now()}


@pytest.fixture
def changes(fleet: None) -> None:
    for value in ("3", "9"):
        update_settings(changes=SettingsChanges(exit_cutoff_percent=Decimal(value)), **by())
    cheap = BudgetChanges(amount_usd=Decimal(0))
    update_settings(changes=SettingsChanges(rung_budgets=BudgetsChanges(cheap=cheap)), **by("mira", LONG))
    row = Connection.objects.get(connection_id="claude-team")
    update_connection(connection=row, changes={"excluded_models": ["gpt-*", "o1-*"], "label": LONG[:200]}, **by())
    create_key(name="router in the cellar", scopes=["pools:read", "telemetry:write"], expires_at=None, **by())


def settings_version(number: int) -> str:
    """Return the address of a version of the settings, counted from the oldest."""
    found = list(LadderSettings.history.order_by("history_id").values_list("history_id", flat=True))
    return f"/audit/settings/{found[number]}"


def fits(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"))


def pages() -> list[str]:
    key = ApiKey.objects.get().pk
    long = Connection.history.latest("history_id").history_id
    return [
        "/audit", "/audit?kind=settings&who=jonas", "/audit?who=nobody-at-all", settings_version(1),
        f"/audit/connection/{long}", "/keys", "/keys?state=revoked", "/keys/new", f"/keys/{key}/revoke",
    ]  # fmt: skip


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390, 320])
def test_the_pages_have_no_fault_that_axe_finds_and_fit(
    signed_in: Page, live_server: Any, changes: None, scheme: Any, width: int
) -> None:
    signed_in.set_viewport_size({"width": width, "height": 900})
    signed_in.emulate_media(color_scheme=scheme)
    for address in pages():
        signed_in.goto(live_server.url + address)
        assert axe_violations(signed_in) == [], address
        assert fits(signed_in), f"{address} scrolls sideways at {width}"


def test_an_operator_finds_a_change_by_keyboard_and_rolls_back_to_it(
    page: Page, client: Client, live_server: Any, changes: None, django_user_model: Any
) -> None:
    user = django_user_model.objects.create_user("ola")
    user.groups.add(Group.objects.get(name="operator"))
    client.force_login(user)
    session = client.cookies["sessionid"].value
    page.context.add_cookies([{"name": "sessionid", "value": session, "url": live_server.url}])
    page.goto(live_server.url + "/audit")
    page.get_by_label("Who", exact=True).focus()
    page.keyboard.type("jonas")
    page.get_by_label("settings", exact=True).press("Space")
    page.get_by_role("button", name="Show", exact=True).press("Enter")
    page.wait_for_url("**/audit?kind=settings&who=jonas**")
    rows = page.locator(".audit tbody tr")
    expect(rows).to_have_count(2)
    rows.nth(1).locator("a").first.press("Enter")
    expect(page.get_by_role("heading", name="ladder settings")).to_be_visible()
    expect(page.locator("#h-back ~ *, .panel:has(#h-back)").first).to_contain_text("9 %")
    page.get_by_label("Why", exact=True).press_sequentially("nine was too much")
    page.get_by_role("button", name="Roll back 1 field").press("Enter")
    expect(page.get_by_role("status")).to_contain_text("rolled back")
    assert LadderSettings.objects.get().exit_cutoff_percent == 3


def test_of_two_who_roll_back_the_second_is_told_what_the_first_did(
    signed_in: Page, live_server: Any, changes: None
) -> None:
    other = signed_in.context.new_page()
    for each, number in ((signed_in, 1), (other, 0)):
        each.goto(live_server.url + settings_version(number))
        each.get_by_label("Why", exact=True).fill("mine")
    other.get_by_role("button", name="Roll back").click()
    expect(other.get_by_role("status")).to_contain_text("rolled back")
    signed_in.get_by_role("button", name="Roll back").click()
    alert = signed_in.get_by_role("alert")
    expect(alert).to_contain_text("mira changed this at")
    expect(alert).to_contain_text("9 %")
    assert axe_violations(signed_in) == []
    expect(signed_in.get_by_label("Why", exact=True)).to_have_value("mine")
    assert LadderSettings.objects.get().exit_cutoff_percent == 2
    signed_in.get_by_role("button", name="Roll back").click()
    expect(signed_in.get_by_role("status")).to_contain_text("rolled back")
    assert LadderSettings.objects.get().exit_cutoff_percent == 3


def test_the_back_button_after_rolling_back_writes_nothing_twice(
    signed_in: Page, live_server: Any, changes: None
) -> None:
    signed_in.goto(live_server.url + settings_version(1))
    signed_in.get_by_label("Why", exact=True).fill("mine")
    signed_in.get_by_role("button", name="Roll back").click()
    expect(signed_in.get_by_role("status")).to_contain_text("rolled back")
    written = LadderSettings.history.count()
    signed_in.go_back()
    if signed_in.get_by_role("button", name="Roll back").count():
        signed_in.get_by_label("Why", exact=True).fill("mine again")
        signed_in.get_by_role("button", name="Roll back").click()
        expect(signed_in.get_by_role("status")).to_contain_text("stands like this version already")
    assert LadderSettings.history.count() == written


def test_the_files_are_downloaded_with_the_filters_of_the_page(
    signed_in: Page, live_server: Any, changes: None
) -> None:
    signed_in.goto(live_server.url + "/audit?kind=settings&who=jonas")
    with signed_in.expect_download() as got:
        signed_in.get_by_role("link", name="JSON").click()
    document = json.loads(got.value.path().read_text())
    assert [one["changes"][0]["new"] for one in document["entries"]] == ["9 %", "3 %"]
    with signed_in.expect_download() as got:
        signed_in.get_by_role("link", name="CSV").click()
    assert got.value.path().read_text().count("exit_cutoff_percent") == 2


def test_a_key_is_made_copied_and_revoked(signed_in: Page, live_server: Any, changes: None) -> None:
    signed_in.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=live_server.url)
    signed_in.goto(live_server.url + "/keys")
    signed_in.get_by_role("link", name="New key").click()
    signed_in.get_by_label("Name").fill("browser")
    signed_in.get_by_label("metrics:read").check()
    signed_in.get_by_label("Why", exact=True).fill("a test")
    signed_in.get_by_role("button", name="Make the key").click()
    field = signed_in.get_by_label("The key of browser")
    secret = field.input_value()
    assert secret.startswith("orl_")
    assert axe_violations(signed_in) == []
    signed_in.get_by_role("button", name="Copy").click()
    expect(signed_in.locator("#copied")).to_have_text("Copied.")
    assert signed_in.evaluate("navigator.clipboard.readText()") == secret
    assert secret not in signed_in.url + json.dumps(signed_in.context.storage_state())
    signed_in.reload()
    expect(signed_in.get_by_role("alert")).to_contain_text("was sent before")
    assert secret not in signed_in.content()
    assert ApiKey.objects.filter(name="browser").count() == 1
    signed_in.goto(live_server.url + "/keys")
    signed_in.get_by_role("link", name="Revoke browser").click()
    signed_in.get_by_label("Why", exact=True).fill("lost")
    signed_in.get_by_role("button", name="Revoke").click()
    expect(signed_in.get_by_role("status")).to_contain_text("browser is revoked")
    assert ApiKey.objects.get(name="browser").revoked_at is not None


def test_a_wrong_form_for_a_key_says_what_is_wrong_where_it_is(
    signed_in: Page, live_server: Any, changes: None
) -> None:
    signed_in.goto(live_server.url + "/keys/new")
    signed_in.get_by_label("Name").fill("browser")
    signed_in.get_by_label("until", exact=True).check()
    signed_in.get_by_label("Why", exact=True).fill("a test")
    signed_in.get_by_role("button", name="Make the key").click()
    expect(signed_in.get_by_role("alert").first).to_contain_text("No key was made")
    expect(signed_in.locator(".scopes .errorlist")).to_contain_text("Choose at least one")
    expect(signed_in.locator(".lasts .errorlist")).to_contain_text("Give a day and a time")
    assert axe_violations(signed_in) == []
