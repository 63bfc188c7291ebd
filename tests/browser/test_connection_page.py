"""The pages of connections in a real browser (SPEC 5, 2)."""

import re
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from ladder.models import Connection, Cooldown, QuotaWindow
from ladder.services.connections import update_connection
from omniroute_admin.common import clock
from omniroute_admin.common.history import Actor
from omniroute_admin.common.services.revision import deciding_write
from tests.browser.conftest import axe_violations
from tests.browser.fleet import add_reading

pytestmark = [pytest.mark.browser, pytest.mark.sqlite]
ALT, MAIN = "/connections/claude/claude-alt", "/connections/claude/claude-main"


def connection(name: str) -> Connection:
    return Connection.objects.get(connection_id=name)


def change(name: str, **changes: Any) -> None:
    update_connection(
        connection=connection(name), changes=changes, actor=Actor(name="jonas"), reason="his reason", now=clock.now()
    )


def refresh(page: Page) -> None:
    with page.expect_response(re.compile("/live/connections/")):
        page.get_by_role("link", name="Refresh").click()


def tab_to(page: Page, selector: str, *, key: str = "Tab") -> None:
    """Press a key until an element has the focus: nothing else may move it there."""
    for _ in range(120):
        if page.evaluate("(it) => document.activeElement.matches(it)", selector):
            return
        page.keyboard.press(key)
    raise AssertionError(f"the keyboard does not reach {selector}")


def test_a_cooldown_is_cleared_by_keyboard_alone(signed_in: Page, live_server: Any, fleet: None) -> None:
    signed_in.goto(live_server.url + "/connections?state=cooldown")
    tab_to(signed_in, ".c-name a")
    signed_in.keyboard.press("Enter")
    expect(signed_in.locator("#r-now")).to_contain_text("Out of every pool until")
    tab_to(signed_in, "#s-clear-cooldown")
    signed_in.keyboard.press("Enter")
    tab_to(signed_in, "#clear-cooldown-reason")
    signed_in.keyboard.type("the provider said so on the phone")
    tab_to(signed_in, "#do-clear-cooldown")
    assert signed_in.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    signed_in.keyboard.press("Enter")

    expect(signed_in.get_by_role("status").first).to_contain_text("The cooldown of claude/claude-alt is cleared.")
    expect(signed_in.locator("#r-now")).to_contain_text("quota_exhausted")
    expect(signed_in.locator("#r-hist")).to_contain_text("the provider said so on the phone")
    assert not Cooldown.objects.exists()


def test_a_connection_is_paused_and_the_ladder_of_another_page_follows(
    signed_in: Page, live_server: Any, fleet: None
) -> None:
    ladder = signed_in.context.new_page()
    ladder.goto(live_server.url)
    signed_in.goto(live_server.url + MAIN)
    signed_in.get_by_text("Pause", exact=True).first.click()
    signed_in.locator("#pause-reason").fill("on holiday")
    signed_in.locator("#do-pause").click()

    expect(signed_in.locator("#r-now")).to_contain_text("connection_disabled")
    expect(signed_in.locator("#s-resume")).to_be_visible()
    expect(ladder.locator("tr", has=ladder.locator("a[id$='-claude-main']")).first).to_contain_text("off")


def test_a_window_is_muted_from_its_card_and_unmuted(signed_in: Page, live_server: Any, fleet: None) -> None:
    signed_in.goto(live_server.url + MAIN)
    signed_in.get_by_role("link", name="Mute weekly").click()
    expect(signed_in.locator("#mute-window")).to_have_value("weekly")
    expect(signed_in.locator("#mute-window")).to_be_focused()
    signed_in.locator("#mute-reason").fill("bonus week")
    signed_in.locator("#do-mute").click()
    expect(signed_in.locator(".wins")).to_contain_text("Muted: it does not count.")
    signed_in.get_by_role("link", name="Unmute weekly").click()
    signed_in.locator("#unmute-reason").fill("over")
    signed_in.locator("#do-unmute").click()
    expect(signed_in.locator(".wins")).not_to_contain_text("Muted:")


def test_the_page_keeps_itself_up_to_date(signed_in: Page, live_server: Any, fleet: None) -> None:
    signed_in.goto(live_server.url + MAIN)
    signed_in.evaluate("window.untouched = true")
    with deciding_write():
        QuotaWindow.objects.filter(connection=connection("claude-main"), window="5h").update(
            remaining_percent=Decimal(1), observed_at=clock.now(), received_at=clock.now()
        )
    expect(signed_in.locator("#r-now")).to_contain_text("quota_exhausted")
    expect(signed_in.locator(".wins li").first).to_contain_text("1 % left")
    expect(signed_in).to_have_title("claude/claude-main · exhausted")
    assert signed_in.evaluate("window.untouched") is True


def test_an_unchanged_page_is_answered_without_content(signed_in: Page, live_server: Any, fleet: None) -> None:
    signed_in.goto(live_server.url + MAIN)
    with signed_in.expect_response(re.compile("/live/connections/claude/claude-main")) as answer:
        signed_in.get_by_role("link", name="Refresh").click()
    assert answer.value.status == 204


def test_a_form_that_is_written_in_is_not_replaced_and_says_that_something_changed(
    signed_in: Page, live_server: Any, fleet: None
) -> None:
    signed_in.goto(live_server.url + MAIN)
    signed_in.locator("#s-edit").click()
    signed_in.locator("#edit-label").fill("half a la")
    change("claude-main", auth_type="cookie")
    refresh(signed_in)

    expect(signed_in.locator("#r-class")).to_contain_text("cookie")
    expect(signed_in.locator("#edit-label")).to_have_value("half a la")
    expect(signed_in.locator("[data-acts-old]")).to_be_visible()
    expect(signed_in.locator("#edit-auth_type")).to_have_value("oauth")


def test_a_form_that_is_only_open_is_renewed_and_stays_open(signed_in: Page, live_server: Any, fleet: None) -> None:
    signed_in.goto(live_server.url + MAIN)
    signed_in.locator("#s-edit").click()
    change("claude-main", label="of jonas")

    expect(signed_in.locator("#edit-label")).to_have_value("of jonas")
    expect(signed_in.locator("#edit-label")).to_be_visible()
    expect(signed_in.locator("#s-edit")).to_be_focused()


def test_two_people_at_one_form_the_second_is_told_and_chooses(signed_in: Page, live_server: Any, fleet: None) -> None:
    signed_in.goto(live_server.url + MAIN)
    signed_in.locator("#s-edit").click()
    signed_in.locator("#edit-label").fill("mira's label")
    signed_in.locator("#edit-reason").fill("tidy up")
    change("claude-main", label="jonas's label")
    signed_in.locator("#do-edit").click()

    conflict = signed_in.locator("#a-edit [role=alert]").first
    expect(conflict).to_contain_text("jonas's label")
    expect(conflict).to_be_in_viewport()
    assert connection("claude-main").label == "jonas's label"
    assert axe_violations(signed_in) == []
    expect(conflict.get_by_label("mine")).to_be_checked()
    signed_in.locator("#do-edit").click()
    expect(signed_in.locator("h1 + .label")).to_have_text("mira's label")


def test_the_same_form_in_two_tabs_acts_once(signed_in: Page, live_server: Any, fleet: None) -> None:
    other = signed_in.context.new_page()
    for tab in (signed_in, other):
        tab.goto(live_server.url + MAIN + "?act=pause")
        tab.locator("#pause-reason").fill("twice")
    for tab in (signed_in, other):
        tab.locator("#do-pause").click()
    expect(other.get_by_role("status").first).to_contain_text("nothing was changed")
    assert connection("claude-main").history.count() == 2


def test_going_back_after_an_act_shows_the_state_as_it_is(signed_in: Page, live_server: Any, fleet: None) -> None:
    signed_in.goto(live_server.url + MAIN + "?act=pause")
    signed_in.locator("#pause-reason").fill("once")
    signed_in.locator("#do-pause").click()
    expect(signed_in.locator("#s-resume")).to_be_visible()
    signed_in.go_back()
    expect(signed_in.locator("#s-resume")).to_be_visible()
    expect(signed_in.locator("#s-pause")).to_have_count(0)


def test_a_failed_poll_keeps_the_picture_and_says_so(signed_in: Page, live_server: Any, fleet: None) -> None:
    signed_in.goto(live_server.url + ALT)

    def fail(route: Route) -> None:
        route.fulfill(status=503, body="")

    signed_in.route("**/live/connections/**", fail)
    signed_in.get_by_role("link", name="Refresh").click()
    banner = signed_in.locator("#poll-failed")
    expect(banner).to_contain_text("The last refresh failed.")
    expect(signed_in.locator("#r-cool")).to_contain_text("Asked until")
    signed_in.unroute("**/live/connections/**", fail)
    banner.get_by_role("button", name="Try now").click()
    expect(banner).to_be_hidden()


def test_a_connection_is_added_and_deleted(signed_in: Page, live_server: Any, fleet: None) -> None:
    signed_in.goto(live_server.url + "/connections")
    signed_in.get_by_role("link", name="Add a connection").click()
    signed_in.get_by_label("Provider").fill("claude")
    signed_in.get_by_label("Connection id").fill("third")
    signed_in.get_by_label("Why").fill("more room")
    signed_in.get_by_role("button", name="Add the connection").click()
    expect(signed_in).to_have_url(live_server.url + "/connections/claude/third")
    expect(signed_in.locator("#r-windows")).to_contain_text("No reading of any window came yet.")
    signed_in.get_by_role("link", name="Delete…").click()
    expect(signed_in.locator("#a-delete")).to_contain_text("stay in the books")
    signed_in.locator("#delete-reason").fill("not needed")
    signed_in.locator("#do-delete").click()
    expect(signed_in.locator("#r-now")).to_contain_text("This connection was deleted")
    expect(signed_in.locator("#r-hist")).to_contain_text("not needed")


def test_an_override_shows_what_it_would_move_before_it_is_saved(
    signed_in: Page, live_server: Any, fleet: None
) -> None:
    """B4; the preview comes from the code that decides."""
    signed_in.goto(live_server.url + "/connections/devin-desktop/devin-core?act=override")
    signed_in.locator("#override-overage_override").select_option("hard-stop")
    preview = signed_in.locator("#whatif")
    expect(preview).to_contain_text("nothing is saved yet")
    expect(preview).to_contain_text("auto/subscription")
    assert connection("devin-core").overage_override is None
    assert axe_violations(signed_in) == []
    signed_in.set_viewport_size({"width": 390, "height": 844})
    assert signed_in.evaluate("document.documentElement.scrollWidth") <= 390


def fill_windows() -> None:
    """Give a connection many windows of every kind, with lines to draw, and names that cannot be broken."""
    row, now = connection("claude-alt"), clock.now()
    with deciding_write():
        for number, (name, left) in enumerate(
            (("weekly", "38"), ("weekly:opus", "51"), ("30d", "90"), ("x" * 90, "3"))
        ):
            window = QuotaWindow.objects.create(
                connection=row, window=name, remaining_percent=Decimal(left), observed_at=now, received_at=now,
                reset_at=now + timedelta(days=2), is_muted=number == 3, model="*opus*" if "opus" in name else None,
            )  # fmt: skip
            for hours, percent in ((60, "95"), (30, "70"), (0, left)):
                add_reading(window, left=percent, observed_at=now - timedelta(hours=hours))
        row.label = "Label" * 40
        row.save()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(
    "path", [ALT + "?act=cutoff", MAIN, "/connections", "/connections/new", "/connections/deepseek/ds-api"]
)
def test_axe_finds_nothing(signed_in: Page, live_server: Any, fleet: None, path: str, theme: Any) -> None:
    """WCAG 2.2 AA, as far as a machine can tell."""
    fill_windows()
    signed_in.emulate_media(color_scheme=theme)
    signed_in.goto(live_server.url + path)
    assert axe_violations(signed_in) == []


@pytest.mark.parametrize("path", [ALT + "?act=cutoff", "/connections", "/connections/new"])
@pytest.mark.parametrize("width", [320, 390, 840, 1160])
def test_the_page_does_not_scroll_sideways(
    signed_in: Page, live_server: Any, fleet: None, path: str, width: int
) -> None:
    fill_windows()
    signed_in.set_viewport_size({"width": width, "height": 844})
    signed_in.goto(live_server.url + path)
    assert signed_in.evaluate("document.documentElement.scrollWidth") <= width


def test_targets_are_large_enough(signed_in: Page, live_server: Any, fleet: None) -> None:
    """WCAG 2.2, 2.5.8: 24 px."""
    signed_in.goto(live_server.url + MAIN)
    heights = signed_in.locator("main button, main summary, main .acts a, main .in-pools a").evaluate_all(
        "(all) => all.filter((one) => one.offsetParent).map((one) => one.getBoundingClientRect().height)"
    )
    assert heights
    assert min(heights) >= 24
