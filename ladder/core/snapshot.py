"""One prepared snapshot: the facts of one revision, indexed, with every judgement made at most once.

A connection is judged once per scope: the models of a provider that are judged alike share one; globs of windows,
cooldowns and exclusions tell them apart. Judgements are kept with the instant at which they could change (P9) and are
made anew when it has passed, or when the clock went back.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec

from billing_catalog.core.billing import classify, index_catalog
from billing_catalog.core.globs import glob_matches
from billing_catalog.core.tiers import classify_tier, current_price, index_tiers, price_boundaries
from billing_catalog.core.values import Billing, CatalogRow, Price, Tier
from ladder.core.instants import NEVER, settle
from ladder.core.judge import Account, Circumstances, PairOutcome, Reason, judge_pair
from ladder.core.money import Span, closed_spans
from ladder.core.reasons import Code
from ladder.core.scope import Scope
from ladder.core.values import PAID_RUNGS, Candidate, Connection, Facts, Grouping, Rung
from omniroute_admin.common.core.names import NOAUTH

_MEMO_LIMIT = 20_000
"""Callers choose the lists and names that are remembered, so the memory of them is bounded."""

_BEFORE_ABILITY = tuple(Code)[: tuple(Code).index(Code.CAPABILITY_MISSING)]
_ALWAYS = datetime.min.replace(tzinfo=UTC)


class Placed(msgspec.Struct, frozen=True):
    """The scope of one (provider, model), and until when tier and ability are what they are."""

    scope: Scope
    tier_until: datetime
    ability_until: datetime
    change_at: datetime


class Inventory(msgspec.Struct, frozen=True):
    """The stored candidates in their order, and the connections whose provider has no model (SPEC 4)."""

    candidates: tuple[Candidate, ...]
    without_models: tuple[Connection, ...]
    models: Mapping[str, tuple[str, ...]]
    change_at: datetime


class Snapshot:
    """The facts of one revision, ready to be asked for pools."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        catalog = index_catalog(facts.catalog)
        self.accounts = [
            Account(
                one,
                classify(
                    catalog=catalog,
                    provider=one.provider,
                    connection_id=one.connection_id,
                    auth_type=one.auth_type,
                    overage_override=one.overage_override,
                ),
            )
            for one in facts.connections
        ]
        self._by_id = {item.connection.connection_id: item for item in self.accounts}
        self._noauth = {
            item.connection.provider: item for item in self.accounts if item.connection.connection_id == NOAUTH
        }
        self._by_id.pop(NOAUTH, None)
        self._globs = _globs_by_provider(self.accounts)
        self._prices = _group_prices(facts.prices)
        self._tiers = index_tiers(
            rules=facts.tier_rules,
            free_providers=facts.free_providers,
            seat_sellers=facts.seat_sellers | _plan_providers(facts.catalog),
            thresholds=facts.thresholds,
        )
        self._forget()

    def _forget(self) -> None:
        self._latest = _ALWAYS
        self._placed: dict[tuple[Grouping, str | None], dict[tuple[str, str], Placed]] = {}
        self._scopes: dict[tuple[object, ...], Scope] = {}
        self._tier_memory: dict[tuple[str, str], tuple[Tier, datetime]] = {}
        self._inventory: Inventory | None = None
        self._closed: dict[Rung, tuple[Span, ...]] | None = None

    def move_to(self, now: datetime) -> None:
        """Tell the snapshot the time; where the clock went back every judgement is made anew (SPEC 6)."""
        if now < self._latest:
            self._forget()
        self._latest = now

    def find_account(self, *, connection_id: str, provider: str) -> Account | Code:
        """Return the known connection of that id at that provider, or the code that says why not (P7)."""
        if connection_id == NOAUTH:
            return self._noauth.get(provider) or _keyless_path(provider)
        account = self._by_id.get(connection_id)
        if account is None:
            return Code.UNKNOWN_CONNECTION
        return account if account.connection.provider == provider else Code.PROVIDER_MISMATCH

    def placed_models(self, *, grouping: Grouping, capability: str | None) -> dict[tuple[str, str], Placed]:
        """Return the memory of where each (provider, model) is judged, for one kind of pool."""
        return self._placed.setdefault((grouping, capability), {})

    def placed(self, *, provider: str, model: str, grouping: Grouping, capability: str | None, now: datetime) -> Placed:
        """Return the scope of a (provider, model) in one kind of pool, remembered or worked out."""
        known = self.placed_models(grouping=grouping, capability=capability).get((provider, model))
        if known is not None and known.change_at > now:
            return known
        return self.place(provider=provider, model=model, grouping=grouping, capability=capability, now=now)

    def place(self, *, provider: str, model: str, grouping: Grouping, capability: str | None, now: datetime) -> Placed:
        """Return the scope of a (provider, model) in one kind of pool, and remember it."""
        tier, tier_until = self.tier_of(provider=provider, model=model, now=now)
        capable, ability_until = self._ability_of(provider, model, capability, now)
        spoken_of = tuple(glob_matches(pattern=glob, name=model) for glob in self._globs.get(provider, ()))
        key = (grouping, provider, tier, capable, spoken_of)
        scope = self._scopes.get(key)
        if scope is None:
            _bound(self._scopes)
            scope = self._scopes[key] = Scope(provider, self._circumstances(grouping, model, tier, capable, now))
        memory = self.placed_models(grouping=grouping, capability=capability)
        _bound(memory)
        placed = memory[provider, model] = Placed(scope, tier_until, ability_until, min(tier_until, ability_until))
        return placed

    def _circumstances(self, grouping: Grouping, model: str, tier: Tier, capable: bool, now: datetime) -> Circumstances:
        facts, closed = self.facts, self._closed_rungs(now)
        return Circumstances(grouping, model, tier, capable, facts.settings, facts.breakers, facts.budgets, closed)

    def _closed_rungs(self, now: datetime) -> dict[Rung, tuple[Span, ...]]:
        """Return when paid rungs are closed from now on; asked once, since only something new changes it."""
        if self._closed is None:
            self._closed = {
                rung: closed_spans(budget=budget, now=now)
                for rung, budget in self.facts.budgets.items()
                if rung in PAID_RUNGS
            }
        return self._closed

    def tier_of(self, *, provider: str, model: str, now: datetime) -> tuple[Tier, datetime]:
        """Return the economic tier (T) and the instant at which it changes by itself."""
        known = self._tier_memory.get((provider, model))
        if known is None or known[1] <= now:
            _bound(self._tier_memory)
            known = self._tier_memory[provider, model] = self._work_out_tier(provider, model, now)
        return known

    def _work_out_tier(self, provider: str, model: str, now: datetime) -> tuple[Tier, datetime]:
        said = self.facts.tiers.get((provider, model))
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

    def _ability_of(self, provider: str, model: str, capability: str | None, now: datetime) -> tuple[bool, datetime]:
        """Return whether a model is known to have what a category needs (I), and until when that is so."""
        if capability is None:
            return True, NEVER
        said = self.facts.capabilities.get((provider, model))
        if said is not None:
            return capability in said, NEVER
        prices = self._prices.get((provider, model), [])
        return settle(
            decide=lambda at: capability in _capabilities(current_price(prices=prices, at=at)),
            instants=price_boundaries(prices=prices, after=now),
            now=now,
        )

    def outcomes(self, *, scope: Scope, ids: tuple[str, ...], now: datetime) -> tuple[PairOutcome, ...]:
        """Return what became of each pair of a list, judging each connection at most once per scope."""
        if scope.until <= now:
            scope.drop_past(now)
        return tuple(self._outcome(scope, connection_id, now) for connection_id in ids)

    def _outcome(self, scope: Scope, connection_id: str, now: datetime) -> PairOutcome:
        known = scope.outcomes.get(connection_id)
        if known is not None:
            return known
        account = self.find_account(connection_id=connection_id, provider=scope.provider)
        if isinstance(account, Code):
            # Callers choose the names of what nobody knows, so those are not remembered.
            return PairOutcome(connection_id, None, Reason(account))
        outcome = judge_pair(account=account, under=scope.under, now=now)
        scope.keep(outcome)
        return outcome

    def placed_until(self, *, placed: Placed, ids: tuple[str, ...], now: datetime) -> datetime:
        """Return when a change of tier or ability first changes what became of one of these pairs (P9).

        Models that share a scope may change tier or ability at different instants, so those are not in its `until`.
        """
        provider = placed.scope.provider
        accounts = [self.find_account(connection_id=one, provider=provider) for one in ids]
        follows_tier = any(isinstance(one, Account) and one.follows_tier for one in accounts)
        asks_ability = any(_asks_ability(one) for one in self.outcomes(scope=placed.scope, ids=ids, now=now))
        tier_until = placed.tier_until if follows_tier else NEVER
        return min(tier_until, placed.ability_until) if asks_ability else tier_until

    def inventory(self, *, now: datetime) -> Inventory:
        """Return the stored candidates now: one per current price row, by rank, provider, model (SPEC 4)."""
        if self._inventory is None or now >= self._inventory.change_at:
            rows, change_at = settle(
                decide=self._current_models,
                instants=price_boundaries(prices=self.facts.prices, after=now),
                now=now,
            )
            self._inventory = self._stored_inventory(rows, change_at)
        return self._inventory

    def later_models(self, *, after: datetime, before: datetime) -> Iterator[tuple[datetime, list[tuple[str, str]]]]:
        """Yield every instant between at which a price starts or ends, with the stored models in their order then."""
        for instant in price_boundaries(prices=self.facts.prices, after=after):
            if instant < before:
                yield instant, self._current_models(instant)

    def models_of(self, *, provider: str, now: datetime) -> tuple[str, ...]:
        """Return the models of a provider that have a current price, in the order of the inventory."""
        return self.inventory(now=now).models.get(provider, ())

    def _current_models(self, at: datetime) -> list[tuple[str, str]]:
        current = (current_price(prices=rows, at=at) for rows in self._prices.values())
        rows = [row for row in current if row is not None]
        rows.sort(key=lambda row: (row.rank is None, row.rank or 0, row.provider, row.model))
        return [(row.provider, row.model) for row in rows]

    def _stored_inventory(self, models: list[tuple[str, str]], change_at: datetime) -> Inventory:
        stored = [one for one in self.facts.connections if not one.is_implied]
        stored.sort(key=lambda one: (one.provider, one.connection_id))
        ids: dict[str, list[str]] = {}
        for one in stored:
            ids.setdefault(one.provider, []).append(one.connection_id)
        candidates = tuple(Candidate(provider, model, None, tuple(ids.get(provider, ()))) for provider, model in models)
        by_provider: dict[str, list[str]] = {}
        for provider, model in models:
            by_provider.setdefault(provider, []).append(model)
        without = tuple(one for one in stored if one.provider not in by_provider)
        named = {provider: tuple(names) for provider, names in by_provider.items()}
        return Inventory(candidates, without, named, change_at)


def _plan_providers(catalog: Iterable[CatalogRow]) -> frozenset[str]:
    """Return the providers that sell seats by what the catalogue says of them (T)."""
    return frozenset(row.provider for row in catalog if row.billing is Billing.SUBSCRIPTION)


def _globs_by_provider(accounts: Iterable[Account]) -> dict[str, tuple[str, ...]]:
    """Return by provider the globs over models that anything about its connections has: they tell its models apart."""
    found: dict[str, set[str]] = {}
    for account in accounts:
        found.setdefault(account.connection.provider, set()).update(account.globs)
    return {provider: tuple(sorted(globs)) for provider, globs in found.items() if globs}


def _keyless_path(provider: str) -> Account:
    """Return the connection `noauth` of a provider where none is stored: it is always known (SPEC 1)."""
    verdict = classify(catalog={}, provider=provider, connection_id=NOAUTH, auth_type="none")
    return Account(Connection(NOAUTH, provider, "none"), verdict)


def _group_prices(prices: Iterable[Price]) -> dict[tuple[str, str], list[Price]]:
    grouped: dict[tuple[str, str], list[Price]] = {}
    for row in prices:
        grouped.setdefault((row.provider, row.model), []).append(row)
    return grouped


def _input_price(price: Price | None) -> Decimal | None:
    return None if price is None else price.input_usd_per_million


def _capabilities(price: Price | None) -> frozenset[str]:
    return frozenset() if price is None else price.capabilities


def _asks_ability(outcome: PairOutcome) -> bool:
    """Tell whether the model's ability matters to the pair: no reason of higher precedence keeps it out (P8)."""
    return outcome.reason is None or outcome.reason.code not in _BEFORE_ABILITY


def _bound(memory: dict[Any, Any]) -> None:
    if len(memory) >= _MEMO_LIMIT:
        memory.clear()
