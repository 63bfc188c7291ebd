"""The page of alerts: what is open, rules made and changed, the test button, the log."""

from datetime import time, timedelta

import pytest
import time_machine
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group

from billing_catalog.models import BillingEntry
from ladder.core.alerts.channels import Channel
from ladder.models import AlertDelivery, AlertRule, Connection
from omniroute_admin.common.selectors.revision import current_revision
from tests.factories import (
    AlertDeliveryFactory,
    AlertFactory,
    AlertRuleFactory,
    BillingEntryFactory,
    ConnectionFactory,
)
from tests.factories_ladder import NOW

pytestmark = pytest.mark.django_db
ADDRESS = "slack://t0ken-a/t0ken-b/t0ken-c"


@pytest.fixture
def page(client, settings):
    settings.ALERT_CHANNELS = {"ops": Channel("ops", "slack", ADDRESS)}
    user = get_user_model().objects.create_user("mira")
    user.groups.set(Group.objects.filter(name="operator"))
    client.force_login(user)
    with time_machine.travel(NOW, tick=False):
        yield client


def seen_in(response) -> str:
    form = response.context["form"]
    return form["seen"].value()


def filled(page, address: str, **values) -> dict:
    """Return what the form at an address would send, with changes."""
    shown = page.get(address)
    base = {"quiet_zone": "UTC", "for_seconds": "0", "reason": "a test", "seen": seen_in(shown)}
    return base | values


def test_an_empty_page_says_what_is_missing_and_how_to_mend_it(page, settings):
    settings.ALERT_CHANNELS = {}
    text = page.get("/alerts").content.decode()
    for words in ("Nothing that a rule looks for is so", "There is no rule yet", "Nothing was sent yet"):
        assert words in text
    assert "The environment names no channel." in text
    assert "ALERT_CHANNEL_OPS=slack://…" in text


def test_what_is_open_the_rules_and_the_log_are_shown_and_no_address(page):
    rule = AlertRuleFactory(name="Plans", channels=["ops", "gone"], quiet_from=time(22), quiet_to=time(7))
    alert = AlertFactory(rule=rule, raised_at=NOW - timedelta(minutes=5), page="/pools/auto/subscription")
    AlertDeliveryFactory(alert=alert, channel="ops", state="given_up", next_attempt_at=None, last_error="answered 404")
    response = page.get("/alerts")
    text = response.content.decode()
    for words in (
        'href="/pools/auto/subscription">auto/subscription is empty',
        "5 min 00 s ago",
        "quiet 22:00 to 07:00 UTC",
        "1 open",
        "answered 404",
        "Try again",
        "not in the environment",
        '<code>ops</code> <span class="muted small">slack</span>',
    ):
        assert words in text, words
    assert "t0ken" not in text
    assert "hx-get" not in text, "nothing is on its way, so that nothing is asked for again"


def test_a_rule_is_made_by_its_kind_and_refused_field_by_field(page):
    assert "A budget is spent to N %" in page.get("/alerts/rules/new").content.decode()
    address = "/alerts/rules/new?kind=budget"
    before = current_revision()
    bad = page.post(address, filled(page, address, name="Money", threshold="101", quiet_from="22:00", channels=["x"]))
    assert bad.status_code == 400
    assert set(bad.context["form"].errors) == {"threshold", "quiet_to", "channels"}
    always = filled(page, address, name="Money", threshold="80", quiet_from="22:00", quiet_to="22:00")
    refused = page.post(address, always)
    assert refused.context["form"].errors == {"quiet_to": ["This would be quiet for ever: pause the rule instead."]}
    values = filled(page, address, name="Money", threshold="80", channels=["ops"], quiet_from="22:00", quiet_to="7:00")
    done = page.post(address, values | {"quiet_days": ["saturday"], "quiet_zone": "europe/berlin"})
    assert (done.status_code, done["Location"]) == (302, "/alerts")
    rule = AlertRule.objects.get()
    assert (rule.looks_for, rule.subject, rule.threshold, rule.channels) == ("budget", "", 80, ["ops"])
    assert (rule.quiet_from, rule.quiet_to, rule.quiet_zone) == (time(22), time(7), "Europe/Berlin")
    act = rule.history.get()
    assert (act.history_actor, act.history_change_reason, act.history_date) == ("mira", "a test", NOW)
    assert current_revision() == before
    assert "Money" in page.get("/audit?kind=alert-rule").content.decode()


@pytest.mark.parametrize(
    ("kind", "there", "absent"),
    [
        ("no_readings", "claude/c/1", ["claude/nosuch", "nosuch", "codex/c/1", "claude/"]),
        ("overage", "claude/c/1", ["claude/nosuch", "*"]),
        ("unreviewed", "claude", ["nosuch", "claude/c/1"]),
    ],
)
def test_a_rule_about_what_is_not_there_is_refused_and_one_whose_connection_goes_says_so(page, kind, there, absent):
    ConnectionFactory(connection_id="c/1")
    BillingEntryFactory(provider="claude", auth_type="oauth")
    address = f"/alerts/rules/new?kind={kind}"
    for subject in absent:
        refused = page.post(address, filled(page, address, name="Watch", threshold="30", subject=subject))
        assert refused.status_code == 400
        assert "There is nothing of that name" in refused.context["form"].errors["subject"][0]
    assert page.post(address, filled(page, address, name="Watch", threshold="30", subject=there)).status_code == 302
    assert "watches nothing" not in page.get("/alerts").content.decode()
    Connection.objects.update(deleted_at=NOW)
    BillingEntry.objects.all().delete()
    assert "watches nothing" in page.get("/alerts").content.decode()
    rule = AlertRule.objects.get()
    assert page.post(f"/alerts/rules/{rule.pk}/pause", {"reason": "it is gone"}).status_code == 302
    changed = filled(page, f"/alerts/rules/{rule.pk}", name="Gone", threshold="31", subject=there)
    assert page.post(f"/alerts/rules/{rule.pk}", changed).status_code == 302


def test_the_second_of_two_who_change_a_rule_is_told(page):
    rule = AlertRuleFactory(name="Plans", channels=["ops"])
    address = f"/alerts/rules/{rule.pk}"
    mine = filled(page, address, name="Mine", subject="auto/subscription", channels=["ops"])
    theirs = mine | {"name": "Theirs"}
    with time_machine.travel(NOW + timedelta(seconds=1), tick=False):
        assert page.post(address, theirs).status_code == 302
    response = page.post(address, mine)
    assert response.status_code == 409
    assert "Somebody changed this rule" in response.content.decode()
    rule.refresh_from_db()
    assert rule.name == "Theirs"


def test_a_rule_is_paused_goes_on_and_is_deleted_each_with_a_reason(page):
    rule = AlertRuleFactory()
    for act, is_enabled in (("pause", False), ("pause", True)):
        address = f"/alerts/rules/{rule.pk}/{act}"
        assert page.post(address, {}).status_code == 400
        assert page.post(address, {"reason": "quiet please"}).status_code == 302
        rule.refresh_from_db()
        assert rule.is_enabled is is_enabled
        assert rule.history.latest("history_id").history_change_reason == "quiet please"
    assert page.post(f"/alerts/rules/{rule.pk}/delete", {"reason": "done with"}).status_code == 302
    assert AlertRule.history.latest("history_id").history_change_reason == "done with"
    assert page.get(f"/alerts/rules/{rule.pk}").status_code == 404


def test_one_goes_back_to_a_version_of_a_rule(page):
    address = "/alerts/rules/new?kind=budget"
    page.post(address, filled(page, address, name="Money", threshold="80"))
    rule = AlertRule.objects.get()
    first = rule.history.get().history_id
    page.post(f"/alerts/rules/{rule.pk}/delete", {"reason": "x"})
    version = page.get(f"/audit/alert-rule/{first}")
    done = page.post(version.request["PATH_INFO"], {"seen": seen_in(version), "reason": "back"})
    assert done.status_code == 302
    again = AlertRule.objects.get()
    assert (again.name, again.threshold, again.looks_for) == ("Money", 80, "budget")


def test_the_usual_rules_are_added_once_by_one_button(page):
    assert page.post("/alerts/usual", {"channel": "ops", "reason": ""}).status_code == 400
    for _ in range(2):
        page.post("/alerts/usual", {"channel": "ops", "reason": "a start"})
    assert AlertRule.objects.count() == 7
    assert set(map(tuple, AlertRule.objects.values_list("channels", flat=True))) == {("ops",)}


def test_the_test_button_puts_one_to_each_channel_and_the_log_asks_until_it_is_done(page):
    rule = AlertRuleFactory(channels=["ops"])
    assert page.post(f"/alerts/rules/{rule.pk}/test")["Location"] == "/alerts#log"
    row = AlertDelivery.objects.get()
    assert (row.kind, row.state, row.asked_by) == ("test", "queued", "mira")
    assert 'hx-trigger="every 2s"' in page.get("/alerts").content.decode()
    AlertDelivery.objects.update(state="sent", next_attempt_at=None, sent_at=NOW)
    fragment = page.get("/live/alerts").content.decode()
    assert "hx-trigger" not in fragment
    assert "asked for by mira" in fragment


def test_what_was_given_up_is_tried_again_and_nothing_else(page):
    row = AlertDeliveryFactory(state="given_up", next_attempt_at=None, attempts=6, last_error="answered 404")
    for state in ("queued", "sent"):
        assert page.post(f"/alerts/deliveries/{row.pk}/again").status_code == 302
        row.refresh_from_db()
        assert (row.state, row.attempts) == (state, 0)
        AlertDelivery.objects.update(state="sent", next_attempt_at=None)


def test_the_log_is_narrowed_and_paged_and_what_cannot_be_asked_is_left_out(page):
    alert = AlertFactory()
    for number in range(30):
        AlertDeliveryFactory(alert=alert, channel=f"c{number}", state="sent", next_attempt_at=None)
    AlertDeliveryFactory(alert=alert, kind="resolved", channel="ops")

    def count(query):
        return page.get(f"/live/alerts?{query}").context["leaf"].total

    asked = ("", "state=sent", "kind=resolved", "channel=c3", "channel=none")
    assert [count(query) for query in asked] == [31, 30, 1, 1, 0]
    assert count("state=nonsense&kind=%00&page=x") == 31
    assert len(page.get("/live/alerts?page=2").context["lines"]) == 6


def test_a_viewer_sees_rules_without_acts(page):
    rule = AlertRuleFactory(name="Plans")
    get_user_model().objects.get().groups.set(Group.objects.filter(name="viewer"))
    text = page.get("/alerts").content.decode() + page.get(f"/alerts/rules/{rule.pk}").content.decode()
    assert "Plans" in text
    assert "New rule" not in text
    assert "<textarea" not in text
    assert f"/alerts/rules/{rule.pk}/test" not in text
