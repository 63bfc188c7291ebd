"""Small facts written by hand for the tables on pools: one plan, one key, what troubles them."""

from datetime import timedelta
from decimal import Decimal

from billing_catalog.core.values import Billing, CatalogRow, Overage, Price, Tier
from ladder.core.values import (
    Budget,
    Candidate,
    Connection,
    Cooldown,
    CooldownCause,
    Facts,
    Rung,
    Window,
)
from tests.ladder.core.asking import NOW, SPLIT, World, ask

HOUR = timedelta(hours=1)
OLD = NOW - timedelta(days=400)
FRESH = Window("5h", observed_at=NOW, remaining_percent=Decimal(50))
USED = Window("5h", observed_at=NOW, remaining_percent=Decimal(1), reset_at=NOW + HOUR)
STALE = Window("5h", observed_at=NOW - HOUR, remaining_percent=Decimal(50))
CATALOG = (
    CatalogRow("claude", Billing.SUBSCRIPTION, Overage.HARD_STOP, "oauth"),
    CatalogRow("claude", Billing.METERED, Overage.METERS_TO_PAID, "apikey"),
    CatalogRow("codex", Billing.SUBSCRIPTION, Overage.METERS_TO_PAID),
    CatalogRow("cursor", Billing.SUBSCRIPTION, Overage.UNKNOWN),
)
CHEAP_AND_FREE = {("claude", "opus-4"): Tier.CHEAP, ("acme", "small"): Tier.FREE}


def plan(connection_id="plan", *windows, provider="claude", **fields):
    return Connection(connection_id, provider, "oauth", windows=windows or (FRESH,), **fields)


def key(connection_id="key", **fields):
    return Connection(connection_id, "claude", "apikey", **fields)


def facts(*connections, **fields):
    return Facts(connections=connections, catalog=CATALOG, **{"tiers": CHEAP_AND_FREE, **fields})


def claude(*ids, model="opus-4", ref=None):
    return Candidate("claude", model, None, ids, ref)


def pool(known, *candidates, pool_id="auto/thrifty", options=SPLIT, at=NOW):
    return ask(World(known, candidates, at), pool_id=pool_id, options=options)


def entries(answer):
    return [(one.rung, one.allowed_connection_ids or one.connection_id) for one in answer.candidates]


def codes(answer):
    return {out.connection_id: out.code for out in answer.excluded}


def only(answer):
    (out,) = answer.excluded
    return out


BREAKER = {"breakers": {"claude": NOW + HOUR}}
RESTING = (Cooldown(CooldownCause.RATE_LIMIT, NOW + HOUR),)
SPENT = {"budgets": {Rung.CHEAP: Budget(Decimal(5), Decimal(5), window_end=NOW + HOUR)}}
OFF = {"budgets": {Rung.CHEAP: Budget(Decimal(0))}}


def price(model, rank=None, start=OLD, end=None, provider="claude", cost=None, capabilities=()):
    number = None if cost is None else Decimal(cost)
    return Price(provider, model, start, end, number, rank=rank, capabilities=frozenset(capabilities))


def stored(known, pool_id="auto/thrifty", options=SPLIT, at=NOW):
    return ask(World(known, None, at), pool_id=pool_id, options=options)
