"""The ladder now: which connection stands on which rung, in what state, and which rung serves (SPEC 4, occupancy)."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

import msgspec

from ladder.core.ids import POOL_IDS
from ladder.core.instants import NEVER, settle
from ladder.core.judge import Account, Circumstances, Reason, judge_pair, reason_at, rung_of
from ladder.core.money import held_usd, left_usd
from ladder.core.pool import build_pool
from ladder.core.quota import counting_windows, judge_window, judge_windows, quota_instants
from ladder.core.reasons import Code
from ladder.core.scope import Scope
from ladder.core.snapshot import Snapshot
from ladder.core.values import (
    PAID_RUNGS,
    Accounting,
    Budget,
    Empty,
    Grouping,
    Pool,
    PoolOptions,
    Rung,
    Window,
)
from ladder.core.words import describe


class State(StrEnum):
    """State of a connection on a rung, in one word; each has a shape and a colour on screen."""

    USABLE = "usable"
    HELD = "held"
    UNVERIFIED = "unverified"
    STALE = "stale"
    PENDING = "pending"
    EXHAUSTED = "exhausted"
    COOLDOWN = "cooldown"
    BREAKER = "breaker"
    OFF = "off"


STATE_OF_CODE = {
    Code.BREAKER_OPEN: State.BREAKER,
    Code.COOLDOWN: State.COOLDOWN,
    Code.QUOTA_EXHAUSTED: State.EXHAUSTED,
    Code.BUDGET_SPENT: State.EXHAUSTED,
    Code.HELD_FOR_REENTRY: State.HELD,
    Code.RESET_PENDING: State.PENDING,
    Code.QUOTA_STALE: State.STALE,
    Code.QUOTA_UNVERIFIED: State.UNVERIFIED,
}
"""What keeps a pair out for now, as the state that a screen shows."""
_BEST_FIRST = [None, *reversed(Code)]


class WindowView(msgspec.Struct, frozen=True):
    """A quota window as a screen shows it."""

    window: str
    verdict: str
    remaining_percent: Decimal | None
    unlimited: bool
    status: str
    reset_at: datetime | None
    observed_at: datetime | None
    is_held: bool
    is_muted: bool
    is_reported: bool
    model: str | None
    combine: str
    exit_cutoff_percent: Decimal | None


class Place(msgspec.Struct, frozen=True):
    """One connection on one rung; `code` None is usable. `window` is the binding one, else the one with least left."""

    connection_id: str
    provider: str
    auth_type: str | None
    billing: str
    overage: str
    rung: str
    rung_index: int
    state: State
    code: str | None
    detail: str
    window: WindowView | None
    returns_at: datetime | None
    may_bill_past_plan: bool
    also_on: tuple[str, ...]
    windows: tuple[WindowView, ...]


class BudgetView(msgspec.Struct, frozen=True):
    """A paid rung's budget in its present window; amount None is no limit, 0 is off (M1)."""

    amount_usd: Decimal | None
    spent_usd: Decimal
    held_usd: Decimal
    left_usd: Decimal | None
    accounting: Accounting
    window_start: datetime | None
    window_end: datetime | None
    zone: str


class RungOccupancy(msgspec.Struct, frozen=True):
    """One rung: how many places it has, how many are usable, why the others are not."""

    rung: str
    rung_index: int
    usable: int
    total: int
    by_code: dict[str, int]
    budget: BudgetView | None


class PoolLine(msgspec.Struct, frozen=True):
    """One pool's state in one line."""

    id: str
    grouping: Grouping
    category: str | None
    candidates: int
    pairs: int
    first_rung: str | None
    empty: Empty | None


class Occupancy(msgspec.Struct, frozen=True):
    """The ladder now."""

    revision: str
    evaluated_at: datetime
    valid_until: datetime | None
    serving_rung: str | None
    next_rung: str | None
    rungs: tuple[RungOccupancy, ...]
    places: tuple[Place, ...]
    pools: tuple[PoolLine, ...]


class PlaceStanding(msgspec.Struct, frozen=True):
    """What a place is at an instant; places are compared by it to find when they change."""

    reason: Reason | None
    state: State


def build_occupancy(*, snapshot: Snapshot, now: datetime) -> Occupancy:
    """Build the picture of the ladder from the same judgements as the pools."""
    pools = _stored_pools(snapshot, now)
    placed = [found for account in snapshot.accounts for found in _places(snapshot, account, now)]
    places = tuple(place for place, _ in sorted(placed, key=lambda found: found[0].rung_index))
    until = min([at for _, at in placed] + [pool.valid_until or NEVER for pool in pools.values()], default=NEVER)
    serving = _rungs_with_survivors(pools["auto/thrifty"])
    return Occupancy(
        revision=snapshot.facts.revision,
        evaluated_at=now,
        valid_until=None if until == NEVER else until,
        serving_rung=serving[0] if serving else None,
        next_rung=serving[1] if len(serving) > 1 else None,
        rungs=tuple(_rung(snapshot, rung, places, now) for rung in Rung),
        places=places,
        pools=tuple(_line(pool) for pool in pools.values()),
    )


def build_pool_lines(*, snapshot: Snapshot, now: datetime) -> tuple[PoolLine, ...]:
    """Return every pool's state in one line, as the occupancy tells it, without working out the places."""
    return tuple(_line(pool) for pool in _stored_pools(snapshot, now).values())


def _stored_pools(snapshot: Snapshot, now: datetime) -> dict[str, Pool]:
    return {
        pool_id: build_pool(snapshot=snapshot, pool_id=known, candidates=None, options=PoolOptions(), now=now)
        for pool_id, known in POOL_IDS.items()
    }


def _rungs_with_survivors(pool: Pool) -> list[str]:
    return list(dict.fromkeys(entry.rung for entry in pool.candidates))


def _line(pool: Pool) -> PoolLine:
    pairs = sum(len(entry.allowed_connection_ids or ("",)) for entry in pool.candidates)
    first = pool.candidates[0].rung if pool.candidates else None
    return PoolLine(pool.id, pool.grouping, pool.category, len(pool.candidates), pairs, first, pool.empty)


def _rung(snapshot: Snapshot, rung: Rung, places: Iterable[Place], now: datetime) -> RungOccupancy:
    here = [place for place in places if place.rung_index == rung]
    by_code: dict[str, int] = {}
    for place in here:
        if place.code is not None:
            by_code[place.code] = by_code.get(place.code, 0) + 1
    usable = sum(place.state is State.USABLE for place in here)
    budget = budget_view(budget=snapshot.facts.budgets.get(rung, Budget()), now=now) if rung in PAID_RUNGS else None
    return RungOccupancy(rung.word, int(rung), usable, len(here), by_code, budget)


def budget_view(*, budget: Budget, now: datetime) -> BudgetView:
    """Return a budget as answers and screens show it; what is left is never below zero."""
    return BudgetView(
        budget.amount_usd,
        budget.spent_usd or Decimal(0),
        held_usd(budget=budget, at=now),
        left_usd(budget=budget, at=now),
        budget.accounting,
        budget.window_start,
        budget.window_end,
        budget.zone,
    )


def with_budgets(*, occupancy: Occupancy, budgets: Mapping[Rung, Budget], now: datetime) -> Occupancy:
    """Return the picture with these budgets: spend that moves no decision need not be in the snapshot (SPEC 3)."""
    views = {rung.word: budget_view(budget=budget, now=now) for rung, budget in budgets.items()}
    rungs = tuple(msgspec.structs.replace(rung, budget=views.get(rung.rung, rung.budget)) for rung in occupancy.rungs)
    return msgspec.structs.replace(occupancy, rungs=rungs)


def _places(snapshot: Snapshot, account: Account, now: datetime) -> list[tuple[Place, datetime]]:
    """Return the places of one connection, each with the instant at which it changes by itself."""
    models = models_by_rung(snapshot=snapshot, account=account, now=now)
    words = tuple(rung.word for rung in sorted(models))
    return [_place(snapshot, account, rung, models[rung], words, now) for rung in sorted(models)]


def models_by_rung(*, snapshot: Snapshot, account: Account, now: datetime) -> dict[Rung, list[Circumstances]]:
    """Return under what a connection is judged on each rung it stands on: one scope, or each that its models are in.

    A connection whose provider has no model stands where an unknown model would (T: premium).
    """
    found: dict[Rung, dict[Scope, Circumstances]] = {}
    models = snapshot.models_of(provider=account.connection.provider, now=now) or ("",)
    for model in models:
        placed = snapshot.place(
            provider=account.connection.provider, model=model, grouping=Grouping.THRIFTY, capability=None, now=now
        )
        under = placed.scope.under
        if bool(under.model) != bool(model):
            # A scope is shared by models that are judged alike, and here "no model" is judged as no other.
            under = msgspec.structs.replace(under, model=model)
        rung = rung_of(billing=account.verdict.billing, tier=under.tier)
        known = found.setdefault(rung, {})
        if account.globs or not known:
            known[placed.scope] = under
    return {rung: list(known.values()) for rung, known in found.items()}


def _place(
    snapshot: Snapshot,
    account: Account,
    rung: Rung,
    scopes: Sequence[Circumstances],
    words: tuple[str, ...],
    now: datetime,
) -> tuple[Place, datetime]:
    found = [settle_standing(account=account, under=under, rung=rung, now=now) for under in scopes]
    standing, change_at = min((one for one, _ in found), key=badness), min(at for _, at in found)
    one, reason = account.connection, standing.reason
    views = tuple(window_view(window=window, snapshot=snapshot, now=now) for window in one.windows)
    place = Place(
        connection_id=one.connection_id,
        provider=one.provider,
        auth_type=one.auth_type,
        billing=account.verdict.billing.value,
        overage=account.verdict.overage.value,
        rung=rung.word,
        rung_index=int(rung),
        state=standing.state,
        code=reason.code.value if reason else None,
        detail=_detail(snapshot, account, reason),
        window=_shown_window(views, reason),
        returns_at=reason.returns_at if reason else None,
        may_bill_past_plan=rung is Rung.SUBSCRIPTION and account.verdict.overage.value != "hard-stop",
        also_on=tuple(word for word in words if word != rung.word),
        windows=views,
    )
    return place, change_at


def settle_standing(
    *, account: Account, under: Circumstances, rung: Rung, now: datetime
) -> tuple[PlaceStanding, datetime]:
    """Return where the connection stands for one scope, and when that changes by itself."""
    if under.is_momentary:
        return _standing(account, under, rung, now), NEVER
    windows = counting_windows(windows=account.connection.windows, model=under.model)
    quota = quota_instants(windows=windows, settings=under.settings) if rung <= Rung.FREE else []
    outcome = judge_pair(account=account, under=under, now=now)
    return settle(decide=lambda at: _standing(account, under, rung, at), instants=[outcome.change_at, *quota], now=now)


def _standing(account: Account, under: Circumstances, rung: Rung, at: datetime) -> PlaceStanding:
    if not under.model:
        return PlaceStanding(Reason(Code.NO_MODELS), State.OFF)
    reason = reason_at(account=account, under=under, at=at)
    if reason is not None:
        return PlaceStanding(reason, STATE_OF_CODE.get(reason.code, State.OFF))
    if rung > Rung.FREE:
        return PlaceStanding(None, State.USABLE)
    windows = counting_windows(windows=account.connection.windows, model=under.model)
    judged = judge_windows(windows=windows, settings=under.settings, now=at)
    if judged.code is None:
        return PlaceStanding(None, State.USABLE)
    return PlaceStanding(Reason(judged.code, judged.window, judged.returns_at), STATE_OF_CODE[judged.code])


def badness(standing: PlaceStanding) -> int:
    """Order standings so that the best of a connection's models speaks for the place."""
    return _BEST_FIRST.index(standing.reason.code if standing.reason else None)


def _detail(snapshot: Snapshot, account: Account, reason: Reason | None) -> str:
    if reason is None:
        return ""
    one = account.connection
    return describe(snapshot=snapshot, provider=one.provider, connection_id=one.connection_id, reason=reason)


def _shown_window(views: Sequence[WindowView], reason: Reason | None) -> WindowView | None:
    """Return the binding window, else of those that count the one with least left."""
    if reason is not None and reason.window is not None:
        return next((view for view in views if view.window == reason.window), None)
    counting = [view for view in views if view.is_reported and not view.is_muted]
    return min(counting, key=lambda view: (view.remaining_percent is None, view.remaining_percent or 0), default=None)


def window_view(*, window: Window, snapshot: Snapshot, now: datetime) -> WindowView:
    """Return a window as answers and screens show it, with its verdict."""
    judged = judge_window(window=window, settings=snapshot.facts.settings, now=now)
    return WindowView(
        window=window.window,
        verdict=judged.verdict.value,
        remaining_percent=window.remaining_percent,
        unlimited=window.unlimited,
        status=window.status.value,
        reset_at=window.reset_at,
        observed_at=window.observed_at,
        is_held=window.held,
        is_muted=window.is_muted,
        is_reported=window.is_reported,
        model=window.model,
        combine=window.combine.value,
        exit_cutoff_percent=window.exit_cutoff_percent,
    )
