"""Send what is due, one delivery at a time; what it came to stands in the row.

A delivery is claimed by one conditional UPDATE, which both databases do alike: of many senders one makes the attempt,
and it moves the next one ahead, so that an attempt that dies with its process is made again. Only then may something
arrive twice: sent, and the process ended before it could say so. A webhook bears the same id then.
"""

from collections.abc import Collection
from datetime import datetime

import msgspec
from django.conf import settings
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.urls import reverse

from ladder.adapters import apprise, webhook
from ladder.core.alerts.channels import WEBHOOK, Channel, Outcome
from ladder.core.alerts.delivery import LEASE, PAUSES, DeliveryState, next_attempt
from ladder.core.alerts.quiet import quiet_until
from ladder.core.alerts.words import Notice, NoticeKind, Told, notice_of, notice_of_test
from ladder.mapping import to_quiet_hours
from ladder.models import Alert, AlertDelivery
from ladder.selectors.alerts import channels
from omniroute_admin.common.zone import display_zone

_RAISED, _RESOLVED = NoticeKind.RAISED.value, NoticeKind.RESOLVED.value
_GIVEN_UP, _SENT = DeliveryState.GIVEN_UP.value, DeliveryState.SENT.value
RAISE_GIVEN_UP = "what it resolves was not delivered"
UNHEARD = "the process that sent it ended each time"


class Sent(msgspec.Struct, frozen=True):
    """One attempt: to which channel, and what came of it."""

    channel: str
    outcome: Outcome


def send_next(*, now: datetime, without: Collection[str] = ()) -> Sent | None:
    """Send the delivery that has been due for longest and return what came of it; None where none is due.

    `without` are channels to pass over. A resolve goes out after its raise has; one whose raise was given up is given
    up too. What comes due in quiet hours is put off to their end.
    """
    _give_up_widows()
    while (row := _due(now).exclude(channel__in=without).first()) is not None:
        if _is_put_off(row, now) or _is_hopeless(row) or not _claim(row, now):
            continue
        outcome = _attempt(row, now)
        _note(row, outcome, now)
        return Sent(row.channel, outcome)
    return None


def _due(now: datetime) -> QuerySet[AlertDelivery]:
    unsent = AlertDelivery.objects.filter(
        alert=OuterRef("alert"), channel=OuterRef("channel"), kind=_RAISED
    ).exclude(state=_SENT)  # fmt: skip
    due = AlertDelivery.objects.filter(next_attempt_at__lte=now)
    return due.exclude(Q(kind=_RESOLVED) & Exists(unsent)).select_related("alert", "rule").order_by("at", "id")


def _give_up_widows() -> None:
    """Give up the resolves whose raises were."""
    given_up = AlertDelivery.objects.filter(
        alert=OuterRef("alert"), channel=OuterRef("channel"), kind=_RAISED, state=_GIVEN_UP
    )
    waiting = AlertDelivery.objects.filter(Exists(given_up), kind=_RESOLVED, next_attempt_at__isnull=False)
    waiting.update(state=_GIVEN_UP, next_attempt_at=None, last_error=RAISE_GIVEN_UP)


def _mine(row: AlertDelivery) -> QuerySet[AlertDelivery]:
    """Return the row if it is as it was read, none if another process has taken it."""
    return AlertDelivery.objects.filter(
        pk=row.pk, state=row.state, attempts=row.attempts, next_attempt_at=row.next_attempt_at
    )


def _is_put_off(row: AlertDelivery, now: datetime) -> bool:
    """Put a delivery off to the end of the quiet hours that it came due in."""
    if row.kind == NoticeKind.TEST.value:
        return False
    end = quiet_until(quiet=to_quiet_hours(row.rule), at=now)
    if end is not None:
        _mine(row).update(state=DeliveryState.HELD.value, next_attempt_at=end, was_held=True)
    return end is not None


def _is_hopeless(row: AlertDelivery) -> bool:
    """Give up a delivery of which no attempt was ever heard again: it may be what ends the process."""
    if row.attempts <= len(PAUSES):
        return False
    _mine(row).update(state=_GIVEN_UP, next_attempt_at=None, last_error=UNHEARD)
    return True


def _claim(row: AlertDelivery, now: datetime) -> bool:
    claimed = _mine(row).update(
        state=DeliveryState.QUEUED.value, attempts=F("attempts") + 1, next_attempt_at=now + LEASE
    )
    row.attempts += 1
    return claimed == 1


def _attempt(row: AlertDelivery, now: datetime) -> Outcome:
    channel = channels().get(row.channel)
    if channel is None:
        variable = f"ALERT_CHANNEL_{row.channel.upper()}"
        return Outcome(f"there is no such channel: set {variable} where the worker runs", is_permanent=True)
    notice = _notice(row, now)
    if channel.kind == WEBHOOK:
        return _post(row, channel, notice, now)
    is_good = row.kind == _RESOLVED
    return apprise.send(address=channel.address, title=notice.title, text=notice.text, is_good=is_good)


def _post(row: AlertDelivery, channel: Channel, notice: Notice, now: datetime) -> Outcome:
    alert = row.alert
    message = webhook.Message(
        id=str(row.pk),
        kind=row.kind,
        rule=row.rule_name,
        alert=None if alert is None else str(alert.pk),
        condition=None if alert is None else alert.key,
        subject=None if alert is None else alert.subject,
        title=notice.title,
        text=notice.text,
        raised_at=None if alert is None else alert.raised_at,
        resolved_at=None if alert is None or row.kind == _RAISED else alert.resolved_at,
        revision=None if alert is None else str(alert.revision),
        page=_link(alert),
    )
    return webhook.send(address=channel.address, secret=settings.ALERT_WEBHOOK_SECRET, message=message, now=now)


def _link(alert: Alert | None) -> str:
    path = reverse("alerts") if alert is None else alert.page
    return f"{settings.PUBLIC_URL}{path}" if settings.PUBLIC_URL and path else ""


def _notice(row: AlertDelivery, now: datetime) -> Notice:
    alert = row.alert
    if alert is None:
        return notice_of_test(rule=row.rule_name, link=_link(None))
    told = Told(
        rule=row.rule_name,
        title=alert.title,
        text=alert.text,
        resolved_text=alert.resolved_text,
        raised_at=alert.raised_at,
        resolved_at=alert.resolved_at,
        was_quiet=row.was_held,
    )
    return notice_of(told=told, kind=NoticeKind(row.kind), link=_link(alert), zone=display_zone(), now=now)


def _note(row: AlertDelivery, outcome: Outcome, now: datetime) -> None:
    """Keep what came of an attempt; a failure only where no later one has begun."""
    rows = AlertDelivery.objects.filter(pk=row.pk).exclude(state=_SENT)
    if outcome.is_delivered:
        rows.update(state=_SENT, sent_at=now, next_attempt_at=None, last_error="")
        return
    again = next_attempt(attempts=row.attempts, is_permanent=outcome.is_permanent, now=now)
    rows.filter(attempts=row.attempts).update(
        state=(DeliveryState.GIVEN_UP if again is None else DeliveryState.FAILED).value,
        next_attempt_at=again,
        last_error=outcome.problem,
    )
