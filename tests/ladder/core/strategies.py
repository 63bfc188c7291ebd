"""Generated facts, candidates and instants for the properties of the decision, rich enough to reach every reason code.

Everything happens within some offsets of NOW, so that instants coincide often: a reset at the very microsecond of
`now`, a reading that is just as old as it may be, a cooldown that ends with a breaker.
"""

import os
from datetime import datetime, timedelta
from decimal import Decimal

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from billing_catalog.core.values import Billing, CatalogRow, Overage, Price, Thresholds, Tier, TierRule
from ladder.core.values import (
    Budget,
    Candidate,
    Combine,
    Connection,
    Cooldown,
    CooldownCause,
    Facts,
    Hold,
    LadderSettings,
    ReadingStatus,
    Rung,
    Window,
)
from tests.ladder.core.asking import NOW, TICK, World

AGES = (10, 180, 3600)
PROVIDERS = ("claude", "codex", "acme")
MODELS = ("opus-4", "sonnet-4", "big-one")
IDS = ("c0", "c1", "c2", "c3", "c4")
PLACES = [(provider, model) for provider in PROVIDERS for model in MODELS]


def examples(*, otherwise: int) -> int:
    """Return how many examples a property gets: PROPERTY_EXAMPLES, so that a slow one can be looked at longer too."""
    return int(os.environ.get("PROPERTY_EXAMPLES", otherwise))


# No deadline: how long an example takes says nothing on a busy machine. No database: a run leaves nothing behind.
PROPERTY = settings(
    max_examples=examples(otherwise=100),
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


def _offsets() -> list[timedelta]:
    seconds = (1, 5, 10, 60, 180, 181, 3600, 5 * 3600, 86400)
    whole = [timedelta(seconds=number) for number in (*seconds, *(-number for number in seconds), 0)]
    return sorted({base + tick for base in whole for tick in (-TICK, timedelta(0), TICK)})


instants = st.sampled_from([NOW + offset for offset in _offsets()])
moments = st.one_of(st.just(NOW), st.just(NOW), st.just(NOW), instants)
soon = st.sampled_from([NOW + timedelta(seconds=number) for number in (60, 3600, 86400, 180, 5, 1, 0, -1, -60)])
"""Ends of things: mostly still to come."""

recent = st.one_of(
    st.sampled_from([NOW - timedelta(seconds=number) for number in (0, 1, 5)]),
    st.sampled_from([NOW - timedelta(seconds=number) for number in (0, 1, 5)]),
    st.sampled_from([NOW - timedelta(seconds=age) - tick for age in AGES for tick in (-TICK, timedelta(0), TICK)]),
    instants,
)
percents = st.sampled_from([Decimal(text) for text in ("4", "5", "80", "2", "2.00000001", "5.1", "20", "4", "0")])
readings = st.one_of(
    percents.map(lambda number: (ReadingStatus.SAFE, number, False)),
    percents.map(lambda number: (ReadingStatus.SAFE, number, False)),
    st.sampled_from(
        [
            (ReadingStatus.SAFE, Decimal(90), False),
            (ReadingStatus.SAFE, None, True),
            (ReadingStatus.SAFE, None, False),
            (ReadingStatus.EXHAUSTED, Decimal(50), False),
            (ReadingStatus.EXHAUSTED, None, False),
            (ReadingStatus.EXHAUSTED, None, True),
            (ReadingStatus.UNKNOWN, Decimal(50), False),
            (ReadingStatus.UNKNOWN, None, False),
        ]
    ),
)
often = st.sampled_from([True] * 11 + [False])
rarely = often.map(lambda is_so: not is_so)
scopes = st.sampled_from([None, None, None, None, None, None, None, "opus-*", "OPUS-4", "*", "*-one", "nothing*"])
cutoffs = st.sampled_from([None, None, None, Decimal(0), Decimal(20), Decimal(100)])


@st.composite
def windows(draw: st.DrawFn, name: str) -> Window:
    status, percent, unlimited = draw(readings)
    return Window(
        window=name,
        observed_at=draw(recent) if draw(often) else None,
        remaining_percent=percent,
        unlimited=unlimited,
        status=status,
        reset_at=draw(st.one_of(st.none(), soon, soon)),
        held=draw(st.booleans()),
        combine=draw(st.sampled_from([Combine.LIMIT, Combine.LIMIT, Combine.POOL])),
        model=draw(scopes),
        is_muted=draw(rarely),
        is_reported=draw(often),
        exit_cutoff_percent=draw(cutoffs),
    )


_sets_of_windows = st.one_of(
    st.tuples(windows("weekly")),
    st.just(()),
    st.tuples(windows("5h"), windows("weekly")),
    st.tuples(windows("5h")),
    st.tuples(windows("5h")),
    st.tuples(windows("5h"), windows("weekly")),
    st.tuples(windows("5h"), windows("weekly"), windows("bonus")),
)
_cooldowns = st.builds(
    Cooldown,
    cause=st.sampled_from(list(CooldownCause)),
    effective_until=st.one_of(st.none(), soon, soon, soon, instants),
    model=st.sampled_from([None, None, "opus-4", "big-one"]),
)
_sets_of_cooldowns = st.one_of(
    st.just(()),
    st.just(()),
    st.just(()),
    st.lists(_cooldowns, min_size=1, max_size=2, unique_by=lambda item: (item.cause, item.model)).map(tuple),
)
overages = st.sampled_from(list(Overage))


@st.composite
def connections(draw: st.DrawFn, connection_id: str, provider: str) -> Connection:
    is_noauth = connection_id == "noauth"
    return Connection(
        connection_id=connection_id,
        provider=provider,
        auth_type="none" if is_noauth else draw(st.sampled_from(["oauth", "oauth", "apikey", None])),
        is_enabled=draw(often),
        overage_override=draw(st.one_of(st.none(), st.none(), st.none(), overages)),
        excluded_models=draw(st.sampled_from([(), (), (), (), ("SONNET-*",), ("nothing", "*-one")])),
        windows=draw(_sets_of_windows),
        cooldowns=draw(_sets_of_cooldowns),
    )


@st.composite
def _fleets(draw: st.DrawFn) -> tuple[Connection, ...]:
    homes = draw(st.lists(st.sampled_from([PROVIDERS[0], *PROVIDERS]), min_size=3, max_size=len(IDS)))
    named = [*zip(IDS, homes, strict=False)]
    if draw(st.sampled_from([False, False, True])):
        named.append(("noauth", draw(st.sampled_from(PROVIDERS))))
    return tuple(draw(connections(connection_id, provider)) for connection_id, provider in named)


_rows = st.builds(
    CatalogRow,
    provider=st.sampled_from(PROVIDERS),
    billing=st.sampled_from([Billing.SUBSCRIPTION, Billing.SUBSCRIPTION, *Billing]),
    overage=st.sampled_from([Overage.HARD_STOP, Overage.HARD_STOP, *Overage]),
    auth_type=st.sampled_from([None, "oauth", "oauth", "apikey"]),
)
_plans = [
    (CatalogRow("claude", Billing.SUBSCRIPTION, Overage.HARD_STOP, "oauth"),),
    (CatalogRow("claude", Billing.SUBSCRIPTION, Overage.HARD_STOP),),
    (
        CatalogRow("claude", Billing.SUBSCRIPTION, Overage.HARD_STOP),
        CatalogRow("codex", Billing.SUBSCRIPTION, Overage.METERS_TO_PAID, "oauth"),
        CatalogRow("acme", Billing.METERED, Overage.METERS_TO_PAID),
    ),
]
_catalogs = st.one_of(
    st.sampled_from(_plans),
    st.lists(_rows, max_size=4, unique_by=lambda row: (row.provider, row.auth_type)).map(tuple),
)


_abilities = st.sampled_from([frozenset(), frozenset({"vision"}), frozenset({"reasoning", "vision", "tools"})])


@st.composite
def prices(draw: st.DrawFn, provider: str, model: str) -> tuple[Price, ...]:
    def row(start: datetime, end: datetime | None) -> Price:
        return Price(
            provider,
            model,
            start,
            end,
            input_usd_per_million=draw(st.sampled_from([None, *map(Decimal, ("0", "0.5", "1", "1.01", "15"))])),
            capabilities=draw(
                st.sampled_from([frozenset(), frozenset({"vision"}), frozenset({"vision", "reasoning"})])
            ),
            rank=draw(st.sampled_from([None, 1, 2])),
        )

    old = NOW - timedelta(days=400)
    kind = draw(st.sampled_from(["one", "one", "turn", "end", "gap"]))
    turn = draw(soon)
    if kind == "turn":
        return (row(old, turn), row(turn, None))
    if kind == "gap":
        return (row(old, turn), row(turn + timedelta(seconds=30), None))
    return (row(old, turn if kind == "end" else None),)


@st.composite
def _lists_of_prices(draw: st.DrawFn) -> tuple[Price, ...]:
    priced = draw(st.lists(st.sampled_from(PLACES), min_size=2, max_size=6, unique=True))
    return tuple(row for provider, model in priced for row in draw(prices(provider, model)))


tiers = st.sampled_from(list(Tier))
_rules = st.builds(
    TierRule,
    provider=st.sampled_from(PROVIDERS),
    tier=tiers,
    model_pattern=st.sampled_from(["*", "OPUS*", "*-4", "*-one", None]),
)
_money = st.sampled_from([Decimal(text) for text in ("0.000001", "1", "4.999999", "5", "7")])
budgets = st.builds(
    Budget,
    amount_usd=st.sampled_from([*map(Decimal, ("5", "5.000001", "5", "0", "5")), None]),
    spent_usd=st.sampled_from([*map(Decimal, ("4", "5", "6", "0", "-1")), None]),
    holds=st.lists(st.builds(Hold, amount_usd=_money, expires_at=soon), max_size=2).map(tuple),
    window_end=st.one_of(st.none(), soon),
)


@st.composite
def all_facts(draw: st.DrawFn) -> Facts:
    places = st.sampled_from(PLACES)
    return Facts(
        revision="7",
        settings=LadderSettings(
            exit_cutoff_percent=draw(st.sampled_from([Decimal(2), Decimal(2), Decimal(0), Decimal(10)])),
            reentry_min_remaining_percent=draw(st.sampled_from([Decimal(5), Decimal(5), Decimal(1), Decimal(100)])),
            max_reading_age_seconds=draw(st.sampled_from(AGES)),
        ),
        connections=draw(_fleets()),
        catalog=draw(_catalogs),
        prices=draw(_lists_of_prices()),
        tier_rules=draw(st.one_of(st.just(()), st.lists(_rules, max_size=2).map(tuple))),
        free_providers=draw(st.sampled_from([frozenset(), frozenset(), frozenset({"acme"})])),
        seat_sellers=draw(st.sampled_from([frozenset(), frozenset({"codex"})])),
        thresholds=draw(st.sampled_from([Thresholds(), Thresholds(), Thresholds(Decimal("0.5"), Decimal(3))])),
        breakers=draw(st.one_of(st.just({}), st.dictionaries(st.sampled_from(PROVIDERS), soon, max_size=2))),
        budgets={rung: draw(budgets) for rung in (Rung.CHEAP, Rung.PREMIUM) if draw(often)},
        tiers=draw(st.dictionaries(places, tiers, max_size=3)),
        capabilities=draw(st.dictionaries(places, _abilities, max_size=3)),
    )


strays = st.sampled_from([*IDS, "noauth", "nobody"])


@st.composite
def candidates(draw: st.DrawFn, facts: Facts, ref: str) -> Candidate:
    """Draw a candidate whose connections are mostly those of its provider, in any order, now and then with a stray."""
    homes = [one.provider for one in facts.connections]
    provider = draw(st.sampled_from([*homes, *homes, *PROVIDERS]))
    model = draw(st.sampled_from(MODELS))
    here = [one.connection_id for one in facts.connections if one.provider == provider]
    listed = draw(st.permutations(here)) if here else []
    if draw(rarely) or not listed:
        listed = [*draw(st.lists(strays.filter(lambda one: one not in here), max_size=2, unique=True)), *listed]
    if draw(st.booleans()):
        return Candidate(provider, model, listed[0] if listed else "noauth", None, ref)
    return Candidate(provider, model, None, tuple(listed[: draw(st.sampled_from([5, 5, 5, 2, 1, 0]))]), ref)


@st.composite
def worlds(draw: st.DrawFn, inventory: bool | None = None) -> World:
    """Draw a world; `inventory` says whether the candidates are the stored ones, None leaves it open."""
    facts, now = draw(all_facts()), draw(moments)
    if inventory or (inventory is None and draw(rarely)):
        return World(facts, None, now)
    count = draw(st.integers(min_value=3, max_value=6))
    return World(facts, tuple(draw(candidates(facts, str(number))) for number in range(count)), now)
