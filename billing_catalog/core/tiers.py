"""Economic tier of (provider, model) (T), and which price is the current one."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

import msgspec

from billing_catalog.core.globs import glob_matches
from billing_catalog.core.values import Price, Thresholds, Tier, TierRule


class TierIndex(msgspec.Struct, frozen=True):
    """What the tier rule looks at, indexed by provider."""

    provider_wide: Mapping[str, Tier]
    by_pattern: Mapping[str, tuple[tuple[str, Tier], ...]]
    free_providers: frozenset[str]
    seat_sellers: frozenset[str]
    thresholds: Thresholds


def index_tiers(
    *,
    rules: Iterable[TierRule],
    free_providers: frozenset[str],
    seat_sellers: frozenset[str],
    thresholds: Thresholds,
) -> TierIndex:
    """Return the tier facts by provider; rules come in order of their id, the first made wins (T)."""
    wide: dict[str, Tier] = {}
    patterns: dict[str, tuple[tuple[str, Tier], ...]] = {}
    for rule in rules:
        if rule.model_pattern is None:
            wide.setdefault(rule.provider, rule.tier)
        else:
            patterns[rule.provider] = (*patterns.get(rule.provider, ()), (rule.model_pattern, rule.tier))
    return TierIndex(wide, patterns, free_providers, seat_sellers, thresholds)


class TierCause(StrEnum):
    """Which part of rule T said the tier."""

    PROVIDER_OVERRIDE = "provider override"
    MODEL_OVERRIDE = "model override"
    FREE_PROVIDER = "free provider"
    PRICE = "price"
    NO_PRICE = "no known price"
    SEATS = "0 from a provider that sells seats is no price"


class TierReason(msgspec.Struct, frozen=True):
    """A tier and why: `pattern` is the glob of a model override."""

    tier: Tier
    cause: TierCause
    pattern: str | None = None


def classify_tier(*, index: TierIndex, provider: str, model: str, input_usd_per_million: Decimal | None) -> Tier:
    """Return the tier: provider-wide override, model override, free providers, current price (T).

    No known price is premium, never free; a price of 0 from a provider that sells seats is no price.
    """
    return explain_tier(index=index, provider=provider, model=model, input_usd_per_million=input_usd_per_million).tier


def explain_tier(*, index: TierIndex, provider: str, model: str, input_usd_per_million: Decimal | None) -> TierReason:
    """Return the tier with the part of rule T that said it (T)."""
    if provider in index.provider_wide:
        return TierReason(index.provider_wide[provider], TierCause.PROVIDER_OVERRIDE)
    for pattern, tier in index.by_pattern.get(provider, ()):
        if glob_matches(pattern=pattern, name=model):
            return TierReason(tier, TierCause.MODEL_OVERRIDE, pattern)
    if provider in index.free_providers:
        return TierReason(Tier.FREE, TierCause.FREE_PROVIDER)
    return _reason_of_price(index=index, provider=provider, price=input_usd_per_million)


def _reason_of_price(*, index: TierIndex, provider: str, price: Decimal | None) -> TierReason:
    if price is None:
        return TierReason(Tier.PREMIUM, TierCause.NO_PRICE)
    if price <= 0 and provider in index.seat_sellers:
        return TierReason(Tier.PREMIUM, TierCause.SEATS)
    if price <= index.thresholds.free:
        return TierReason(Tier.FREE, TierCause.PRICE)
    return TierReason(Tier.CHEAP if price <= index.thresholds.cheap else Tier.PREMIUM, TierCause.PRICE)


def current_price(*, prices: Sequence[Price], at: datetime) -> Price | None:
    """Return the price row of one (provider, model) valid at an instant; of several the latest start wins."""
    found: Price | None = None
    for row in prices:
        if _is_valid(row, at) and (found is None or row.effective_from > found.effective_from):
            found = row
    return found


def _is_valid(row: Price, at: datetime) -> bool:
    return row.effective_from <= at and (row.effective_to is None or at < row.effective_to)


def price_boundaries(*, prices: Iterable[Price], after: datetime) -> list[datetime]:
    """Return, in order, the instants later than `after` at which one of the prices starts or ends (P9)."""
    instants = set()
    for row in prices:
        if row.effective_from > after:
            instants.add(row.effective_from)
        if row.effective_to is not None and row.effective_to > after:
            instants.add(row.effective_to)
    return sorted(instants)
