"""One prepared snapshot: the facts of one revision, indexed, with every judgement made at most once.

A connection is judged once per scope: the models of a provider that are judged alike share one; globs of windows,
cooldowns and exclusions tell them apart. Judgements are kept with the instant at which they could change (P9) and are
made anew when it has passed, or when the clock went back.
"""

from collections.abc import Collection, Hashable, Iterable, Iterator
from copy import copy
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from billing_catalog.core.billing import index_catalog
from billing_catalog.core.globs import glob_matches
from billing_catalog.core.values import Tier
from ladder.core.accounts import Accounts
from ladder.core.instants import NEVER
from ladder.core.inventory import Inventory, build_inventory
from ladder.core.judge import Account, Circumstances, PairOutcome, Reason, judge_pair
from ladder.core.memory import make_room
from ladder.core.money import Span, closed_spans
from ladder.core.priced_models import PricedModels
from ladder.core.reasons import Code
from ladder.core.scope import Scope
from ladder.core.values import PAID_RUNGS, Connection, Facts, Grouping, Rung

K = TypeVar("K")
V = TypeVar("V")

_BEFORE_ABILITY = tuple(Code)[: tuple(Code).index(Code.CAPABILITY_MISSING)]
_ALWAYS = datetime.min.replace(tzinfo=UTC)


class Placed(msgspec.Struct, frozen=True, gc=False):
    """The scope of one (provider, model), and until when tier and ability are what they are."""

    scope: Scope
    tier_until: datetime
    ability_until: datetime
    change_at: datetime


class Snapshot:
    """The facts of one revision, ready to be asked for pools.

    A momentary one is asked at one instant only, and never when its answers change by themselves (P9): what would be
    is compared with what is, and forgotten.
    """

    def __init__(self, facts: Facts, *, is_momentary: bool = False) -> None:
        self.facts = facts
        self._is_momentary = is_momentary
        self._models = PricedModels(facts=facts)
        self._accounts = Accounts(connections=facts.connections, catalog=index_catalog(facts.catalog))
        self._forget()

    @property
    def accounts(self) -> Iterable[Account]:
        """Return every known connection, in the order of the facts."""
        return self._accounts.listed

    def find_account(self, *, connection_id: str, provider: str) -> Account | Code:
        """Return the known connection of that id at that provider, or the code that says why not (P7)."""
        return self._accounts.find(connection_id=connection_id, provider=provider)

    def with_connections(self, *, facts: Facts, changed: Iterable[Connection]) -> "Snapshot":
        """Return a snapshot of facts that differ from these only in the state of some connections (and the revision).

        Who they are, and in which order, is the same: `changed` are those of `facts` that may differ. What was judged
        of the others is taken over; this snapshot stays as it is, for whoever still answers from it.
        """
        anew = list(changed)
        other = copy(self)
        other.facts = facts
        other._accounts = self._accounts.with_changed(anew)
        other._placed = {kind: dict(providers) for kind, providers in self._placed.items()}
        other._scopes = dict(self._scopes)
        other._kept = {kind: dict(providers) for kind, providers in self._kept.items()}
        other._kept_of_connections = dict(self._kept_of_connections)
        for provider in {one.provider for one in anew}:
            globs = (accounts.globs.get(provider) for accounts in (self._accounts, other._accounts))
            names = [one.connection_id for one in anew if one.provider == provider]
            other._renew(provider, names, is_told_apart_alike=next(globs) == next(globs))
        return other

    def _renew(self, provider: str, names: Collection[str], *, is_told_apart_alike: bool) -> None:
        """Let go of what was judged of these connections of a provider, in copies of its scopes."""
        for remembered in (*self._placed.values(), *self._kept.values()):
            remembered.pop(provider, None)
        scopes, kept = self._scopes.pop(provider, {}), dict(self._kept_of_connections.pop(provider, {}))
        if is_told_apart_alike:
            self._scopes[provider] = {key: scope.without(names) for key, scope in scopes.items()}
            for name in names:
                kept.pop(name, None)
            self._kept_of_connections[provider] = kept

    def _forget(self) -> None:
        self._latest = [_ALWAYS]
        self._placed: dict[tuple[Grouping, str | None], dict[str, dict[str, Placed]]] = {}
        self._scopes: dict[str, dict[tuple[object, ...], Scope]] = {}
        self._models.forget()
        self._kept: dict[Hashable, dict[str, Any]] = {}
        self._kept_of_connections: dict[str, dict[str, Any]] = {}
        self._inventory: Inventory | None = None
        self._closed: dict[Rung, tuple[Span, ...]] | None = None

    def move_to(self, now: datetime) -> None:
        """Tell the snapshot the time; where the clock went back every judgement is made anew (SPEC 6).

        Snapshots that share judgements share the time of the latest too.
        """
        if now < self._latest[0]:
            self._forget()
        self._latest[0] = now

    def kept_of(self, kind: Hashable) -> dict[str, Any]:
        """Return the memory, by provider, of one kind of thing that its connections and stored models come to.

        What is kept of a provider is let go when the state of one of its connections changes.
        """
        return self._kept.setdefault(kind, {})

    def kept_of_connections(self, *, provider: str) -> dict[str, Any]:
        """Return the memory, by id, of what a provider's connections come to under its stored models.

        What is kept of a connection is let go when its state changes; of all of them, when the provider's models are
        told apart otherwise.
        """
        return _of_provider(self._kept_of_connections, provider)

    def placed_models(self, *, grouping: Grouping, capability: str | None) -> dict[str, dict[str, Placed]]:
        """Return the memory of where each model of each provider is judged, for one kind of pool."""
        return self._placed.setdefault((grouping, capability), {})

    def placed(self, *, provider: str, model: str, grouping: Grouping, capability: str | None, now: datetime) -> Placed:
        """Return the scope of a (provider, model) in one kind of pool, remembered or worked out."""
        known = self.placed_models(grouping=grouping, capability=capability).get(provider, {}).get(model)
        if known is not None and known.change_at > now:
            return known
        return self.place(provider=provider, model=model, grouping=grouping, capability=capability, now=now)

    def place(self, *, provider: str, model: str, grouping: Grouping, capability: str | None, now: datetime) -> Placed:
        """Return the scope of a (provider, model) in one kind of pool, and remember it."""
        tier, tier_until = self.tier_of(provider=provider, model=model, now=now)
        capable, ability_until = self._models.ability_of(provider=provider, model=model, capability=capability, now=now)
        spoken_of = tuple(glob_matches(pattern=glob, name=model) for glob in self._accounts.globs.get(provider, ()))
        key = (grouping, tier, capable, spoken_of)
        scopes = _of_provider(self._scopes, provider)
        scope = scopes.get(key)
        if scope is None:
            scope = scopes[key] = Scope(provider, self._circumstances(grouping, model, tier, capable, now))
        memory = _of_provider(self.placed_models(grouping=grouping, capability=capability), provider)
        make_room(memory)
        placed = memory[model] = Placed(scope, tier_until, ability_until, min(tier_until, ability_until))
        return placed

    def _circumstances(self, grouping: Grouping, model: str, tier: Tier, capable: bool, now: datetime) -> Circumstances:
        facts, closed = self.facts, self._closed_rungs(now)
        return Circumstances(
            grouping,
            model,
            tier,
            capable,
            facts.settings,
            facts.breakers,
            facts.budgets,
            closed,
            self._is_momentary,
        )

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
        return self._models.tier_of(provider=provider, model=model, now=now)

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
            rows, change_at = self._models.stored(now=now)
            self._inventory = build_inventory(models=rows, connections=self.facts.connections, change_at=change_at)
            self._kept, self._kept_of_connections = {}, {}
        return self._inventory

    def later_models(self, *, after: datetime, before: datetime) -> Iterator[tuple[datetime, list[tuple[str, str]]]]:
        """Return every instant between at which a price starts or ends, with the stored models in their order then."""
        return self._models.later(after=after, before=before)

    def models_of(self, *, provider: str, now: datetime) -> tuple[str, ...]:
        """Return the models of a provider that have a current price, in the order of the inventory."""
        return tuple(one.model for one in self.inventory(now=now).by_provider.get(provider, ()))


def _asks_ability(outcome: PairOutcome) -> bool:
    """Tell whether the model's ability matters to the pair: no reason of higher precedence keeps it out (P8)."""
    return outcome.reason is None or outcome.reason.code not in _BEFORE_ABILITY


def _of_provider(memory: dict[str, dict[K, V]], provider: str) -> dict[K, V]:
    """Return the memory of one provider; callers name providers too, so there is a bound to how many."""
    found = memory.get(provider)
    if found is None:
        make_room(memory)
        found = memory[provider] = {}
    return found
