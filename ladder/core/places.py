"""Where each connection stands: on which rungs, in what state and why, by the same judgements as the pools."""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

import msgspec

from ladder.core.instants import NEVER, settle
from ladder.core.judge import Account, Circumstances, Reason, judge_pair, reason_at, rung_of
from ladder.core.quota import counting_windows, judge_window, judge_windows, quota_instants
from ladder.core.reasons import Code
from ladder.core.scope import Scope
from ladder.core.snapshot import Snapshot
from ladder.core.values import Grouping, Rung, Window
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


class PlaceStanding(msgspec.Struct, frozen=True):
    """What a place is at an instant; places are compared by it to find when they change."""

    reason: Reason | None
    state: State


class _Standing(msgspec.Struct, frozen=True):
    """The places of one connection, each with when it changes by itself; all hold up to `until`."""

    places: list[tuple[Place, datetime]]
    until: datetime


def build_places(*, snapshot: Snapshot, now: datetime) -> list[tuple[Place, datetime]]:
    """Return the places of every connection in the order of the facts, each with when it changes by itself.

    Those of a connection are kept while they hold.
    """
    coming = snapshot.inventory(now=now).change_at
    found: list[tuple[Place, datetime]] = []
    for account in snapshot.accounts:
        one = account.connection
        known = snapshot.kept_of_connections(provider=one.provider)
        standing = known.get(one.connection_id)
        if standing is None or standing.until <= now:
            standing = known[one.connection_id] = _stand(snapshot, account, coming, now)
        found.extend(standing.places)
    return found


def _stand(snapshot: Snapshot, account: Account, coming: datetime, now: datetime) -> _Standing:
    places, one = _places(snapshot, account, now), account.connection
    quota = quota_instants(windows=one.windows, settings=snapshot.facts.settings)
    placed = snapshot.placed_models(grouping=Grouping.THRIFTY, capability=None).get(one.provider, {})
    ends = [*(at for _, at in places), *(model.change_at for model in placed.values()), *quota, coming]
    return _Standing(places, min([at for at in ends if at > now], default=NEVER))


def _places(snapshot: Snapshot, account: Account, now: datetime) -> list[tuple[Place, datetime]]:
    """Return the places of one connection, each with the instant at which it changes by itself."""
    models = _models_by_rung(snapshot, account, now)
    words = tuple(rung.word for rung in sorted(models))
    return [_place(snapshot, account, rung, models[rung], words, now) for rung in sorted(models)]


def _models_by_rung(snapshot: Snapshot, account: Account, now: datetime) -> dict[Rung, list[Circumstances]]:
    """Return under what a connection is judged on each rung it stands on: one scope, or each that its models are in.

    A connection whose provider has no model stands where an unknown model would (T: premium).
    """
    found: dict[Rung, dict[Scope, Circumstances]] = {}
    models = snapshot.models_of(provider=account.connection.provider, now=now) or ("",)
    for model in models:
        placed = snapshot.placed(
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
