"""The catalogue in a real browser (SPEC 5, 4)."""

import json
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from billing_catalog.models import BillingEntry, ModelPrice
from omniroute_admin.common import clock
from omniroute_admin.common.services.revision import deciding_write
from tests.browser.conftest import axe_violations
from tests.browser.fleet import make_connection

pytestmark = [pytest.mark.browser, pytest.mark.sqlite]


@pytest.fixture
def entry(fleet: None) -> BillingEntry:
    return BillingEntry.objects.get(provider="claude", auth_type="oauth")


def paths_of(entry: BillingEntry) -> list[str]:
    price = ModelPrice.objects.get(provider="openrouter", model="qwen/qwen3-coder")
    return [
        "/catalogue",
        f"/catalogue/billing/{entry.pk}",
        f"/catalogue/billing/{entry.pk}/delete",
        "/catalogue/billing/new",
        "/catalogue/alias/new",
        "/catalogue/tier-overrides",
        "/catalogue/prices",
        f"/catalogue/prices/model?provider={price.provider}&model={price.model}",
        "/catalogue/uncurated",
        "/catalogue/files",
    ]


def test_curating_an_entry_moves_the_connection_to_another_rung(signed_in: Page, live_server: Any, fleet: None) -> None:
    """B2, G: the page of the ladder changes without being loaded again."""
    ladder = signed_in.context.new_page()
    ladder.goto(f"{live_server.url}/?provider=openrouter")
    expect(ladder.locator("#c-3-openrouter-or-main")).to_be_visible()

    signed_in.goto(f"{live_server.url}/catalogue/uncurated")
    signed_in.get_by_role("link", name="Curate openrouter apikey").click()
    expect(signed_in.get_by_label("Provider", exact=True)).to_have_value("openrouter")
    signed_in.get_by_label("Billing", exact=True).select_option("subscription")
    signed_in.get_by_label("Overage", exact=True).select_option("hard-stop")
    signed_in.locator("#row-form").get_by_label("Why").fill("prepaid credits, they stop by themselves")
    signed_in.get_by_role("button", name="Save").click()

    expect(signed_in.get_by_role("status")).to_contain_text("Saved billing entry")
    expect(signed_in.get_by_text("1 decided by this entry")).to_be_visible()
    ladder.bring_to_front()
    expect(ladder.locator("#c-0-openrouter-or-main")).to_be_visible(timeout=15_000)
    expect(ladder.locator("#c-3-openrouter-or-main")).to_have_count(0)


def test_an_entry_is_edited_and_reviewed_with_the_keyboard_alone(
    signed_in: Page, live_server: Any, entry: BillingEntry
) -> None:
    signed_in.goto(f"{live_server.url}/catalogue/billing/{entry.pk}")
    signed_in.get_by_text("Reviewed today by me").focus()
    signed_in.keyboard.press("Enter")
    for _ in range(2):
        signed_in.keyboard.press("Tab")
    signed_in.keyboard.press("Enter")
    expect(signed_in.get_by_role("status")).to_contain_text("Saved")
    entry.refresh_from_db()
    assert entry.reviewed_by == "mira"


def test_two_people_at_one_entry_the_second_is_told_and_chooses(
    signed_in: Page, live_server: Any, entry: BillingEntry
) -> None:
    other = signed_in.context.new_page()
    for page, overage in ((signed_in, ""), (other, "unknown")):
        page.goto(f"{live_server.url}/catalogue/billing/{entry.pk}")
        if overage:
            page.get_by_label("Overage", exact=True).select_option(overage)
            page.locator("#row-form").get_by_label("Why").fill("the first")
            page.get_by_role("button", name="Save").click()
            expect(page.get_by_role("status")).to_contain_text("Saved")
    signed_in.get_by_label("Overage", exact=True).select_option("meters-to-paid")
    signed_in.locator("#row-form").get_by_label("Why").fill("the second")
    signed_in.get_by_role("button", name="Save").click()
    panel = signed_in.locator("#conflict")
    expect(panel).to_contain_text("mira changed this billing entry")
    assert axe_violations(signed_in) == []
    panel.get_by_label("theirs").check()
    signed_in.get_by_role("button", name="Save").click()
    expect(signed_in.locator("#conflict")).to_have_count(0)
    entry.refresh_from_db()
    assert entry.overage == "unknown"


def test_a_file_is_looked_at_and_then_imported(signed_in: Page, live_server: Any, entry: BillingEntry) -> None:
    signed_in.goto(f"{live_server.url}/catalogue/files")
    with signed_in.expect_download() as download:
        signed_in.get_by_role("link", name="All of it as JSON").click()
    document = json.loads(download.value.path().read_text())
    next(row for row in document["billing"] if row["provider"] == "claude")["overage"] = "unknown"
    document["free_providers"] = [{"provider": "gift", "reason": "=HYPERLINK()"}]
    content = {"name": "c.json", "mimeType": "application/json", "buffer": json.dumps(document).encode()}
    signed_in.get_by_label("File").set_input_files(content)  # type: ignore[arg-type]
    signed_in.get_by_role("button", name="Show the difference").click()
    expect(signed_in.locator("#dry-run")).to_contain_text("hard-stop → unknown")
    assert axe_violations(signed_in) == []
    signed_in.get_by_label("Why").fill("from the other site")
    signed_in.get_by_role("button", name="Import 2 rows").click()
    expect(signed_in.get_by_role("status")).to_contain_text("Imported: 1 new and 1 changed.")
    entry.refresh_from_db()
    assert entry.overage == "unknown"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_has_a_barrier(signed_in: Page, live_server: Any, entry: BillingEntry, scheme: Any) -> None:
    """SPEC 5: WCAG 2.2 AA."""
    signed_in.emulate_media(color_scheme=scheme)
    found = {}
    for path in paths_of(entry):
        signed_in.goto(live_server.url + path)
        for summary in signed_in.locator("details:not([open]) > summary").all():
            summary.click()
        found[path] = axe_violations(signed_in)
    assert {path: faults for path, faults in found.items() if faults} == {}


@pytest.mark.parametrize("width", [320, 390])
def test_no_page_scrolls_sideways_on_a_phone(
    signed_in: Page, live_server: Any, entry: BillingEntry, width: int
) -> None:
    with deciding_write():
        make_connection("p" * 60, "c" * 100, "apikey", now=clock.now())
        BillingEntry.objects.filter(pk=entry.pk).update(reason="w" * 10_000, reviewed_by="w" * 100)
    signed_in.set_viewport_size({"width": width, "height": 800})
    wide = {}
    for path in paths_of(entry):
        signed_in.goto(live_server.url + path)
        wide[path] = signed_in.evaluate("document.documentElement.scrollWidth")
    assert {path: found for path, found in wide.items() if found > width} == {}


def test_who_may_only_look_sees_no_button_that_changes(
    context: BrowserContext, client: Any, django_user_model: Any, live_server: Any, entry: BillingEntry
) -> None:
    """SPEC 5: Roles."""
    from django.contrib.auth.models import Group

    viewer = django_user_model.objects.create_user("vera")
    viewer.groups.add(Group.objects.get(name="viewer"))
    client.force_login(viewer)
    context.add_cookies([{"name": "sessionid", "value": client.cookies["sessionid"].value, "url": live_server.url}])
    page = context.new_page()
    for path in ("/catalogue", f"/catalogue/billing/{entry.pk}", "/catalogue/files", "/catalogue/uncurated"):
        page.goto(live_server.url + path)
        for name in ("New entry", "Save", "Delete", "Curate", "Show the difference"):
            assert page.locator("button, a.btn").filter(has_text=name).count() == 0
    page.goto(f"{live_server.url}/catalogue/billing/{entry.pk}")
    expect(page.get_by_label("Provider", exact=True)).to_be_disabled()
