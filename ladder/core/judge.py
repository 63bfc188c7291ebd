"""One pair judged alone (P1): its rung (G), whether it is in, and if not, its one code (P8) and its return."""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime

import msgspec

from billing_catalog.core.globs import glob_matches
from billing_catalog.core.values import Billing, Overage, Tier, Verdict
from ladder.core.cooldown import Resting, acting_cooldown
from ladder.core.instants import NEVER, settle
from ladder.core.money import Span, is_off
from ladder.core.quota import barred_windows, counting_windows, is_barred, judge_windows, quota_instants
from ladder.core.reasons import PRECEDENCE, Code
from ladder.core.values import PAID_RUNGS, Budget, Connection, Grouping, LadderSettings, QuotaVerdict, Rung, Window

_RUNG_OF_TIER = {Tier.FREE: Rung.FREE, Tier.CHEAP: Rung.CHEAP, Tier.PREMIUM: Rung.PREMIUM}
_RUNG_OF_BILLING = {Billing.SUBSCRIPTION: Rung.SUBSCRIPTION, Billing.KEYLESS: Rung.KEYLESS}


class Account(msgspec.Struct, frozen=True, gc=False):
    """A connection with what the catalogue says of it."""

    connection: Connection
    verdict: Verdict

    @property
    def globs(self) -> frozenset[str]:
        """Return the globs of models that anything about it speaks of."""
        one = self.connection
        models = [window.model for window in one.windows] + [cooldown.model for cooldown in one.cooldowns]
        return frozenset([*one.excluded_models, *(model for model in models if model is not None)])

    @property
    def follows_tier(self) -> bool:
        """Tell whether its rung is that of the model's tier (G, B5)."""
        return self.verdict.billing not in _RUNG_OF_BILLING


class Circumstances(msgspec.Struct, frozen=True):
    """What a pair is judged under, beside the account itself.

    `is_momentary` says that nobody asks when the outcome changes by itself (P9): it is not worked out then.
    """

    grouping: Grouping
    model: str
    tier: Tier
    is_capable: bool
    settings: LadderSettings
    breakers: Mapping[str, datetime]
    budgets: Mapping[Rung, Budget]
    closed_spans: Mapping[Rung, tuple[Span, ...]]
    is_momentary: bool = False


class Reason(msgspec.Struct, frozen=True, gc=False):
    """Why a pair is out: its code, the binding window, and not before when it returns (None: unknown).

    `resting` is the acting cooldown where the code is `cooldown`: other reasons may keep the pair out for longer.
    """

    code: Code
    window: str | None = None
    returns_at: datetime | None = None
    resting: Resting | None = None


class PairOutcome(msgspec.Struct, frozen=True, gc=False):
    """What became of one pair; `reason` None means it is in. It stays so until `change_at` (exclusive).

    `recode_at`, never earlier, is when more than the return time changes: what counts where that is not told (P6).
    """

    connection_id: str
    rung: Rung | None
    reason: Reason | None
    may_bill_past_plan: bool = False
    change_at: datetime = NEVER
    recode_at: datetime = NEVER


def rung_of(*, billing: Billing, tier: Tier) -> Rung:
    """Return the rung of a pair: subscription 0, keyless 1, metered and unknown the tier's (G, B5)."""
    return _RUNG_OF_BILLING[billing] if billing in _RUNG_OF_BILLING else _RUNG_OF_TIER[tier]


def judge_pair(*, account: Account, under: Circumstances, now: datetime) -> PairOutcome:
    """Judge one pair of a known connection (P2, P4, P8, P10)."""
    rung = rung_of(billing=account.verdict.billing, tier=under.tier)
    code = _never(account, under, rung)
    if code is not None:
        return PairOutcome(account.connection.connection_id, rung, Reason(code))
    facing = _facing(account, under, rung, now)
    instants = [] if under.is_momentary else _instants(facing, now)
    reason, change_at, recode_at = _follow(
        decide=lambda at: _first_reason(list(_for_now(facing, at))), instants=instants, now=now
    )
    may_bill = rung is Rung.SUBSCRIPTION and account.verdict.overage is not Overage.HARD_STOP
    return PairOutcome(account.connection.connection_id, rung, reason, may_bill, change_at, recode_at)


class _Facing(msgspec.Struct, frozen=True, gc=False):
    """What may keep a pair out for now, at an instant and after it."""

    open_until: datetime | None
    resting: Resting | None
    asks_quota: bool
    must_be_verified: bool
    windows: tuple[Window, ...]
    settings: LadderSettings
    closed_spans: tuple[Span, ...]


def _facing(account: Account, under: Circumstances, rung: Rung, now: datetime) -> _Facing:
    one = account.connection
    asks_quota = rung <= Rung.FREE
    return _Facing(
        open_until=under.breakers.get(one.provider),
        resting=acting_cooldown(cooldowns=one.cooldowns, model=under.model, now=now),
        asks_quota=asks_quota,
        must_be_verified=asks_quota and _must_be_verified(under.grouping, rung),
        windows=counting_windows(windows=one.windows, model=under.model) if asks_quota else (),
        settings=under.settings,
        closed_spans=under.closed_spans.get(rung, ()) if rung in PAID_RUNGS else (),
    )


def _follow(
    *, decide: Callable[[datetime], Reason | None], instants: list[datetime], now: datetime
) -> tuple[Reason | None, datetime, datetime]:
    """Return the reason now, when it changes, and when more of it changes than the return time."""
    reason, change_at = settle(decide=decide, instants=instants, now=now)
    if reason is None or change_at == NEVER:
        return reason, change_at, change_at
    later = [instant for instant in instants if instant >= change_at]
    _, recode_at = settle(decide=lambda at: _without_return(decide(at)), instants=later, now=now)
    return reason, change_at, recode_at


def _without_return(reason: Reason | None) -> Reason | None:
    return None if reason is None else msgspec.structs.replace(reason, returns_at=None)


def _never(account: Account, under: Circumstances, rung: Rung) -> Code | None:
    """Return the first code of the family `never` that applies, in the order of P8."""
    if not account.connection.is_enabled:
        return Code.CONNECTION_DISABLED
    if any(glob_matches(pattern=glob, name=under.model) for glob in account.connection.excluded_models):
        return Code.MODEL_EXCLUDED
    if not under.is_capable:
        return Code.CAPABILITY_MISSING
    return _barred_by_grouping(account, under, rung)


def _barred_by_grouping(account: Account, under: Circumstances, rung: Rung) -> Code | None:
    if under.grouping is Grouping.SUBSCRIPTION:
        return _barred_from_plan(account, rung)
    if under.grouping is Grouping.FREE:
        return None if rung in (Rung.KEYLESS, Rung.FREE) else Code.RUNG_NOT_IN_POOL
    budget = _budget_of(under, rung)
    return Code.RUNG_DISABLED if budget is not None and is_off(budget) else None


def _budget_of(under: Circumstances, rung: Rung) -> Budget | None:
    """Return the budget of a paid rung; of the others nothing is asked (M)."""
    return under.budgets.get(rung) if rung in PAID_RUNGS else None


def _barred_from_plan(account: Account, rung: Rung) -> Code | None:
    """Say why a pair is no plan that stops hard (P2)."""
    if rung is Rung.KEYLESS:
        return Code.KEYLESS_NOT_IN_PLAN
    if rung is not Rung.SUBSCRIPTION:
        return Code.NOT_SUBSCRIPTION
    return None if account.verdict.overage is Overage.HARD_STOP else Code.OVERAGE_NOT_HARD_STOP


def _for_now(facing: _Facing, at: datetime) -> Iterator[Reason]:
    """Yield every reason of the family `for now` that applies at an instant."""
    if facing.open_until is not None and facing.open_until > at:
        yield Reason(Code.BREAKER_OPEN, None, facing.open_until)
    resting = facing.resting
    # The longest cooldown acts (C3), so when it has ended all have.
    if resting is not None and (resting.until is None or resting.until > at):
        yield Reason(Code.COOLDOWN, None, resting.until, resting)
    yield from _by_quota(facing, at)
    for start, end in facing.closed_spans:
        if start <= at < end:
            yield Reason(Code.BUDGET_SPENT, None, None if end == NEVER else end)


def _by_quota(facing: _Facing, at: datetime) -> Iterator[Reason]:
    """Yield the quota reason; where nothing can bill by mistake, the unverified are admitted (P4)."""
    if not facing.asks_quota:
        return
    judged = judge_windows(windows=facing.windows, settings=facing.settings, now=at)
    is_admitted = judged.verdict is QuotaVerdict.UNVERIFIED and not facing.must_be_verified
    if judged.code is not None and not is_admitted:
        yield Reason(judged.code, judged.window, judged.returns_at)


def _must_be_verified(grouping: Grouping, rung: Rung) -> bool:
    """Tell whether only a verdict `usable` is good enough: P2, and rung 2 of P10."""
    return grouping is Grouping.SUBSCRIPTION or (grouping is Grouping.FREE and rung is Rung.FREE)


def _first_reason(reasons: list[Reason]) -> Reason | None:
    """Return the one reason told: the first code (P8), the binding window, the latest return of all that apply."""
    if not reasons:
        return None
    first = min(reasons, key=lambda reason: PRECEDENCE[reason.code])
    window = next((reason.window for reason in reasons if reason.window is not None), None)
    return Reason(first.code, window, latest_return([reason.returns_at for reason in reasons]), first.resting)


def latest_return(returns: list[datetime | None]) -> datetime | None:
    """Return the latest of return times, unknown where one of them is (P8)."""
    known = [at for at in returns if at is not None]
    return max(known) if known and len(known) == len(returns) else None


def _instants(facing: _Facing, now: datetime) -> list[datetime]:
    """Return the instants at which the pair's reason could change by itself (P9).

    Time makes a window unverified, never used up: unless verdicts must be verified, only windows that keep the pair
    out now matter, and while one does, the others do not show.
    """
    resting_until = facing.resting.until if facing.resting is not None else None
    ends = [facing.open_until, resting_until, *(instant for span in facing.closed_spans for instant in span)]
    windows = facing.windows
    if not facing.must_be_verified or is_barred(windows=windows, settings=facing.settings, now=now):
        windows = barred_windows(windows=windows, settings=facing.settings, now=now)
    return [end for end in ends if end is not None] + quota_instants(windows=windows, settings=facing.settings)


def reason_at(*, account: Account, under: Circumstances, at: datetime) -> Reason | None:
    """Return why a pair is out at an instant, None where it is in; what `judge_pair` says without its end."""
    rung = rung_of(billing=account.verdict.billing, tier=under.tier)
    code = _never(account, under, rung)
    return Reason(code) if code is not None else _first_reason(list(_for_now(_facing(account, under, rung, at), at)))
