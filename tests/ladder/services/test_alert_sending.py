"""Deliveries: retries with growing pauses, order, quiet hours, and what a dead worker leaves."""

from datetime import UTC, datetime, time

import pytest

from ladder.core.alerts.channels import Channel
from ladder.core.alerts.delivery import LEASE, PAUSES
from ladder.models import AlertDelivery
from ladder.services.alert_rules import send_test, try_again, update_rule
from ladder.services.alert_sending import RAISE_GIVEN_UP, UNHEARD, send_next
from tests.factories import AlertDeliveryFactory, AlertFactory, AlertRuleFactory
from tests.factories_ladder import NOW, OPERATOR
from tests.ladder.services.alerting import HOUR, MINUTE, SECOND, a_plan, bodies, hooks, kinds, look, read, send_all

pytestmark = pytest.mark.django_db


@pytest.fixture
def receiver(settings):
    settings.PUBLIC_URL = "https://ladder.example.com"
    with hooks(settings, "hook", "second") as found:
        yield found


def states() -> list[str]:
    return list(AlertDelivery.objects.order_by("at", "kind").values_list("state", flat=True))


def test_a_pair_arrives_with_all_that_a_receiver_needs(receiver):
    window, rule = a_plan(NOW), AlertRuleFactory(name="Plans")
    read(window, 1, NOW)
    look(NOW)
    assert send_all(NOW) == [""]
    read(window, 90, NOW + MINUTE)
    look(NOW + MINUTE)
    assert send_all(NOW + MINUTE) == [""]
    raised, resolved = bodies(receiver)
    assert (raised["kind"], raised["rule"], raised["subject"]) == ("raised", "Plans", "auto/subscription")
    assert raised["condition"] == resolved["condition"] == f"{rule.pk}:pool_empty:auto/subscription"
    assert raised["page"] == "https://ladder.example.com/pools/auto/subscription"
    assert (raised["raised_at"], raised["resolved_at"]) == ("2026-08-22T12:00:00Z", None)
    assert (resolved["raised_at"], resolved["resolved_at"]) == ("2026-08-22T12:00:00Z", "2026-08-22T12:01:00Z")
    assert raised["title"] == "Raised: auto/subscription is empty"
    assert resolved["title"] == "Resolved: auto/subscription is empty"
    assert raised["alert"] == resolved["alert"]
    assert raised["id"] != resolved["id"]
    assert states() == ["sent", "sent"]


def test_what_fails_is_tried_again_after_growing_pauses_and_then_given_up(receiver):
    row, at = AlertDeliveryFactory(), NOW
    receiver.answers = [503] * 6
    for pause in PAUSES:
        assert send_all(at) == ["answered 503"]
        assert send_all(at + pause - SECOND) == []
        at += pause
    assert send_all(at) == ["answered 503"]
    row.refresh_from_db()
    assert (row.state, row.attempts, row.next_attempt_at, row.last_error) == ("given_up", 6, None, "answered 503")
    assert {one.headers["x-ladder-delivery"] for one in receiver.requests} == {str(row.pk)}
    assert try_again(delivery=row, now=at + HOUR)
    assert send_all(at + HOUR) == [""]
    assert states() == ["sent"]
    assert not try_again(delivery=row, now=at + HOUR)


def test_what_can_never_arrive_is_given_up_at_once(receiver, settings):
    AlertDeliveryFactory()
    AlertDeliveryFactory(channel="ops", at=NOW + SECOND)
    receiver.answers = [404]
    assert send_all(NOW + SECOND) == [
        "answered 404",
        "there is no such channel: set ALERT_CHANNEL_OPS where the worker runs",
    ]
    assert states() == ["given_up", "given_up"]


def test_a_resolve_waits_for_its_raise_and_goes_with_it(receiver):
    alert = AlertFactory(resolved_at=NOW + SECOND, resolved_text="over")
    raised = AlertDeliveryFactory(alert=alert)
    resolved = AlertDeliveryFactory(alert=alert, kind="resolved", at=NOW + SECOND)
    receiver.answers = [503]
    assert send_all(NOW + SECOND) == ["answered 503"]
    assert send_all(NOW + 11 * SECOND) == ["", ""]
    assert kinds(receiver) == ["raised", "raised", "resolved"]
    AlertDelivery.objects.filter(pk=raised.pk).update(state="given_up")
    AlertDelivery.objects.filter(pk=resolved.pk).update(state="queued", next_attempt_at=NOW)
    assert send_all(NOW + HOUR) == []
    resolved.refresh_from_db()
    assert (resolved.state, resolved.last_error) == ("given_up", RAISE_GIVEN_UP)
    assert try_again(delivery=resolved, now=NOW + HOUR)
    assert send_all(NOW + HOUR) == ["", ""]
    assert kinds(receiver)[-2:] == ["raised", "resolved"]


def test_a_channel_that_fails_is_passed_over_and_the_others_go_on(receiver):
    for number, channel in enumerate(["hook", "hook", "second"]):
        AlertDeliveryFactory(channel=channel, at=NOW + number * SECOND)
    receiver.answers = [500]
    assert send_next(now=NOW + MINUTE).channel == "hook"
    assert send_next(now=NOW + MINUTE, without={"hook"}).channel == "second"
    assert send_next(now=NOW + MINUTE, without={"hook"}) is None


def test_an_attempt_of_which_nothing_was_heard_is_made_again_and_not_for_ever(receiver):
    row = AlertDeliveryFactory(attempts=1, next_attempt_at=NOW + LEASE)
    assert send_all(NOW + LEASE - SECOND) == []
    assert send_all(NOW + LEASE) == [""]
    AlertDelivery.objects.filter(pk=row.pk).update(state="queued", attempts=len(PAUSES) + 1, next_attempt_at=NOW)
    assert send_all(NOW) == []
    row.refresh_from_db()
    assert (row.state, row.last_error) == ("given_up", UNHEARD)


NIGHT = {"quiet_from": time(22), "quiet_to": time(7), "quiet_zone": "Europe/Berlin"}
EVENING, MORNING = datetime(2026, 8, 22, 21, 0, tzinfo=UTC), datetime(2026, 8, 23, 5, 0, tzinfo=UTC)


def test_what_is_raised_in_quiet_hours_and_still_so_is_told_at_their_end(receiver):
    window = a_plan(EVENING)
    AlertRuleFactory(**NIGHT)
    read(window, 1, EVENING)
    look(EVENING)
    assert (states(), send_all(MORNING - SECOND)) == (["held_for_quiet"], [])
    assert send_all(MORNING) == [""]
    assert "Began Sat 21:00, in quiet hours, UTC." in bodies(receiver)[0]["text"]
    read(window, 90, MORNING)
    look(MORNING)
    assert send_all(MORNING) == [""]
    assert kinds(receiver) == ["raised", "resolved"]


def test_what_was_over_by_the_end_of_quiet_hours_is_only_in_the_log(receiver):
    window = a_plan(EVENING)
    AlertRuleFactory(**NIGHT)
    read(window, 1, EVENING)
    look(EVENING)
    read(window, 90, EVENING + HOUR)
    assert look(EVENING + HOUR) == (0, 1)
    assert (states(), send_all(MORNING + HOUR), receiver.requests) == (["only_logged"], [], [])


def test_the_end_of_what_was_told_before_is_told_after_the_quiet_hours(receiver):
    before = EVENING - 2 * HOUR
    window = a_plan(before)
    AlertRuleFactory(**NIGHT)
    read(window, 1, before)
    look(before)
    assert send_all(before) == [""]
    read(window, 90, EVENING)
    look(EVENING)
    assert send_all(EVENING) == []
    # And it begins again in the same night.
    read(window, 1, EVENING + HOUR)
    look(EVENING + HOUR)
    assert send_all(MORNING) == ["", ""]
    assert kinds(receiver) == ["raised", "resolved", "raised"]


def test_a_retry_that_comes_due_in_quiet_hours_waits_for_their_end(receiver):
    row = AlertDeliveryFactory(
        alert__rule=AlertRuleFactory(**NIGHT), state="failed", attempts=1, next_attempt_at=EVENING
    )
    assert send_all(EVENING) == []
    row.refresh_from_db()
    assert (row.state, row.next_attempt_at, row.attempts) == ("held_for_quiet", MORNING, 1)


def test_quiet_hours_that_are_changed_let_go_what_they_held(receiver):
    rule = AlertRuleFactory(**NIGHT)
    AlertDeliveryFactory(alert__rule=rule, state="held_for_quiet", next_attempt_at=MORNING)
    changes = {"quiet_from": None, "quiet_to": None}
    update_rule(rule=rule, changes=changes, actor=OPERATOR, reason="x", now=EVENING)
    assert send_all(EVENING) == [""]


def test_a_test_goes_to_each_channel_at_once_in_quiet_hours_too(receiver):
    rule = AlertRuleFactory(name="Nights", channels=["hook", "second"], **NIGHT)
    send_test(rule=rule, actor=OPERATOR, now=EVENING)
    assert send_all(EVENING) == ["", ""]
    assert sorted(one.path for one in receiver.requests) == ["/hook/t0ken", "/second/t0ken"]
    body = bodies(receiver)[0]
    assert (body["kind"], body["title"], body["alert"]) == ("test", "Test: Nights", None)
    assert body["page"] == "https://ladder.example.com/alerts"


def test_nothing_of_an_address_or_of_the_secret_is_kept(receiver, settings):
    for number, status in enumerate([200, 404, 503]):
        receiver.answers = [status]
        AlertDeliveryFactory(at=NOW + number * SECOND)
        send_all(NOW + number * SECOND)
    settings.ALERT_CHANNELS = {"hook": Channel("hook", "webhook", "http://127.0.0.1:1/t0ken")}
    AlertDeliveryFactory()
    send_all(NOW + MINUTE)
    kept = str(
        [list(AlertDelivery.objects.values_list(name, flat=True)) for name in ("last_error", "channel", "state")]
    )
    assert [word for word in ("t0ken", "127.0.0.1", settings.ALERT_WEBHOOK_SECRET) if word in kept] == []
