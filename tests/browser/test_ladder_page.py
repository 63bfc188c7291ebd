"""The ladder page in a real browser (SPEC 5, 1)."""

import re
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.admin import site
from django.contrib.auth import get_user_model
from django.urls import reverse
from playwright.sync_api import Page, Route, expect

from billing_catalog.models import BillingEntry
from ladder.models import Connection, QuotaWindow, RungBudget
from omniroute_admin.common import clock
from omniroute_admin.common.core.screen import iso_text
from omniroute_admin.common.core.words import age_text, until_text
from omniroute_admin.common.services.revision import deciding_write
from tests.browser.conftest import PASSWORD, axe_violations
from tests.browser.fleet import Window, make_connection

pytestmark = [pytest.mark.browser, pytest.mark.sqlite]


def exhaust(connection_id: str) -> None:
    with deciding_write():
        QuotaWindow.objects.filter(connection__connection_id=connection_id).update(
            remaining_percent=Decimal(1), observed_at=clock.now(), received_at=clock.now()
        )


def row_of(page: Page, name: str) -> Any:
    return page.locator("#r-conns tbody tr", has=page.locator(f"a[id$='-{name}']"))


def test_an_operator_signs_in_and_sees_the_ladder(page: Page, live_server: Any, operator: Any, fleet: None) -> None:
    page.goto(live_server.url)
    page.get_by_label("User name").fill("mira")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()

    expect(page).to_have_title("0 of 5 rungs exhausted · Ladder")
    expect(page.locator("#now")).to_contain_text("auto/thrifty serves from subscription")
    expect(row_of(page, "codex-ops")).to_contain_text("was 35 % left")
    expect(row_of(page, "codex-ops").locator(".c-code")).to_have_text("quota_stale")


def test_a_wrong_password_is_told_on_the_page(page: Page, live_server: Any, operator: Any) -> None:
    page.goto(live_server.url + "/login")
    page.get_by_label("User name").fill("mira")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_be_visible()


def test_the_page_changes_by_itself_and_keeps_focus_and_scroll(signed_in: Page, live_server: Any, fleet: None) -> None:
    signed_in.goto(live_server.url)
    link = signed_in.locator("#c-0-claude-claude-main")
    link.focus()
    signed_in.evaluate("window.scrollTo(0, 300); window.untouched = true")

    exhaust("claude-main")

    expect(row_of(signed_in, "claude-main").locator(".state")).to_have_text("exhausted")
    expect(row_of(signed_in, "claude-main").locator(".c-code")).to_have_text("quota_exhausted")
    expect(link).to_be_focused()
    assert signed_in.evaluate("window.scrollY") == 300
    assert signed_in.evaluate("window.untouched") is True


def test_the_title_counts_exhausted_rungs_as_they_become_so(signed_in: Page, live_server: Any, fleet: None) -> None:
    signed_in.goto(live_server.url)
    exhaust("kiro-1")
    expect(signed_in).to_have_title("1 of 5 rungs exhausted · Ladder")


def test_a_region_that_did_not_change_is_left_alone(signed_in: Page, live_server: Any, fleet: None) -> None:
    signed_in.goto(live_server.url)
    signed_in.evaluate("document.querySelector('#r-now').dataset.mine = 'yes'")

    with deciding_write():
        Connection.objects.filter(connection_id="ds-api").update(auth_type="cookie")

    expect(row_of(signed_in, "ds-api")).to_contain_text("cookie")
    assert signed_in.evaluate("document.querySelector('#r-now').dataset.mine") == "yes"


def test_an_unchanged_ladder_is_answered_with_no_content(signed_in: Page, live_server: Any, fleet: None) -> None:
    signed_in.goto(live_server.url)
    with signed_in.expect_response(re.compile("/live/ladder")) as answer:
        signed_in.get_by_role("link", name="Refresh").click()
    assert answer.value.status == 204


def test_a_failed_poll_keeps_the_picture_says_so_and_recovers(signed_in: Page, live_server: Any, fleet: None) -> None:
    signed_in.goto(live_server.url)

    def fail(route: Route) -> None:
        route.fulfill(status=503, body="")

    signed_in.route("**/live/ladder*", fail)
    signed_in.get_by_role("link", name="Refresh").click()

    banner = signed_in.locator("#poll-failed")
    expect(banner).to_contain_text("The last refresh failed.")
    expect(banner).to_contain_text(re.compile(r"Next try in \d+ s"))
    expect(row_of(signed_in, "claude-main").locator(".state")).to_have_text("usable")
    signed_in.unroute("**/live/ladder*", fail)
    exhaust("claude-main")
    banner.get_by_role("button", name="Try now").click()

    expect(banner).to_be_hidden()
    expect(row_of(signed_in, "claude-main").locator(".state")).to_have_text("exhausted")


def test_a_lost_network_is_told_like_a_failed_poll(signed_in: Page, live_server: Any, fleet: None) -> None:
    signed_in.goto(live_server.url)
    signed_in.context.set_offline(True)
    signed_in.get_by_role("link", name="Refresh").click()
    expect(signed_in.locator("#poll-failed")).to_be_visible()
    signed_in.get_by_role("button", name="Try now").click()
    signed_in.get_by_role("button", name="Try now").click()
    signed_in.context.set_offline(False)
    # Three failures in a row: the next try by itself is further off than this waits for.
    expect(signed_in.locator("#poll-failed")).to_be_hidden()


def test_a_session_that_ended_is_told_and_keeps_the_picture(signed_in: Page, live_server: Any, fleet: None) -> None:
    signed_in.goto(live_server.url)
    signed_in.context.clear_cookies()
    signed_in.get_by_role("link", name="Refresh").click()
    expect(signed_in.locator("#poll-failed")).to_contain_text("You are signed out.")
    expect(row_of(signed_in, "claude-main")).to_be_visible()


def test_a_filter_acts_at_once_and_is_kept_in_the_address(signed_in: Page, live_server: Any, fleet: None) -> None:
    signed_in.goto(live_server.url)
    signed_in.get_by_label(re.compile("^stale")).check()

    expect(signed_in).to_have_url(live_server.url + "/?state=stale")
    expect(signed_in.locator("#r-conns tbody tr:not(.group)")).to_have_count(1)
    expect(signed_in.get_by_label(re.compile("^stale"))).to_be_focused()
    signed_in.reload()
    expect(signed_in.get_by_label(re.compile("^stale"))).to_be_checked()
    signed_in.go_back()
    expect(signed_in.locator("#r-conns tbody tr:not(.group)")).to_have_count(12)


def test_a_filter_holds_while_the_page_keeps_itself_up_to_date(signed_in: Page, live_server: Any, fleet: None) -> None:
    signed_in.goto(live_server.url)
    signed_in.get_by_label(re.compile("^stale")).check()
    expect(signed_in.locator("#r-conns tbody tr:not(.group)")).to_have_count(1)
    now = clock.now()
    with deciding_write():
        make_connection("codex", "codex-old", "oauth", (Window("5h", "50", 60, 4000),), now=now)
    expect(signed_in.locator("#r-conns tbody tr:not(.group)")).to_have_count(2)


def test_the_picker_shows_a_pool_as_a_router_gets_it(signed_in: Page, live_server: Any, fleet: None) -> None:
    signed_in.goto(live_server.url)
    signed_in.get_by_label("Id").focus()
    signed_in.get_by_label("Id").select_option("auto/subscription")

    pool = signed_in.locator("#r-pool")
    expect(pool).to_contain_text("GET /api/v1/pools/auto/subscription?explain=true")
    expect(pool.locator(".xlist")).to_contain_text("keyless_not_in_plan")
    expect(signed_in).to_have_url(re.compile(r"\?pool=auto%2Fsubscription$"))
    expect(signed_in.get_by_label("Id")).to_be_focused()


def test_a_pool_page_keeps_itself_up_to_date(signed_in: Page, live_server: Any, fleet: None) -> None:
    signed_in.goto(live_server.url + "/pools/auto/coding:subscription")
    expect(signed_in.locator(".plist tbody tr")).to_have_count(3)
    exhaust("codex-plus")
    expect(signed_in.locator(".plist tbody tr")).to_have_count(2)
    signed_in.get_by_label("Id").select_option("auto/best-free")
    signed_in.get_by_role("button", name="Show").click()
    expect(signed_in).to_have_url(live_server.url + "/pools/auto/best-free")


def test_a_countdown_goes_on_between_polls(signed_in: Page, live_server: Any, fleet: None) -> None:
    signed_in.goto(live_server.url)
    age = row_of(signed_in, "claude-main").locator(".c-age [data-tick]")
    first = age.inner_text()
    expect(age).not_to_have_text(first)


SPANS = [5, 59, 61, 75, 599, 601, 3599, 3601, 3900, 86399, 86401, 200000, 900000]


def test_the_browser_counts_in_the_words_of_the_server(signed_in: Page, live_server: Any, fleet: None) -> None:
    signed_in.goto(live_server.url)
    now = clock.now()
    instants = [now + timedelta(seconds=span + 0.9) for span in SPANS] + [now - timedelta(seconds=s) for s in SPANS]
    ticks = ["in"] * len(SPANS) + ["ago"] * len(SPANS)
    signed_in.evaluate(
        """(rows) => { for (const [tick, at] of rows) { const e = document.createElement('span');
           e.className = 'probe'; e.dataset.tick = tick; e.dataset.at = at; document.body.append(e); } }""",
        [[tick, iso_text(at)] for tick, at in zip(ticks, instants, strict=True)],
    )
    expect(signed_in.locator(".probe").last).not_to_be_empty()

    shown = signed_in.locator(".probe").all_inner_texts()
    said = [until_text(at=now + timedelta(seconds=s), now=now) for s in SPANS]
    said += [age_text(at=now - timedelta(seconds=s), now=now) for s in SPANS]
    assert [pattern(text) for text in shown if text] == [pattern(text) for text in said]


def pattern(text: str) -> str:
    """Return the words without their numbers: a second passes while a page is asked."""
    return re.sub(r"\d+", "#", text)


def test_the_theme_chosen_is_kept(signed_in: Page, live_server: Any, fleet: None) -> None:
    signed_in.goto(live_server.url)
    signed_in.get_by_label("Theme").select_option("dark")
    signed_in.reload()
    expect(signed_in.locator("html")).to_have_attribute("data-theme", "dark")
    signed_in.get_by_label("Theme").select_option("auto")
    expect(signed_in.locator("html")).not_to_have_attribute("data-theme", re.compile("."))


@pytest.mark.parametrize("width", [390, 320])
@pytest.mark.parametrize("path", ["/", "/pools/auto/thrifty", "/login", "/nowhere"])
def test_a_narrow_page_never_scrolls_sideways(
    signed_in: Page, live_server: Any, fleet: None, path: str, width: int
) -> None:
    if path == "/login":
        signed_in.context.clear_cookies()
    signed_in.set_viewport_size({"width": width, "height": 800})
    signed_in.goto(live_server.url + path)
    assert signed_in.evaluate("document.documentElement.scrollWidth") <= width


def test_a_long_zone_does_not_widen_a_narrow_page(signed_in: Page, live_server: Any, fleet: None) -> None:
    with deciding_write():
        RungBudget.objects.filter(rung="cheap").update(zone="America/Argentina/ComodRivadavia")
    signed_in.set_viewport_size({"width": 320, "height": 800})
    signed_in.goto(live_server.url)
    expect(signed_in.locator("#now")).to_contain_text("America/Argentina/ComodRivadavia")
    assert signed_in.evaluate("document.documentElement.scrollWidth") <= 320


@pytest.mark.parametrize("width", [320, 860, 1440])
def test_a_long_name_does_not_widen_the_page(signed_in: Page, live_server: Any, fleet: None, width: int) -> None:
    with deciding_write():
        make_connection("claude", "c" * 128, "oauth", (Window("w" * 90, "50", 60, 10),), now=clock.now())
    signed_in.set_viewport_size({"width": width, "height": 800})
    signed_in.goto(live_server.url)
    expect(row_of(signed_in, "c" * 128)).to_be_visible()
    assert signed_in.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("path", ["/", "/?state=held", "/pools/auto/best-free", "/login", "/nowhere"])
def test_axe_finds_no_fault(signed_in: Page, live_server: Any, fleet: None, path: str, theme: Any) -> None:
    if path == "/login":
        signed_in.context.clear_cookies()
    signed_in.emulate_media(color_scheme=theme)
    signed_in.goto(live_server.url + path)
    assert axe_violations(signed_in) == []


def test_an_empty_ladder_tells_how_to_fill_it(signed_in: Page, live_server: Any) -> None:
    signed_in.goto(live_server.url)
    expect(signed_in.locator("#r-conns")).to_contain_text("manage.py import_omniroute")
    expect(signed_in.locator("#r-conns")).to_contain_text("manage.py sync_prices")
    assert axe_violations(signed_in) == []
    with deciding_write():
        make_connection("claude", "first", "oauth", now=clock.now())
    expect(row_of(signed_in, "first")).to_be_visible()


def test_the_admin_keeps_the_policy_and_never_scrolls_sideways(signed_in: Page, live_server: Any, fleet: None) -> None:
    """The context fails the test where a page breaks the policy."""
    lists = [reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist") for model in site._registry]
    one = reverse("admin:auth_user_change", args=[get_user_model().objects.get().pk])
    for path in (reverse("admin:index"), *lists, one):
        signed_in.goto(live_server.url + path)
        expect(signed_in.locator("#header .brand")).to_be_visible()
    signed_in.set_viewport_size({"width": 390, "height": 800})
    for path in (reverse("admin:index"), one):
        answer = signed_in.goto(live_server.url + path)
        assert answer is not None
        assert answer.status == 200
        assert signed_in.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_history_of_a_row_keeps_the_policy(signed_in: Page, live_server: Any, fleet: None) -> None:
    entry = BillingEntry.objects.first()
    assert entry is not None
    signed_in.goto(live_server.url + reverse("admin:billing_catalog_billingentry_history", args=[entry.pk]))
    expect(signed_in.locator("#change-history")).to_be_visible()


def test_it_works_without_script(chromium: Any, client: Any, live_server: Any, operator: Any, fleet: None) -> None:
    client.force_login(operator)
    context = chromium.new_context(java_script_enabled=False)
    session = client.cookies["sessionid"].value
    context.add_cookies([{"name": "sessionid", "value": session, "url": live_server.url}])
    page = context.new_page()
    page.goto(live_server.url)
    page.get_by_label(re.compile("^stale")).check()
    page.get_by_role("button", name="Apply").click()
    assert "state=stale" in page.url
    assert page.locator("#r-conns tbody tr:not(.group)").count() == 1
    context.close()


def test_a_budget_is_told_in_its_three_words(signed_in: Page, live_server: Any, fleet: None) -> None:
    signed_in.goto(live_server.url)
    expect(signed_in.locator("#now")).to_contain_text("cheap has $5.00 of $5.00 left until")
    expect(signed_in.locator("#now")).to_contain_text("premium is off.")
    with deciding_write():
        RungBudget.objects.filter(rung="cheap").update(amount_usd=None)
    expect(signed_in.locator("#now")).to_contain_text("cheap has no limit.")
    with deciding_write():
        RungBudget.objects.filter(rung="cheap").update(amount_usd=Decimal("0.004"))
    expect(signed_in.locator("#now")).to_contain_text("cheap has $0.004 of $0.004 left")


def test_an_empty_plan_is_told_with_its_return(signed_in: Page, live_server: Any, fleet: None) -> None:
    with deciding_write():
        kept = QuotaWindow.objects.exclude(connection__connection_id="claude-alt")
        kept.filter(connection__provider__in=["claude", "codex"]).update(
            remaining_percent=Decimal(0), reset_at=clock.now() + timedelta(minutes=41, seconds=30)
        )
    signed_in.goto(live_server.url)
    expect(signed_in.locator("#now .banner-bad")).to_contain_text("auto/subscription is empty; first plan back")
