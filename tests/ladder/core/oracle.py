"""A slow, plain reading of SPEC part 2, written from its rules and not from the code: what every pair must come to.

It uses the values and words of the product, none of its rules.
"""

# Long functions on purpose: a rule is read here from top to bottom, as it stands in the text.
# ruff: noqa: C901, PLR0911, PLR0912, PERF401

from collections.abc import Iterator
from datetime import datetime, timedelta

import msgspec

from billing_catalog.core.values import Billing, Overage, Tier
from ladder.core.values import Budget, Candidate, Combine, Connection, Facts, Grouping, ReadingStatus, Rung, Window

PRECEDENCE = [
    "no_connections",
    "no_models",
    "unknown_connection",
    "provider_mismatch",
    "connection_disabled",
    "model_excluded",
    "capability_missing",
    "not_subscription",
    "keyless_not_in_plan",
    "overage_not_hard_stop",
    "rung_not_in_pool",
    "rung_disabled",
    "breaker_open",
    "cooldown",
    "quota_exhausted",
    "held_for_reentry",
    "reset_pending",
    "quota_stale",
    "quota_unverified",
    "budget_spent",
    "lower_rung_serves",
]
FIRST_FOR_NOW = PRECEDENCE.index("breaker_open")
NEEDS = {"vision": "vision", "multimodal": "vision", "reasoning": "reasoning"}


class Fate(msgspec.Struct):
    """One pair: every code that applies with its return, and the rung it stands on."""

    candidate: int
    connection_id: str | None
    rung: int | None
    reasons: list[tuple[str, datetime | None]]

    @property
    def code(self) -> str | None:
        return min((code for code, _ in self.reasons), key=PRECEDENCE.index, default=None)

    @property
    def returns_at(self) -> datetime | None:
        """P8: the latest return of all for-now reasons, unknown if one is."""
        if self.code is None or PRECEDENCE.index(self.code) < FIRST_FOR_NOW:
            return None
        times = [at for code, at in self.reasons if PRECEDENCE.index(code) >= FIRST_FOR_NOW]
        return None if None in times else max(at for at in times if at is not None)


def glob(pattern: str, name: str) -> bool:
    def walk(one: str, other: str) -> bool:
        if not one:
            return not other
        if one[0] == "*":
            return any(walk(one[1:], other[skip:]) for skip in range(len(other) + 1))
        return bool(other) and one[0] == other[0] and walk(one[1:], other[1:])

    return walk(pattern.lower(), name.lower())


def billing_of(facts: Facts, provider: str, connection_id: str, auth_type: str | None) -> tuple[Billing, Overage]:
    """B1 to B3."""
    if connection_id == "noauth":
        return Billing.KEYLESS, Overage.HARD_STOP
    for wanted in [auth_type, None] if auth_type else [None]:
        for row in facts.catalog:
            if row.provider == provider and row.auth_type == wanted:
                return row.billing, row.overage
    return Billing.UNKNOWN, Overage.UNKNOWN


def tier_of(facts: Facts, provider: str, model: str, now: datetime) -> Tier:
    """T; a tier that the caller gives for the pair wins."""
    if (provider, model) in facts.tiers:
        return facts.tiers[provider, model]
    mine = [rule for rule in facts.tier_rules if rule.provider == provider]
    for rule in mine:
        if rule.model_pattern is None:
            return rule.tier
    for rule in mine:
        if rule.model_pattern is not None and glob(rule.model_pattern, model):
            return rule.tier
    if provider in facts.free_providers:
        return Tier.FREE
    price = _price(facts, provider, model, now)
    cost = None if price is None else price.input_usd_per_million
    sells_seats = provider in facts.seat_sellers or any(
        row.provider == provider and row.billing is Billing.SUBSCRIPTION for row in facts.catalog
    )
    if cost is None or (cost == 0 and sells_seats):
        return Tier.PREMIUM
    if cost <= facts.thresholds.free:
        return Tier.FREE
    return Tier.CHEAP if cost <= facts.thresholds.cheap else Tier.PREMIUM


def _price(facts: Facts, provider: str, model: str, now: datetime):
    for row in reversed(facts.prices):
        starts = row.provider == provider and row.model == model and row.effective_from <= now
        if starts and not (row.effective_to is not None and row.effective_to <= now):
            return row
    return None


def is_able(facts: Facts, provider: str, model: str, category: str | None, now: datetime) -> bool:
    """I: unknown is not yes; coding and chat filter nothing."""
    need = NEEDS.get(category or "")
    if need is None:
        return True
    if (provider, model) in facts.capabilities:
        return need in facts.capabilities[provider, model]
    price = _price(facts, provider, model, now)
    return price is not None and need in price.capabilities


def judge_window(facts: Facts, window: Window, now: datetime) -> str:
    """Q1 to Q4 and Q7: `usable`, or the code of what the window is."""
    if window.observed_at is None:
        return "quota_unverified"
    if window.reset_at is not None and window.reset_at <= now:
        return "reset_pending"
    if window.status is ReadingStatus.EXHAUSTED:
        return "quota_exhausted"
    if window.status is ReadingStatus.UNKNOWN:
        return "quota_unverified"
    if window.remaining_percent is None and not window.unlimited:
        return "quota_unverified"
    if window.observed_at + timedelta(seconds=facts.settings.max_reading_age_seconds) < now:
        return "quota_stale"
    if window.unlimited or window.remaining_percent is None:
        return "usable"
    leave = facts.settings.exit_cutoff_percent
    if window.exit_cutoff_percent is not None:
        leave = window.exit_cutoff_percent
    if window.remaining_percent <= leave:
        return "quota_exhausted"
    floor = max(facts.settings.reentry_min_remaining_percent, leave)
    return "held_for_reentry" if window.held and not window.remaining_percent > floor else "usable"


def judge_quota(facts: Facts, one: Connection, model: str, now: datetime) -> tuple[str, datetime | None]:
    """Q6, Q8, Q9: `usable`, or a code and the return time."""
    out = ("quota_exhausted", "held_for_reentry")
    counting = [
        w for w in one.windows if w.is_reported and not w.is_muted and (w.model is None or glob(w.model, model))
    ]
    if not counting:
        return "quota_unverified", None
    limits = [(judge_window(facts, w, now), w.reset_at) for w in counting if w.combine is Combine.LIMIT]
    pool = [(judge_window(facts, w, now), w.reset_at) for w in counting if w.combine is Combine.POOL]
    if pool and not any(code == "usable" for code, _ in pool):
        vague = [code for code, _ in pool if code not in out]
        resets = [reset for _, reset in pool]
        first = None if None in resets else min(resets)
        limits.append((min(vague, key=PRECEDENCE.index), None) if vague else ("quota_exhausted", first))
    barred = [(code, reset) for code, reset in limits if code in out]
    if barred:
        resets = [reset for _, reset in barred]
        last = None if None in resets else max(resets)
        return min((code for code, _ in barred), key=PRECEDENCE.index), last
    vague = [code for code, _ in limits if code != "usable"]
    return (min(vague, key=PRECEDENCE.index), None) if vague else ("usable", None)


def is_closed(budget: Budget, now: datetime) -> bool:
    """M2: spend and active holds have reached the budget; the spend is that of the window that ends at its end."""
    if budget.amount_usd is None or budget.spent_usd is None:
        return False
    total = budget.spent_usd if budget.window_end is None or now < budget.window_end else budget.spent_usd * 0
    for hold in budget.holds:
        if now < hold.expires_at:
            total += hold.amount_usd
    return total >= budget.amount_usd


def reopening(budget: Budget, now: datetime) -> datetime | None:
    known = [hold.expires_at for hold in budget.holds] + ([budget.window_end] if budget.window_end else [])
    return min((at for at in known if at > now and not is_closed(budget, at)), default=None)


def judge_pair(
    facts: Facts, grouping: Grouping, category: str | None, one: Connection, model: str, now: datetime
) -> tuple[int, list[tuple[str, datetime | None]]]:
    """Return the rung (G) and every reason that applies (P2, P4, P8, P10, C, M)."""
    billing, overage = billing_of(facts, one.provider, one.connection_id, one.auth_type)
    overage = one.overage_override or overage
    tier = tier_of(facts, one.provider, model, now)
    rung = {Billing.SUBSCRIPTION: 0, Billing.KEYLESS: 1}.get(billing, {"free": 2, "cheap": 3, "premium": 4}[tier.value])
    found: list[tuple[str, datetime | None]] = []
    if not one.is_enabled:
        found.append(("connection_disabled", None))
    if any(glob(pattern, model) for pattern in one.excluded_models):
        found.append(("model_excluded", None))
    if not is_able(facts, one.provider, model, category, now):
        found.append(("capability_missing", None))
    if grouping is Grouping.SUBSCRIPTION and rung != 0:
        found.append(("keyless_not_in_plan" if rung == 1 else "not_subscription", None))
    if grouping is Grouping.SUBSCRIPTION and rung == 0 and overage is not Overage.HARD_STOP:
        found.append(("overage_not_hard_stop", None))
    if grouping is Grouping.FREE and rung not in (1, 2):
        found.append(("rung_not_in_pool", None))
    budget = facts.budgets.get(Rung(rung)) if rung >= 3 else None
    if grouping is Grouping.THRIFTY and budget is not None and budget.amount_usd == 0:
        found.append(("rung_disabled", None))
    if one.provider in facts.breakers and now < facts.breakers[one.provider]:
        found.append(("breaker_open", facts.breakers[one.provider]))
    for rest in one.cooldowns:
        if rest.model in (None, model) and (rest.effective_until is None or now < rest.effective_until):
            found.append(("cooldown", rest.effective_until))
    if rung <= 2:
        code, returns = judge_quota(facts, one, model, now)
        strict = grouping is Grouping.SUBSCRIPTION or (grouping is Grouping.FREE and rung == 2)
        if code in ("quota_exhausted", "held_for_reentry") or (strict and code != "usable"):
            found.append((code, returns))
    elif budget is not None and is_closed(budget, now):
        found.append(("budget_spent", reopening(budget, now)))
    return rung, found


def fates(
    facts: Facts, grouping: Grouping, category: str | None, asked: list[Candidate], now: datetime
) -> Iterator[Fate]:
    """Yield what every pair comes to before rungs are cut (P1, P7, P8)."""
    for place, one in enumerate(asked):
        ids = one.allowed_connection_ids if one.connection_id is None else (one.connection_id,)
        if not ids:
            yield Fate(place, None, None, [("no_connections", None)])
        for connection_id in ids or ():
            same = [known for known in facts.connections if known.connection_id == connection_id]
            here = [known for known in same if known.provider == one.provider]
            if connection_id == "noauth" and not here:
                here = [Connection("noauth", one.provider, "none")]
            if here:
                yield Fate(place, connection_id, *judge_pair(facts, grouping, category, here[0], one.model, now))
            else:
                yield Fate(place, connection_id, None, [("provider_mismatch" if same else "unknown_connection", None)])


def stored_candidates(facts: Facts, now: datetime) -> tuple[list[Candidate], list[Fate]]:
    """SPEC 4: one candidate for each current price row, by rank (nulls last), provider, model; and the `no_models`."""
    rows = list(dict.fromkeys((row.provider, row.model) for row in facts.prices))
    current = [row for row in (_price(facts, provider, model, now) for provider, model in rows) if row is not None]
    current.sort(key=lambda row: (row.rank if row.rank is not None else 10**9, row.provider, row.model))
    known = [one for one in facts.connections if not one.is_implied]
    asked = [
        Candidate(row.provider, row.model, None, tuple(o.connection_id for o in known if o.provider == row.provider))
        for row in current
    ]
    bare = [one for one in known if one.provider not in {row.provider for row in current}]
    return asked, [Fate(-1, one.connection_id, None, [("no_models", None)]) for one in bare]


def answer(
    facts: Facts,
    grouping: Grouping,
    category: str | None,
    asked: list[Candidate] | None,
    now: datetime,
    *,
    merge: bool = False,
    lowest: bool = False,
) -> tuple[list[tuple[int, int, list[str]]], list[tuple[int, str | None, str, datetime | None]]]:
    """Return the pool as (candidate, rung, ids) and the exclusions as (candidate, id, code, return) (P4 to P6, P8)."""
    extra: list[Fate] = []
    if asked is None:
        asked, extra = stored_candidates(facts, now)
    every = list(fates(facts, grouping, category, asked, now))
    lines: dict[tuple[int, int], list[str]] = {}
    home: dict[int, int] = {}
    for fate in every:
        if fate.code is None and fate.rung is not None:
            home[fate.candidate] = min(home.get(fate.candidate, 9), fate.rung)
    place = {id(fate): _place(fate, home, merge) for fate in every}
    for fate in every:
        if fate.code is None and fate.connection_id is not None:
            lines.setdefault((place[id(fate)], fate.candidate), []).append(fate.connection_id)
    serving = min((rung for rung, _ in lines), default=9) if lowest else 9
    pool = [(candidate, rung, ids) for (rung, candidate), ids in sorted(lines.items()) if rung <= serving]
    for fate in every:
        if place[id(fate)] > serving:
            fate.reasons.append(("lower_rung_serves", None))
    left = [(f.candidate, f.connection_id, f.code, f.returns_at) for f in [*every, *extra] if f.code is not None]
    return pool, left


def _place(fate: Fate, home: dict[int, int], merge: bool) -> int:
    """P5: the rung a pair is, or would be, served on: merged, no higher than its entry's."""
    if fate.rung is None:
        return -1
    return min(fate.rung, home.get(fate.candidate, fate.rung)) if merge else fate.rung
