"""The spend page in a real browser (SPEC 5, 5): charts against the budget, numbers, theme, paper, a narrow screen."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from ladder.models import RungBudget
from ladder.services.usage import record_usage
from ladder.services.usage_items import UsageItem
from omniroute_admin.common import clock
from omniroute_admin.common.history import Actor
from omniroute_admin.common.services.revision import deciding_write
from tests.browser.conftest import axe_violations

pytestmark = [pytest.mark.browser, pytest.mark.sqlite]

INK = """([id, token]) => {
  const it = document.createElement('i');
  document.body.append(it);
  it.style.color = `var(--${token})`;
  const wanted = getComputedStyle(it).color.match(/\\d+/g).map(Number);
  it.remove();
  const canvas = document.querySelector(`#${id} canvas`);
  const box = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  let count = 0;
  for (let at = 0; at < box.length; at += 4) {
    if (box[at + 3] === 255 && wanted.every((part, place) => box[at + place] === part)) count += 1;
  }
  return count;
}"""


@pytest.fixture
def spend(signed_in: Page, live_server: Any, fleet: None) -> Page:
    now = clock.now()
    with deciding_write():
        monthly = {"amount_usd": Decimal("1.00"), "period": "monthly", "zone": "UTC"}
        RungBudget.objects.filter(rung="cheap").update(**monthly)
    items = [
        UsageItem(
            event_id=f"e{number}",
            connection_id="ds-api",
            provider="deepseek",
            model="deepseek-chat",
            occurred_at=now - timedelta(seconds=number),
            cost_usd=Decimal("0.30"),
        )
        for number in range(4)
    ]
    record_usage(items=items, actor=Actor(name="router"), now=now)
    signed_in.goto(f"{live_server.url}/spend")
    expect(signed_in.locator("#chart-cheap canvas")).to_be_visible()
    return signed_in


def test_the_spend_of_a_rung_is_drawn_against_its_budget_and_the_policy_stands(spend: Page) -> None:
    """The fixture `context` fails the test where a page broke the policy."""
    assert spend.evaluate(INK, ["chart-cheap", "rung-3"]) > 10
    assert spend.evaluate(INK, ["chart-cheap", "st-exhausted"]) > 100
    expect(spend.locator("#chart-premium")).to_have_count(0)
    expect(spend.get_by_text("Nothing was spent on this rung in this time.")).to_be_visible()
    expect(spend.get_by_text("The spend came to the budget at")).to_be_visible()
    assert axe_violations(spend) == []


def test_the_switch_to_dark_draws_the_charts_anew(spend: Page) -> None:
    spend.locator("[data-theme-switch]").select_option("dark")
    expect(spend.locator("#chart-cheap")).to_have_attribute("data-drawn", "2")
    assert spend.evaluate(INK, ["chart-cheap", "st-exhausted"]) > 100
    assert axe_violations(spend) == []


def test_the_numbers_of_a_chart_open_by_keyboard_alone(spend: Page) -> None:
    summary = spend.get_by_text("The numbers of cheap")
    cell = spend.locator("section:has(#chart-cheap) .numbers td").filter(has_text="$1.20").first
    expect(cell).to_be_hidden()
    summary.focus()
    spend.keyboard.press("Enter")
    expect(cell).to_be_visible()
    assert axe_violations(spend) == []


def test_a_filter_and_an_order_chosen_by_keyboard_stand_in_the_address(spend: Page) -> None:
    spend.get_by_label("Model").focus()
    spend.keyboard.type("deepseek-chat")
    spend.keyboard.press("Enter")
    spend.wait_for_url("**/spend?*model=deepseek-chat*")
    spend.get_by_role("columnheader", name="Settled").last.get_by_role("link").press("Enter")
    spend.wait_for_url("**order=-settled_usd*")
    expect(spend.get_by_label("Model")).to_have_value("deepseek-chat")
    expect(spend.locator("th[aria-sort=descending]")).to_contain_text("Settled")


def test_a_file_is_downloaded_with_what_the_page_shows(spend: Page) -> None:
    with spend.expect_download() as download:
        spend.get_by_role("link", name="Events as CSV").click()
    assert download.value.suggested_filename == "spend-events.csv"
    assert download.value.path().read_text().count("deepseek-chat") == 4


def test_a_narrow_screen_shows_all_of_it_without_scrolling_sideways(spend: Page) -> None:
    spend.set_viewport_size({"width": 390, "height": 844})
    spend.wait_for_function("document.querySelector('#chart-cheap canvas').getBoundingClientRect().width < 390")
    spend.get_by_role("link", name="Settled").focus()
    expect(spend.get_by_role("link", name="Settled")).to_be_in_viewport()
    for theme in ("light", "dark"):
        spend.emulate_media(color_scheme=theme)
        assert spend.evaluate("document.documentElement.scrollWidth") <= 390
        assert axe_violations(spend) == []


def test_paper_shows_still_pictures(spend: Page) -> None:
    spend.emulate_media(media="print")
    expect(spend.locator("#chart-cheap .canvas")).to_be_hidden()
    expect(spend.locator("#chart-cheap .still .line")).to_be_visible()
