"""Signing in, and one's own account, in a real browser: no breach of the policy, whole with the keyboard and by axe."""

import re
from collections.abc import Iterator
from typing import Any

import pyotp
import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import PASSWORD, axe_violations
from tests.omniroute_admin.sign_in.provider import CLIENT, SECRET, Provider, running_provider

pytestmark = pytest.mark.browser


@pytest.fixture
def provider(settings: Any) -> Iterator[Provider]:
    with running_provider() as found:
        settings.OIDC_ISSUER, settings.OIDC_CLIENT_ID, settings.OIDC_CLIENT_SECRET = found.issuer, CLIENT, SECRET
        settings.OIDC_NAME, settings.OIDC_ROLES = "Example", {"ops": "operator"}
        yield found


def sign_in(page: Page, url: str) -> None:
    page.goto(f"{url}/login")
    page.get_by_label("User name").fill("mira")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()


def test_single_sign_on_leads_there_and_back_to_the_page_that_was_wanted(
    page: Page, live_server: Any, provider: Provider, transactional_db: None
) -> None:
    provider.person["groups"] = ["ops"]
    page.goto(f"{live_server.url}/timeline")
    assert axe_violations(page) == []
    page.get_by_role("link", name="Sign in with Example").click()
    page.wait_for_url(f"{live_server.url}/timeline")
    page.get_by_role("link", name=re.compile("My account")).click()
    expect(page.get_by_role("heading", name="My account")).to_be_visible()
    expect(page.locator(".facts")).to_contain_text("operator")
    expect(page.locator(".facts")).to_contain_text("1234")
    assert axe_violations(page) == []


def test_a_second_factor_is_set_up_and_asked_for(page: Page, live_server: Any, operator: Any) -> None:
    sign_in(page, live_server.url)
    page.goto(f"{live_server.url}/account/second-factor")
    assert axe_violations(page) == []
    page.get_by_label("Password, to begin").fill(PASSWORD)
    page.keyboard.press("Enter")
    box = page.get_by_role("img", name="Picture for the app").bounding_box()
    assert box is not None
    assert box["width"] > 150
    secret = page.get_by_label("or type this key into it").input_value().replace(" ", "")
    assert axe_violations(page) == []
    app = pyotp.TOTP(secret)
    page.get_by_label("Code that the app shows now").fill(app.now())
    page.keyboard.press("Enter")
    expect(page.locator(".codes code")).to_have_count(10)
    codes = page.locator(".codes code").all_text_contents()
    assert axe_violations(page) == []
    page.get_by_role("link", name="I have kept them").click()
    expect(page.locator(".facts")).to_contain_text("10 recovery codes left")
    page.get_by_role("button", name="Sign out", exact=True).click()
    sign_in(page, live_server.url)
    expect(page.get_by_role("heading", name="Second factor")).to_be_visible()
    assert axe_violations(page) == []
    page.get_by_label("Code").fill("000000")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("wrong")
    page.get_by_label("Code").fill(codes[3])
    page.keyboard.press("Enter")
    page.wait_for_url(f"{live_server.url}/")


def test_a_locked_account_is_told_in_words(page: Page, live_server: Any, operator: Any) -> None:
    page.goto(f"{live_server.url}/login")
    for _ in range(6):
        page.get_by_label("User name").fill("mira")
        page.get_by_label("Password").fill("wrong")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_be_visible()
    expect(page.get_by_role("alert")).to_contain_text("The next one is taken in 15 minutes.")


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_each_page_fits_and_passes_axe(
    signed_in: Page, live_server: Any, operator: Any, provider: Provider, width: int, scheme: Any
) -> None:
    page = signed_in
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page.set_viewport_size({"width": width, "height": 900})
    for address in ("/account", "/account/password", "/account/second-factor", f"/accounts/{operator.pk}"):
        page.goto(live_server.url + address)
        assert axe_violations(page) == [], address
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), address
        expect(page.get_by_role("link", name=re.compile("My account")).first).to_be_visible()
