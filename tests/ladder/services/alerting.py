"""What tests of alerts share: a channel that is a real server, and a plan that comes and goes."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from decimal import Decimal

from ladder.core.alerts.channels import Channel
from ladder.models import QuotaWindow
from ladder.services.alert_sending import send_next
from ladder.services.alerts import look_for_alerts
from omniroute_admin.common.services.revision import deciding_write
from tests.factories import BillingEntryFactory, ModelPriceFactory, QuotaWindowFactory
from tests.receiving import HttpReceiver, http_receiver

SECRET = "a-secret-that-both-ends-know"
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)


@contextmanager
def hooks(settings, *names: str) -> Iterator[HttpReceiver]:
    """Name channels that are signed webhooks of one server, each with a path of its own."""
    with http_receiver() as receiver:
        settings.ALERT_CHANNELS = {
            name: Channel(name, "webhook", f"http://{receiver.place}/{name}/t0ken") for name in names
        }
        settings.ALERT_WEBHOOK_SECRET = SECRET
        yield receiver


def a_plan(at) -> QuotaWindow:
    """Store one plan that stops hard, with a fresh reading at an instant."""
    with deciding_write():
        BillingEntryFactory(
            provider="claude", auth_type=None, billing="subscription", overage="hard-stop", reviewed_on=at
        )
        ModelPriceFactory(provider="claude", model="opus")
        return QuotaWindowFactory(
            connection__connection_id="c1", window="5h", remaining_percent=Decimal(50), observed_at=at, received_at=at
        )


def read(window: QuotaWindow, percent, at) -> None:
    with deciding_write():
        QuotaWindow.objects.filter(pk=window.pk).update(
            remaining_percent=Decimal(percent), observed_at=at, received_at=at
        )


def look(at) -> tuple[int, int]:
    looked = look_for_alerts(now=at)
    return looked.raised, looked.resolved


def send_all(at) -> list[str]:
    """Send what is due and return what came of each."""
    problems = []
    while (sent := send_next(now=at)) is not None:
        problems.append(sent.outcome.problem)
    return problems


def bodies(receiver: HttpReceiver) -> list[dict]:
    return [json.loads(one.body) for one in receiver.requests]


def kinds(receiver: HttpReceiver) -> list[str]:
    return [body["kind"] for body in bodies(receiver)]
