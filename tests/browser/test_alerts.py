"""The pages of alerts in a real browser: no fault that axe finds, and a test whose delivery is seen to arrive."""

from datetime import timedelta
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from ladder.core.alerts.channels import Channel
from ladder.models import Alert, AlertDelivery, AlertRule
from omniroute_admin.common import clock
from tests.browser.conftest import axe_violations
from tests.factories import AlertDeliveryFactory, AlertFactory, AlertRuleFactory
from tests.ladder.services.alerting import hooks, send_all

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
LONG = "a-name-without-any-place-to-break-it-" * 2


@pytest.fixture
def told() -> None:
    """Store rules, an open alert with a long name, and a delivery in every state."""
    rule = AlertRuleFactory(name=LONG, channels=["ops", "gone"], for_seconds=90)
    AlertRuleFactory(name="paused", is_enabled=False)
    now = clock.now()
    alert = AlertFactory(rule=rule, title=f"{LONG} is exhausted", raised_at=now - timedelta(minutes=5), page="/")
    ahead = now + timedelta(hours=1)
    for state, at in (
        ("queued", ahead), ("failed", ahead), ("held_for_quiet", ahead), ("sent", None), ("given_up", None),
        ("only_logged", None),
    ):  # fmt: skip
        AlertDeliveryFactory(alert=alert, channel=state, state=state, next_attempt_at=at, last_error="answered 503")


def addresses() -> list[str]:
    rule = AlertRule.objects.order_by("id").first()
    assert rule is not None
    one = f"/alerts/rules/{rule.pk}"
    kinds = [f"/alerts/rules/new?kind={kind}" for kind in ("budget", "no_readings", "pool_empty")]
    return ["/alerts", "/alerts?state=sent", "/alerts?channel=none", "/alerts/rules/new", *kinds, one, f"{one}/pause",
            f"{one}/delete", "/alerts/usual"]  # fmt: skip


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390, 320])
def test_the_pages_have_no_fault_that_axe_finds_and_fit(
    signed_in: Page, live_server: Any, told: None, settings: Any, scheme: Any, width: int
) -> None:
    settings.ALERT_CHANNELS = {"ops": Channel("ops", "slack", "slack://a/b/c")}
    signed_in.set_viewport_size({"width": width, "height": 900})
    signed_in.emulate_media(color_scheme=scheme)
    for address in addresses():
        signed_in.goto(live_server.url + address)
        assert axe_violations(signed_in) == [], address
        inside = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
        assert signed_in.evaluate(inside), f"{address} scrolls sideways at {width}"


def test_the_test_button_sends_one_and_the_log_shows_it_arrive_by_itself(
    signed_in: Page, live_server: Any, settings: Any
) -> None:
    with hooks(settings, "hook") as receiver:
        AlertRuleFactory(name="Plans", channels=["hook"])
        signed_in.goto(f"{live_server.url}/alerts")
        signed_in.get_by_role("button", name="Test Plans").click()
        log = signed_in.locator("#log")
        expect(log.locator("tbody tr")).to_contain_text("queued")
        assert send_all(clock.now()) == [""]
        expect(log.locator("tbody tr")).to_contain_text("sent", timeout=15_000)
        expect(log.locator("#log-rows")).not_to_have_attribute("hx-trigger", "every 2s")
        assert len(receiver.requests) == 1
    assert (Alert.objects.count(), AlertDelivery.objects.get().state) == (0, "sent")
