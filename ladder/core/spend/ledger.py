"""What an event is booked as: its rung when it happened (M6), its cost (M7), its money (M5), and what corrections do.

A correction is a row of its own that carries the new full cost. Of several corrections of one original the one with the
latest (occurred_at, depth, event_id) counts, in whatever order they arrive: at one instant a correction of a correction
counts before what it corrects. A row adds to the totals only the difference to what counted before it, so a sum of rows
is always the truth.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal

import msgspec

from billing_catalog.core.past import Past
from billing_catalog.core.values import Billing, Price, Tier
from ladder.core.judge import rung_of
from ladder.core.money import cost_of, dearest
from ladder.core.values import PAID_RUNGS, Accounting, MoneyKind, Rung

_TIER_OF_RUNG = {Rung.FREE: Tier.FREE, Rung.CHEAP: Tier.CHEAP, Rung.PREMIUM: Tier.PREMIUM}
_BILLING_OF_RUNG = {Rung.SUBSCRIPTION: Billing.SUBSCRIPTION, Rung.KEYLESS: Billing.KEYLESS}
_NOTHING = Decimal(0)

OLDEST = datetime(2000, 1, 1, tzinfo=UTC)
"""Before it nobody bought tokens: an earlier instant is a clock that was never set."""


class Tokens(msgspec.Struct, frozen=True):
    """How many tokens an event used; None is "not said". `input` includes the cached ones."""

    input: int | None = None
    output: int | None = None
    cached_input: int | None = None

    @property
    def is_said(self) -> bool:
        """Tell whether anything was said at all."""
        return self.input is not None or self.output is not None


class Spend(msgspec.Struct, frozen=True):
    """What the rows of some time sum up to: USD, how many rows, and how much of what counts is only estimated."""

    usd: Decimal = Decimal(0)
    rows: int = 0
    estimated: int = 0

    @property
    def accounting(self) -> Accounting:
        """Return how well it is known: nothing happened, partly estimated, or exact."""
        if not self.rows:
            return Accounting.NONE
        return Accounting.PARTIAL if self.estimated else Accounting.COMPLETE

    def plus(self, other: "Spend") -> "Spend":
        """Return both together."""
        return Spend(self.usd + other.usd, self.rows + other.rows, self.estimated + other.estimated)


class Stood(msgspec.Struct, frozen=True):
    """Where an event's pair stood when it happened (M6)."""

    rung: Rung
    billing: Billing


class Cost(msgspec.Struct, frozen=True):
    """What an event cost in USD, and whether that is only estimated (M7)."""

    usd: Decimal
    is_estimated: bool = False


class Claim(msgspec.Struct, frozen=True):
    """What one row says an original cost in full.

    `depth` 0 is the original itself, 1 a correction of it, 2 a correction of that one, and so on.
    """

    depth: int
    occurred_at: datetime
    event_id: str
    cost: Cost

    @property
    def rank(self) -> tuple[bool, datetime, int, str]:
        """Return its place: the highest counts."""
        return self.depth > 0, self.occurred_at, self.depth, self.event_id


class Booking(msgspec.Struct, frozen=True):
    """What a row adds to the totals, and whether it counts from now on (False: a later correction does)."""

    usd: Decimal
    estimated_change: int
    counts: bool


def stood(*, past: Past, provider: str, connection_id: str, auth_type: str | None, model: str, at: datetime) -> Stood:
    """Return where a pair stood at an instant, by the catalogue of that instant (M6, G, B5)."""
    billing = past.billing_of(provider=provider, connection_id=connection_id, auth_type=auth_type, at=at).billing
    return Stood(rung_of(billing=billing, tier=past.tier_of(provider=provider, model=model, at=at)), billing)


def money_kind(*, rung: Rung, is_overage: bool) -> MoneyKind:
    """Return what kind of money an event is (M5).

    Only a plan has an allowance to go past: on a paid rung everything draws on the budget, whatever the reporter says.
    """
    if rung in PAID_RUNGS:
        return MoneyKind.BUDGET
    return MoneyKind.OVERAGE if is_overage else MoneyKind.PLAN


def known_cost(*, given: Decimal | None, tokens: Tokens, price: Price | None, kind: MoneyKind) -> Cost | None:
    """Return the cost as given, else by the model's price, else None: then it is to be estimated (M7).

    What a plan's request is reported to have cost is nothing; its value is the list price (M5). Without any tokens
    nothing is known of the cost.
    """
    is_plan_value = kind is MoneyKind.PLAN and given == 0 and tokens.is_said
    if given is not None and not is_plan_value:
        return Cost(given)
    priced = None if price is None or not tokens.is_said else _priced(price, tokens)
    return None if priced is None else Cost(priced)


def estimated_cost(*, tokens: Tokens, price: Price | None) -> Cost:
    """Return the cost at the dearest price of the rung, marked (M7); 0 where no price is known, or no tokens are."""
    priced = None if price is None else _priced(price, tokens)
    return Cost(priced or _NOTHING, is_estimated=True)


def dearest_of_rung(*, past: Past, rung: Rung, at: datetime) -> Price | None:
    """Return the dearest known input and output price of a rung's models at an instant (M7), or None.

    The models of rungs 2 to 4 are those of the tier, those of rungs 0 and 1 all of providers that bill so.
    """
    if rung in _TIER_OF_RUNG:
        return dearest(price for price, tier in past.prices_at(at) if tier is _TIER_OF_RUNG[rung])
    providers = past.providers_billing(_BILLING_OF_RUNG[rung], at=at)
    return dearest(price for price, _ in past.prices_at(at) if price.provider in providers)


def book(*, claim: Claim, counting: Claim | None) -> Booking:
    """Return what a row adds where `counting` is what counted so far (None: the row is the original itself)."""
    if counting is None:
        return Booking(claim.cost.usd, int(claim.cost.is_estimated), counts=True)
    if claim.rank <= counting.rank:
        return Booking(_NOTHING, 0, counts=False)
    change = int(claim.cost.is_estimated) - int(counting.cost.is_estimated)
    return Booking(claim.cost.usd - counting.cost.usd, change, counts=True)


def counting_claim(claims: Iterable[Claim]) -> Claim:
    """Return the claim that counts among those of one original."""
    return max(claims, key=lambda claim: claim.rank)


def correction_depths(*, bases: Mapping[str, str]) -> dict[str, int]:
    """Return how deep in its chain of corrections each row stands, by event id: 0 is an original.

    `bases` says which event each row corrects, "" for none. What leads to no original is left out: a row that corrects
    an event which is not there, and rows that correct each other in a circle.
    """
    corrected_by: dict[str, list[str]] = {}
    for event_id, base in bases.items():
        corrected_by.setdefault(base, []).append(event_id)
    found: dict[str, int] = {}
    depth, level = 0, corrected_by.get("", [])
    while level:
        found |= dict.fromkeys(level, depth)
        depth, level = depth + 1, [name for base in level for name in corrected_by.get(base, ())]
    return found


def _priced(price: Price, tokens: Tokens) -> Decimal | None:
    return cost_of(
        price=price,
        input_tokens=tokens.input or 0,
        output_tokens=tokens.output or 0,
        cached_input_tokens=tokens.cached_input or 0,
    )
