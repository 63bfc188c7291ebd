"""A real browser for tests: Debian's Chromium, driven by Playwright; skipped with a reason where there is none."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = ["--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update"]
VENDOR = Path(__file__).parent / "vendor"
PASSWORD = "a-password-for-tests-only"


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium, or name one in CHROMIUM")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def operator(transactional_db: None, django_user_model: Any) -> Any:
    return django_user_model.objects.create_superuser("mira", "mira@example.com", PASSWORD)


@pytest.fixture
def fleet(transactional_db: None) -> None:
    from omniroute_admin.common import clock
    from omniroute_admin.common.services.revision import deciding_write
    from tests.browser.fleet import make_fleet

    with deciding_write():
        make_fleet(now=clock.now())


@pytest.fixture
def context(chromium: Browser) -> Iterator[BrowserContext]:
    """Yield a browser context; the test fails where a page broke the policy or a script failed."""
    made = chromium.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
    made.set_default_timeout(8000)
    faults: list[str] = []
    made.expose_binding("reportViolation", lambda _, text: faults.append(f"policy: {text}"))
    made.add_init_script(
        "document.addEventListener('securitypolicyviolation',"
        " (e) => reportViolation(e.violatedDirective + ' ' + e.blockedURI + ' ' + e.sourceFile))"
    )
    made.on("weberror", lambda error: faults.append(f"script: {error.error}"))
    yield made
    made.close()
    assert faults == []


@pytest.fixture
def page(context: BrowserContext) -> Page:
    """Return a page that nobody is signed in on."""
    return context.new_page()


@pytest.fixture
def signed_in(page: Page, client: Any, operator: Any, live_server: Any) -> Page:
    """Return a page on which an operator is signed in."""
    client.force_login(operator)
    session = client.cookies["sessionid"].value
    page.context.add_cookies([{"name": "sessionid", "value": session, "url": live_server.url}])
    return page


def axe_violations(page: Page) -> list[str]:
    """Return what axe-core finds on a page, a line each."""
    page.evaluate((VENDOR / "axe.min.js").read_text())
    # Without preload: it copies style sheets into elements of the page, which the policy refuses.
    result = page.evaluate("axe.run(document, {resultTypes: ['violations'], preload: false})")
    return [
        f"{found['id']}: {found['help']}: {node['target']} {node['failureSummary']}"
        for found in result["violations"]
        for node in found["nodes"]
    ]
