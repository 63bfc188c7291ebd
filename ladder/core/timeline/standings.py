"""Where one connection stands, on which rungs and in what state, asked without working out the rest of the ladder."""

from collections.abc import Mapping
from datetime import datetime

from billing_catalog.core.billing import index_catalog
from billing_catalog.core.globs import glob_matches
from billing_catalog.core.values import Tier
from ladder.core.accounts import account_of
from ladder.core.instants import NEVER
from ladder.core.judge import Account, Circumstances, rung_of
from ladder.core.money import Span, closed_spans
from ladder.core.places import badness, settle_standing
from ladder.core.reasons import Code
from ladder.core.snapshot import Snapshot
from ladder.core.timeline.causes import Standing
from ladder.core.timeline.trail import Catalogue, Moment, budget_at
from ladder.core.values import Budget, Connection, Facts, Grouping, LadderSettings, Rung

ADMITTED = frozenset({None, Code.RESET_PENDING, Code.QUOTA_STALE, Code.QUOTA_UNVERIFIED})
"""With these codes a connection is served by `auto/thrifty`: usable, or worth a try (P4)."""

Models = Mapping[Tier, tuple[str, ...]]


class Ground:
    """What all connections are judged under at a moment. The time it is asked of only goes on."""

    def __init__(self, *, moment: Moment, now: datetime) -> None:
        """Take the ground of a moment; breakers that change in it are seen."""
        self._settings, self._breakers = moment.settings, moment.breakers
        self._budgets: dict[Rung, Budget] = {}
        self._closed: dict[Rung, tuple[Span, ...]] = {}
        self.take_catalogue(moment.catalogue)
        for rung, windows in moment.budgets.items():
            self.take_budget(rung=rung, budget=budget_at(windows=windows, at=now), now=now)

    @property
    def budgets(self) -> Mapping[Rung, Budget]:
        """Return the budgets in their present windows."""
        return self._budgets

    def take_catalogue(self, said: Catalogue) -> None:
        """Let the catalogue say something else."""
        self._catalog = index_catalog(said.rows)
        facts = Facts(
            catalog=said.rows,
            prices=said.prices,
            tier_rules=said.tier_rules,
            free_providers=said.free_providers,
            seat_sellers=said.seat_sellers,
            thresholds=said.thresholds,
        )
        self._snapshot = Snapshot(facts)
        self.forget_models()

    def take_settings(self, settings: LadderSettings) -> None:
        """Let other settings act."""
        self._settings = settings

    def take_budget(self, *, rung: Rung, budget: Budget, now: datetime) -> None:
        """Let a rung have another budget from `now` on."""
        self._budgets[rung] = budget
        self._closed[rung] = closed_spans(budget=budget, now=now)

    def drop_budget(self, *, rung: Rung) -> None:
        """Let a rung have no budget any more: no limit (M1)."""
        self._budgets.pop(rung, None)
        self._closed.pop(rung, None)

    def forget_models(self) -> None:
        """Look anew which models there are and what their tiers are: a price began or ended."""
        self._models: dict[tuple[str, tuple[str, ...]], Models] = {}

    def account_of(self, connection: Connection) -> Account:
        """Return a connection with what the catalogue says of it."""
        return account_of(connection, self._catalog)

    def stand(self, *, account: Account, now: datetime) -> tuple[dict[str, Standing], datetime]:
        """Return the standing of a connection on each rung it is on, and when one of them changes by itself.

        The same that the occupancy tells of its places; the price boundaries are not in that instant.
        """
        standings: dict[str, Standing] = {}
        until = NEVER
        for rung, unders in self._circumstances(account, now).items():
            settled = [settle_standing(account=account, under=under, rung=rung, now=now) for under in unders]
            best = min((one for one, _ in settled), key=badness)
            until = min(until, *(at for _, at in settled))
            code = best.reason.code.value if best.reason else None
            standings[rung.word] = Standing(best.state.value, code)
        return standings, until

    def _circumstances(self, account: Account, now: datetime) -> dict[Rung, list[Circumstances]]:
        """Return under what a connection is judged on each of its rungs: once for all models that are judged alike."""
        found: dict[Rung, list[Circumstances]] = {}
        for tier, models in self._models_of(account, now).items():
            rung = rung_of(billing=account.verdict.billing, tier=tier)
            unders = found.setdefault(rung, [])
            if account.globs or not unders:
                unders += [self._under(model, tier) for model in models]
        return found

    def _under(self, model: str, tier: Tier) -> Circumstances:
        return Circumstances(
            Grouping.THRIFTY, model, tier, True, self._settings, self._breakers, self._budgets, self._closed
        )

    def _models_of(self, account: Account, now: datetime) -> Models:
        """Return by tier one model for each way in which the account's patterns tell its provider's models apart."""
        patterns = tuple(sorted(account.globs))
        key = (account.connection.provider, patterns)
        found = self._models.get(key)
        if found is None:
            found = self._models[key] = self._tell_apart(*key, now)
        return found

    def _tell_apart(self, provider: str, patterns: tuple[str, ...], now: datetime) -> Models:
        kinds: dict[tuple[Tier, tuple[bool, ...]], str] = {}
        for model in self._snapshot.models_of(provider=provider, now=now) or ("",):
            tier, _ = self._snapshot.tier_of(provider=provider, model=model, now=now)
            kinds.setdefault((tier, tuple(glob_matches(pattern=one, name=model) for one in patterns)), model)
        by_tier: dict[Tier, tuple[str, ...]] = {}
        for (tier, _), model in kinds.items():
            by_tier[tier] = (*by_tier.get(tier, ()), model)
        return by_tier
