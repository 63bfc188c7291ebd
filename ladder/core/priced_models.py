"""What is known of each model: its tier (T), what it can do (I), and which models are stored now (SPEC 4)."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from decimal import Decimal

from billing_catalog.core.tiers import classify_tier, current_price, index_tiers, price_boundaries
from billing_catalog.core.values import Billing, CatalogRow, Price, Tier
from ladder.core.instants import NEVER, settle
from ladder.core.memory import make_room
from ladder.core.values import Facts


class PricedModels:
    """The prices, tiers and capabilities of one revision's facts, indexed; tiers are remembered until they change."""

    def __init__(self, *, facts: Facts) -> None:
        self._prices = _group_prices(facts.prices)
        self._rows = facts.prices
        self._said_tiers, self._said_capabilities = facts.tiers, facts.capabilities
        self._tiers = index_tiers(
            rules=facts.tier_rules,
            free_providers=facts.free_providers,
            seat_sellers=facts.seat_sellers | _plan_providers(facts.catalog),
            thresholds=facts.thresholds,
        )
        self.forget()

    def forget(self) -> None:
        """Forget every tier, as where the clock went back."""
        self._tier_memory: dict[tuple[str, str], tuple[Tier, datetime]] = {}

    def tier_of(self, *, provider: str, model: str, now: datetime) -> tuple[Tier, datetime]:
        """Return the economic tier (T) and the instant at which it changes by itself."""
        known = self._tier_memory.get((provider, model))
        if known is None or known[1] <= now:
            make_room(self._tier_memory)
            known = self._tier_memory[provider, model] = self._work_out_tier(provider, model, now)
        return known

    def _work_out_tier(self, provider: str, model: str, now: datetime) -> tuple[Tier, datetime]:
        said = self._said_tiers.get((provider, model))
        if said is not None:
            return said, NEVER
        prices = self._prices.get((provider, model), [])
        return settle(
            decide=lambda at: classify_tier(
                index=self._tiers,
                provider=provider,
                model=model,
                input_usd_per_million=_input_price(current_price(prices=prices, at=at)),
            ),
            instants=price_boundaries(prices=prices, after=now),
            now=now,
        )

    def ability_of(self, *, provider: str, model: str, capability: str | None, now: datetime) -> tuple[bool, datetime]:
        """Return whether a model is known to have what a category needs (I), and until when that is so."""
        if capability is None:
            return True, NEVER
        said = self._said_capabilities.get((provider, model))
        if said is not None:
            return capability in said, NEVER
        prices = self._prices.get((provider, model), [])
        return settle(
            decide=lambda at: capability in _capabilities(current_price(prices=prices, at=at)),
            instants=price_boundaries(prices=prices, after=now),
            now=now,
        )

    def stored(self, *, now: datetime) -> tuple[list[tuple[str, str]], datetime]:
        """Return the (provider, model) of each current price row, in stored order, and until when they are these."""
        instants = price_boundaries(prices=self._rows, after=now)
        return settle(decide=self._current, instants=instants, now=now)

    def later(self, *, after: datetime, before: datetime) -> Iterator[tuple[datetime, list[tuple[str, str]]]]:
        """Yield every instant between at which a price starts or ends, with the stored models in their order then."""
        for instant in price_boundaries(prices=self._rows, after=after):
            if instant < before:
                yield instant, self._current(instant)

    def _current(self, at: datetime) -> list[tuple[str, str]]:
        current = (current_price(prices=rows, at=at) for rows in self._prices.values())
        rows = [row for row in current if row is not None]
        rows.sort(key=lambda row: (row.rank is None, row.rank or 0, row.provider, row.model))
        return [(row.provider, row.model) for row in rows]


def _plan_providers(catalog: Iterable[CatalogRow]) -> frozenset[str]:
    """Return the providers that sell seats by what the catalogue says of them (T)."""
    return frozenset(row.provider for row in catalog if row.billing is Billing.SUBSCRIPTION)


def _group_prices(prices: Iterable[Price]) -> dict[tuple[str, str], list[Price]]:
    grouped: dict[tuple[str, str], list[Price]] = {}
    for row in prices:
        grouped.setdefault((row.provider, row.model), []).append(row)
    return grouped


def _input_price(price: Price | None) -> Decimal | None:
    return None if price is None else price.input_usd_per_million


def _capabilities(price: Price | None) -> frozenset[str]:
    return frozenset() if price is None else price.capabilities
