"""Short ways to book usage in tests: a small catalogue with one connection on each kind of rung."""

from datetime import timedelta
from decimal import Decimal

from ladder.core.values import Rung
from ladder.models import RungBudget, UsageEvent
from ladder.selectors.ledger import read_budgets
from ladder.services.usage import record_usage
from ladder.services.usage_items import UsageItem
from tests.factories import BillingEntryFactory, ConnectionFactory, ModelPriceFactory
from tests.factories_ladder import NOW, REPORTER

SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)


def usd(text):
    return Decimal(text)


def make_ladder():
    """Make a plan (`plan`), a metered connection (`paid`) with a cheap and a premium model, and their prices."""
    BillingEntryFactory(provider="claude", auth_type="oauth", billing="subscription", overage="hard-stop")
    BillingEntryFactory(provider="openrouter", auth_type="apikey", billing="metered", overage="meters-to-paid")
    ConnectionFactory(connection_id="plan", provider="claude", auth_type="oauth")
    ConnectionFactory(connection_id="paid", provider="openrouter", auth_type="apikey")
    prices = [
        ("claude", "opus", "5", "25", "0.5"),
        ("openrouter", "small", "0.5", "2", "0.05"),
        ("openrouter", "big", "3", "15", None),
    ]
    for provider, model, price_in, price_out, cached in prices:
        ModelPriceFactory(
            provider=provider,
            model=model,
            input_usd_per_million=usd(price_in),
            output_usd_per_million=usd(price_out),
            cached_input_usd_per_million=None if cached is None else usd(cached),
        )


def event(event_id="e1", cost=None, *, at=NOW, connection_id="paid", model="small", **fields):
    return UsageItem(
        event_id=event_id,
        connection_id=connection_id,
        model=model,
        occurred_at=at,
        cost_usd=None if cost is None else usd(cost),
        **fields,
    )


def correct(event_id, corrected, cost, *, at=NOW + SECOND, **fields):
    return event(event_id, cost, at=at, corrects_event_id=corrected, **fields)


def record(*items, now=NOW + 30 * SECOND):
    return record_usage(items=items, actor=REPORTER, now=now)


def counts(answer):
    return answer.accepted, answer.duplicates, answer.superseded, len(answer.rejected)


def codes(answer):
    return [(one.index, one.code) for one in answer.rejected]


def row(event_id="e1"):
    return UsageEvent.objects.get(event_id=event_id)


def set_budget(rung="cheap", amount="1.00", **fields):
    RungBudget.objects.filter(rung=rung).update(amount_usd=None if amount is None else usd(amount), **fields)


def spent(rung=Rung.CHEAP, now=NOW + 30 * SECOND):
    return read_budgets(now=now)[rung].spent_usd
