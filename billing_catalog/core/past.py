"""The catalogue as it stood at an instant: how a connection billed, which tier a model had, what it cost (M6)."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal

import msgspec

from billing_catalog.core.billing import CatalogIndex, classify, index_catalog
from billing_catalog.core.tiers import TierIndex, classify_tier, current_price, index_tiers
from billing_catalog.core.values import Billing, CatalogRow, Price, Thresholds, Tier, TierRule, Verdict
from billing_catalog.core.versions import ALWAYS, Span, boundaries_of, standing_at


class Records(msgspec.Struct, frozen=True):
    """Everything the catalogue ever said of some providers; `prices` carry their own time.

    `price_sources` tell of a provider whether it sells seats.
    """

    entries: tuple[Span[CatalogRow], ...] = ()
    rules: tuple[Span[TierRule], ...] = ()
    free_providers: tuple[Span[str], ...] = ()
    price_sources: tuple[Span[tuple[str, bool]], ...] = ()
    thresholds: tuple[Span[Thresholds], ...] = ()
    prices: tuple[Price, ...] = ()


class Past:
    """The catalogue at any instant. `known_at` is when it is asked: a price that begins later is not known yet."""

    def __init__(self, *, records: Records, known_at: datetime) -> None:
        """Index the records."""
        self._records = records
        self._edges = sorted(
            boundaries_of(records.entries)
            | boundaries_of(records.rules)
            | boundaries_of(records.free_providers)
            | boundaries_of(records.price_sources)
            | boundaries_of(records.thresholds)
        )
        self._indexes: dict[int, tuple[CatalogIndex, TierIndex]] = {}
        self._prices = _by_model(records.prices, known_at)
        self._price_edges = sorted(_price_edges(self._prices))

    def epoch(self, at: datetime) -> tuple[int, int]:
        """Return a name for the span around an instant in which the catalogue says the same."""
        return bisect_right(self._edges, at), bisect_right(self._price_edges, at)

    def billing_of(self, *, provider: str, connection_id: str, auth_type: str | None, at: datetime) -> Verdict:
        """Return how a connection billed (B1 to B3); overage overrides are the connection's and not looked at."""
        catalog, _ = self._index(at)
        return classify(catalog=catalog, provider=provider, connection_id=connection_id, auth_type=auth_type)

    def tier_of(self, *, provider: str, model: str, at: datetime) -> Tier:
        """Return the tier a model had (T)."""
        price = current_price(prices=self._prices.get((provider, model), ()), at=at)
        return self._tier(provider, model, price, at)

    def price_of(self, *, provider: str, model: str, at: datetime) -> Price | None:
        """Return the price a model had, or None; 0 from a provider that sells seats is no price (T)."""
        price = current_price(prices=self._prices.get((provider, model), ()), at=at)
        return None if price is None or self._is_for_seats(price, at) else price

    def prices_at(self, at: datetime) -> Iterator[tuple[Price, Tier]]:
        """Yield every price of that instant with the tier of its model."""
        for (provider, model), rows in self._prices.items():
            price = current_price(prices=rows, at=at)
            if price is not None and not self._is_for_seats(price, at):
                yield price, self._tier(provider, model, price, at)

    def providers_billing(self, billing: Billing, *, at: datetime) -> frozenset[str]:
        """Return the providers of which some entry says that they bill so."""
        catalog, _ = self._index(at)
        return frozenset(row.provider for row in catalog.values() if row.billing is billing)

    def _tier(self, provider: str, model: str, price: Price | None, at: datetime) -> Tier:
        _, tiers = self._index(at)
        known = None if price is None else price.input_usd_per_million
        return classify_tier(index=tiers, provider=provider, model=model, input_usd_per_million=known)

    def _is_for_seats(self, price: Price, at: datetime) -> bool:
        _, tiers = self._index(at)
        is_zero = (price.input_usd_per_million or Decimal(0)) <= 0
        return is_zero and price.provider in tiers.seat_sellers

    def _index(self, at: datetime) -> tuple[CatalogIndex, TierIndex]:
        place = bisect_right(self._edges, at)
        known = self._indexes.get(place)
        if known is None:
            known = self._indexes[place] = self._make_index(at)
        return known

    def _make_index(self, at: datetime) -> tuple[CatalogIndex, TierIndex]:
        records = self._records
        rows = standing_at(spans=records.entries, at=at)
        plans = {row.provider for row in rows if row.billing is Billing.SUBSCRIPTION}
        seats = {provider for provider, sells in standing_at(spans=records.price_sources, at=at) if sells}
        thresholds = standing_at(spans=records.thresholds, at=at)
        return index_catalog(rows), index_tiers(
            rules=standing_at(spans=records.rules, at=at),
            free_providers=frozenset(standing_at(spans=records.free_providers, at=at)),
            seat_sellers=frozenset(seats | plans),
            thresholds=thresholds[-1] if thresholds else Thresholds(),
        )


def _by_model(prices: Iterable[Price], known_at: datetime) -> Mapping[tuple[str, str], tuple[Price, ...]]:
    """Return the prices of each model in order; the first that has begun holds for all time before it (M6)."""
    grouped: dict[tuple[str, str], list[Price]] = {}
    for price in sorted(prices, key=lambda row: row.effective_from):
        rows = grouped.setdefault((price.provider, price.model), [])
        is_first = not rows and price.effective_from <= known_at
        rows.append(msgspec.structs.replace(price, effective_from=ALWAYS) if is_first else price)
    return {key: tuple(rows) for key, rows in grouped.items()}


def _price_edges(prices: Mapping[tuple[str, str], tuple[Price, ...]]) -> set[datetime]:
    return {
        edge
        for rows in prices.values()
        for price in rows
        for edge in (price.effective_from, price.effective_to)
        if edge is not None
    }
