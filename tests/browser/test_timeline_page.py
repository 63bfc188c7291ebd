"""The timeline in a real browser (SPEC 5, 6): the chart, its numbers, the theme, paper, and a narrow screen."""

from datetime import timedelta
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from ladder.models import Connection, RungSample
from omniroute_admin.common import clock
from tests.browser.conftest import axe_violations
from tests.timeline_rows import add_flip, add_story

pytestmark = [pytest.mark.browser, pytest.mark.sqlite]
HOUR = timedelta(hours=1)

INK = """([x0, x1, y0, y1]) => {
  const canvas = document.querySelector('#steps canvas');
  const [w, h] = [canvas.width, canvas.height];
  const box = canvas.getContext('2d').getImageData(w * x0, h * y0, Math.max(1, w * (x1 - x0)), h * (y1 - y0)).data;
  const found = {};
  for (let at = 0; at < box.length; at += 4) {
    if (box[at + 3] !== 255) continue;
    const key = [box[at], box[at + 1], box[at + 2]].join(',');
    found[key] = (found[key] || 0) + 1;
  }
  return found;
}"""
WHOLE = [0, 1, 0, 1]


@pytest.fixture
def story(fleet: None) -> None:
    now = clock.now()
    changes = [(now - 9 * HOUR, "cheap", "reading"), (now - 3 * HOUR, "subscription", "reset")]
    add_story(start=now - 26 * HOUR, end=now, serving="subscription", changes=changes)
    RungSample.objects.filter(at__gte=now - 7 * HOUR, at__lt=now - 5 * HOUR).delete()
    row = Connection.objects.get(connection_id="claude-main")
    states = ("usable", "exhausted")
    add_flip(now - 9 * HOUR, rung="subscription", states=states, connection=row, code="quota_exhausted")
    add_flip(now - 3 * HOUR, rung="subscription", states=states[::-1], connection=row, cause="reset")


@pytest.fixture
def timeline(signed_in: Page, live_server: Any, story: None) -> Page:
    signed_in.goto(f"{live_server.url}/timeline")
    expect(signed_in.locator("#steps canvas")).to_be_visible()
    return signed_in


def colour_of(page: Page, token: str) -> str:
    rgb = page.evaluate(
        "(name) => { const it = document.createElement('i'); document.body.append(it);"
        " it.style.color = `var(--${name})`; const c = getComputedStyle(it).color; it.remove(); return c; }",
        token,
    )
    return rgb.removeprefix("rgb(").removesuffix(")").replace(" ", "")


def test_the_chart_is_drawn_in_the_rungs_colours_and_the_policy_stands(timeline: Page) -> None:
    """The fixture `context` fails the test where a page broke the policy."""
    box = timeline.locator("#steps canvas").bounding_box()
    assert box is not None
    assert box["width"] > 900
    assert box["height"] > 250
    ink = timeline.evaluate(INK, WHOLE)
    for token in ("rung-0", "rung-3"):
        assert ink.get(colour_of(timeline, token), 0) > 500, token
    assert ink.get(colour_of(timeline, "rung-4"), 0) < 500
    expect(timeline.locator("#steps .still")).to_be_hidden()
    assert axe_violations(timeline) == []


def test_the_switch_to_dark_draws_the_chart_anew_in_dark_colours(timeline: Page) -> None:
    light = colour_of(timeline, "rung-0")
    timeline.locator("[data-theme-switch]").select_option("dark")
    dark = colour_of(timeline, "rung-0")
    assert dark != light
    expect(timeline.locator("#steps")).to_have_attribute("data-drawn", "2")
    ink = timeline.evaluate(INK, WHOLE)
    assert ink.get(dark, 0) > 500
    assert light not in ink
    assert axe_violations(timeline) == []


def test_the_systems_own_change_to_dark_draws_it_anew_too(timeline: Page) -> None:
    timeline.emulate_media(color_scheme="dark")
    expect(timeline.locator("#steps")).to_have_attribute("data-drawn", "2")
    assert timeline.evaluate(INK, WHOLE).get(colour_of(timeline, "rung-0"), 0) > 500


def test_the_numbers_open_by_keyboard_alone(timeline: Page) -> None:
    numbers = timeline.locator("#numbers td").filter(has_text="a quota reset")
    expect(numbers.first).to_be_hidden()
    timeline.locator("#numbers > summary").focus()
    timeline.keyboard.press("Enter")
    expect(numbers.first).to_be_visible()
    expect(timeline.locator("#numbers")).to_contain_text("not known: nobody looked")
    assert axe_violations(timeline) == []


def test_the_legend_takes_marks_off_the_chart_and_puts_them_back(timeline: Page) -> None:
    def drawn() -> int:
        return int(timeline.evaluate(INK, WHOLE).get(colour_of(timeline, "st-usable"), 0))

    before = drawn()
    assert before > 20
    timeline.get_by_role("checkbox", name="resets").focus()
    timeline.keyboard.press("Space")
    assert drawn() == 0
    timeline.keyboard.press("Space")
    assert drawn() == before


def test_a_pointer_over_the_chart_is_told_what_served_then(timeline: Page) -> None:
    box = timeline.locator("#steps .u-over").bounding_box()
    assert box is not None
    timeline.mouse.move(box["x"] + box["width"] * 0.995, box["y"] + 40)
    expect(timeline.locator("#steps .readout")).to_contain_text("subscription serves, since")
    timeline.mouse.move(box["x"] + box["width"] * 18 / 24, box["y"] + 40)
    expect(timeline.locator("#steps .readout")).to_contain_text("nobody looked")


def test_the_chart_follows_the_width_of_the_window_and_never_pushes_the_page_sideways(timeline: Page) -> None:
    timeline.set_viewport_size({"width": 390, "height": 844})
    timeline.wait_for_function("document.querySelector('#steps canvas').getBoundingClientRect().width < 390")
    for theme in ("light", "dark"):
        timeline.emulate_media(color_scheme=theme)
        assert timeline.evaluate("document.documentElement.scrollWidth") <= 390
        assert axe_violations(timeline) == []


def test_paper_shows_the_still_picture_and_the_numbers(timeline: Page) -> None:
    timeline.emulate_media(media="print")
    expect(timeline.locator("#steps .canvas")).to_be_hidden()
    expect(timeline.locator("#steps .still")).to_be_visible()
    timeline.evaluate("dispatchEvent(new Event('beforeprint'))")
    expect(timeline.locator("#numbers td").filter(has_text="a quota reset").first).to_be_visible()
    timeline.evaluate("dispatchEvent(new Event('afterprint'))")
    timeline.emulate_media(media="screen")
    expect(timeline.locator("#numbers")).not_to_have_attribute("open", "")


def test_without_a_script_the_still_picture_is_the_chart(chromium: Any, timeline: Page) -> None:
    with chromium.new_context(java_script_enabled=False, viewport={"width": 1440, "height": 900}) as plain:
        plain.add_cookies(timeline.context.cookies())
        page = plain.new_page()
        page.goto(timeline.url)
        expect(page.locator("#steps .still")).to_be_visible()
        expect(page.locator("#steps .still rect.rung-3").first).to_be_visible()
        expect(page.get_by_role("checkbox", name="resets")).to_be_hidden()


def test_a_timeline_that_nobody_wrote_is_told_in_words(signed_in: Page, live_server: Any) -> None:
    signed_in.goto(f"{live_server.url}/timeline")
    expect(signed_in.get_by_role("heading", name="Nothing is recorded yet")).to_be_visible()
    assert axe_violations(signed_in) == []
