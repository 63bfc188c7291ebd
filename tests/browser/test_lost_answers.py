"""What a choice on the ladder page becomes where its answer is lost, late or no picture (SPEC 5, 1; SPEC 6)."""

import re
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

pytestmark = [pytest.mark.browser, pytest.mark.sqlite]
MARK = "⚠ Not current · "


def lose(route: Route) -> None:
    route.abort()


def overload(route: Route) -> None:
    route.fulfill(status=503, body="")


def answer_for_another(route: Route) -> None:
    route.fulfill(status=200, content_type="text/html", body="<title>Hotel</title><p>Sign in to the hotel</p>")


@pytest.fixture(params=[lose, overload, answer_for_another])
def failing(signed_in: Page, live_server: Any, fleet: None, request: pytest.FixtureRequest) -> Page:
    """Return the ladder page, all further requests of which fail; `unroute_all` mends that."""
    signed_in.goto(live_server.url)
    signed_in.route(re.compile(r"/live/ladder|/\?"), request.param)
    return signed_in


def recover(page: Page) -> None:
    page.unroute_all()
    page.get_by_role("button", name="Try now").click()
    expect(page.locator("#poll-failed")).to_be_hidden()


def test_no_name_stands_over_another_pools_list_after_a_lost_answer(failing: Page) -> None:
    failing.get_by_label("Id").select_option("auto/best-free")
    banner = failing.locator("#poll-failed")
    expect(banner).to_contain_text("the controls stand as the picture does")
    expect(failing.get_by_label("Id")).to_have_value("auto/thrifty")
    expect(failing.locator("#r-pool")).to_contain_text("Pool order of auto/thrifty")
    recover(failing)
    expect(failing.get_by_label("Id")).to_have_value("auto/thrifty")
    failing.get_by_label("Id").select_option("auto/best-free")
    expect(failing.locator("#r-pool")).to_contain_text("Pool order of auto/best-free")
    expect(failing.get_by_label("Id")).to_have_value("auto/best-free")


def test_a_filter_whose_answer_is_lost_is_put_back(failing: Page) -> None:
    stale = failing.get_by_label(re.compile("^stale"))
    stale.click()
    expect(failing.locator("#poll-failed")).to_be_visible()
    expect(stale).not_to_be_checked()
    expect(failing.locator("#r-conns tbody tr:not(.group)")).to_have_count(12)
    assert "state" not in failing.url
    recover(failing)
    stale.check()
    expect(failing.locator("#r-conns tbody tr:not(.group)")).to_have_count(1)


def test_the_title_and_a_banner_in_view_tell_that_a_picture_is_past(failing: Page) -> None:
    failing.evaluate("window.scrollTo(0, 900)")
    row = failing.locator("a[id$='-kiro-1']")
    before = row.bounding_box()
    failing.evaluate("htmx.trigger('#poller', 'poll')")
    expect(failing).to_have_title(f"{MARK}0 of 5 rungs exhausted · Ladder")
    expect(failing.locator("#poll-failed")).to_be_in_viewport(ratio=1)
    assert row.bounding_box() == before
    recover(failing)
    expect(failing).to_have_title("0 of 5 rungs exhausted · Ladder")


def test_a_choice_after_the_session_ended_keeps_the_picture(signed_in: Page, live_server: Any, fleet: None) -> None:
    signed_in.goto(live_server.url + "/?rung=subscription")
    signed_in.context.clear_cookies()
    signed_in.get_by_label(re.compile("^stale")).click()
    banner = signed_in.locator("#poll-failed")
    expect(banner).to_contain_text("You are signed out.")
    expect(signed_in.get_by_label(re.compile("^stale"))).not_to_be_checked()
    expect(signed_in.locator("#r-conns")).to_contain_text("claude-main")
    banner.get_by_role("link", name="Sign in again").click()
    expect(signed_in).to_have_url(live_server.url + "/login?next=%2F%3Frung%3Dsubscription")


def test_a_late_answer_never_puts_another_pools_list_under_a_name(
    signed_in: Page, live_server: Any, fleet: None
) -> None:
    signed_in.goto(live_server.url)
    held: list[Route] = []
    signed_in.route(re.compile("/live/ladder"), lambda route: held.append(route), times=1)  # noqa: PLW0108
    # A token that is none: the answer will send every region of the pool that is shown now.
    signed_in.evaluate("document.querySelector('#live-state').dataset.token = ''; htmx.trigger('#poller', 'poll')")
    signed_in.get_by_label("Id").select_option("auto/best-free")
    expect(signed_in.locator("#r-pool")).to_contain_text("Pool order of auto/best-free")
    with signed_in.expect_response(re.compile("/live/ladder.*v=&?")):
        held[0].continue_()
    with signed_in.expect_response(re.compile(r"/live/ladder.*pool=auto%2Fbest-free")) as goes_on:
        pass
    assert goes_on.value.status == 204
    expect(signed_in.locator("#r-pool")).to_contain_text("Pool order of auto/best-free")
    expect(signed_in.locator("#poll-failed")).to_be_hidden()
