"""Why a flip happened: which instant passed, or which part of the facts a write changed and for what."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import blake2b
from typing import Any

import msgspec

from ladder.core.instants import TICK, shift
from ladder.core.money import money_instants
from ladder.core.reasons import Code
from ladder.core.values import Budget, Connection, Cooldown, CooldownCause, Facts, LadderSettings

_PRINT_BYTES = 8


class Cause(StrEnum):
    """What made a connection change its state, or a rung begin or cease to serve.

    `cooldown` speaks of breakers too, `time` of a reading that became too old (Q3).
    """

    READING = "reading"
    RESET = "reset"
    COOLDOWN = "cooldown"
    BUDGET = "budget"
    SETTING = "setting"
    OPERATOR = "operator"
    CATALOGUE = "catalogue"
    TIME = "time"


class Standing(msgspec.Struct, frozen=True, array_like=True):
    """A state in one word and its reason code, None where there is no reason."""

    state: str
    code: str | None = None


class Part(StrEnum):
    """A part of the facts whose change can make a flip; the first four belong to one connection, the rest to all."""

    ROW = "row"
    READINGS = "readings"
    COOLDOWNS = "cooldowns"
    OPERATOR = "operator"
    SETTINGS = "settings"
    BUDGETS = "budgets"
    BREAKERS = "breakers"
    CATALOGUE = "catalogue"


Prints = Mapping[int, Mapping[str, str]]
"""By the key of a connection's row, each part's fingerprint; under 0 those of what is common to all.

`row` and `resting` are words: where the row comes from, and the cause of the cooldown that acts ("" for none).
"""

COMMON = 0
RESTING = "resting"
_IMPLIED, _STORED = "implied", "stored"

_QUOTA = (Part.OPERATOR, Part.READINGS, Part.SETTINGS)
_PARTS_OF_CODE: Mapping[str, Sequence[Part]] = {
    Code.NO_MODELS: (Part.CATALOGUE,),
    Code.CONNECTION_DISABLED: (Part.OPERATOR,),
    Code.MODEL_EXCLUDED: (Part.OPERATOR,),
    Code.RUNG_DISABLED: (Part.BUDGETS,),
    Code.BUDGET_SPENT: (Part.BUDGETS,),
    Code.BREAKER_OPEN: (Part.BREAKERS,),
    Code.COOLDOWN: (Part.COOLDOWNS,),
    Code.QUOTA_EXHAUSTED: _QUOTA,
    Code.HELD_FOR_REENTRY: _QUOTA,
    Code.RESET_PENDING: _QUOTA,
    Code.QUOTA_STALE: _QUOTA,
    Code.QUOTA_UNVERIFIED: _QUOTA,
}
_CAUSE_OF_PART = {
    Part.ROW: Cause.OPERATOR,
    Part.READINGS: Cause.READING,
    Part.COOLDOWNS: Cause.COOLDOWN,
    Part.OPERATOR: Cause.OPERATOR,
    Part.SETTINGS: Cause.SETTING,
    Part.BUDGETS: Cause.BUDGET,
    Part.BREAKERS: Cause.COOLDOWN,
    Part.CATALOGUE: Cause.CATALOGUE,
}
_OWN_CAUSE_OF_CODE: Mapping[str, Cause] = {
    Code.CONNECTION_DISABLED: Cause.OPERATOR,
    Code.MODEL_EXCLUDED: Cause.OPERATOR,
    Code.COOLDOWN: Cause.COOLDOWN,
    Code.QUOTA_EXHAUSTED: Cause.READING,
    Code.HELD_FOR_REENTRY: Cause.READING,
    Code.RESET_PENDING: Cause.READING,
    Code.QUOTA_STALE: Cause.READING,
    Code.QUOTA_UNVERIFIED: Cause.READING,
}
_TIME_OF_CODE: Mapping[str, Cause] = {
    Code.BREAKER_OPEN: Cause.COOLDOWN,
    Code.COOLDOWN: Cause.COOLDOWN,
    Code.QUOTA_EXHAUSTED: Cause.RESET,
    Code.HELD_FOR_REENTRY: Cause.RESET,
    Code.RESET_PENDING: Cause.RESET,
    Code.QUOTA_STALE: Cause.TIME,
    Code.BUDGET_SPENT: Cause.BUDGET,
    Code.NO_MODELS: Cause.CATALOGUE,
}


def prints_of(*, facts: Facts, keys: Mapping[tuple[str, str], int], acts: Mapping[int, int], at: datetime) -> Prints:
    """Return the prints of the facts; `acts` counts by row what operators did to its windows by hand.

    The held state is in none of them: it follows from readings and settings (Q5).
    """
    prints = {COMMON: _common(facts)}
    for one in facts.connections:
        pk = keys[one.provider, one.connection_id]
        prints[pk] = _own(one, acts.get(pk, 0), at)
    return prints


def _common(facts: Facts) -> dict[str, str]:
    budgets = [
        (rung.word, one.amount_usd, one.spent_usd, one.holds, one.zone) for rung, one in sorted(facts.budgets.items())
    ]
    catalogue = (facts.catalog, facts.prices, facts.tier_rules, facts.free_providers, facts.seat_sellers)
    return {
        Part.SETTINGS.value: _print(facts.settings),
        Part.BUDGETS.value: _print(budgets),
        Part.BREAKERS.value: _print(facts.breakers),
        Part.CATALOGUE.value: _print([catalogue, facts.thresholds]),
    }


def _own(one: Connection, acts: int, at: datetime) -> dict[str, str]:
    windows = sorted(one.windows, key=lambda window: window.window)
    observed = [
        msgspec.structs.replace(window, held=False, is_muted=False, exit_cutoff_percent=None) for window in windows
    ]
    kept = [
        (window.window, window.is_muted, window.exit_cutoff_percent)
        for window in windows
        if window.is_muted or window.exit_cutoff_percent is not None
    ]
    by_hand = (acts, kept, one.auth_type, one.is_enabled, one.overage_override, one.excluded_models)
    return {
        Part.ROW.value: _IMPLIED if one.is_implied else _STORED,
        Part.READINGS.value: _print(observed),
        Part.COOLDOWNS.value: _print(one.cooldowns),
        Part.OPERATOR.value: _print(by_hand),
        RESTING: _resting(one.cooldowns, at),
    }


def _print(value: Any) -> str:
    return blake2b(msgspec.json.encode(value, order="deterministic"), digest_size=_PRINT_BYTES).hexdigest()


def _resting(cooldowns: Iterable[Cooldown], at: datetime) -> str:
    """Return the cause of the longest cooldown that acts, on whatever model; an empty text for none."""
    endless = datetime.max.replace(tzinfo=at.tzinfo)
    acting = [(one.effective_until or endless, one.cause.value) for one in cooldowns]
    return max((one for one in acting if one[0] > at), default=(at, ""))[1]


def cause_by_prints(*, was: Standing, became: Standing, before: Prints, after: Prints, pk: int) -> Cause:
    """Return why a spot of the connection `pk` (0: of a rung) is another, where no write tells of it.

    Of the parts that changed the one counts that the new reason speaks of, else the old reason, else any; where no
    part changed, the clock went back or the rules themselves are new, and time is all there is to say.
    """
    changed = _changed(before, after, pk)
    wanted = [*_parts_of(became), *_parts_of(was), *Part]
    part = next((part for part in wanted if part in changed), None)
    if part is None:
        return Cause.TIME
    own = after.get(pk, {})
    if part is Part.ROW and own.get(Part.ROW) == _IMPLIED:
        return Cause.READING
    if part is Part.COOLDOWNS:
        return _cause_by_cooldowns(became, changed, was_resting=_resting_of(before, pk), rests=_resting_of(after, pk))
    return _CAUSE_OF_PART[part]


def _parts_of(standing: Standing) -> Sequence[Part]:
    return _PARTS_OF_CODE.get(standing.code or "", ())


def _changed(before: Prints, after: Prints, pk: int) -> set[Part]:
    old = {**before.get(COMMON, {}), **before.get(pk, {})}
    new = {**after.get(COMMON, {}), **after.get(pk, {})}
    return {part for part in Part if old.get(part) != new.get(part)}


def _resting_of(prints: Prints, pk: int) -> str:
    return prints.get(pk, {}).get(RESTING, "")


def _cause_by_cooldowns(became: Standing, changed: set[Part], *, was_resting: str, rests: str) -> Cause:
    """Tell a report's cooldown from an operator's; one that is gone early was lifted by readings or cleared (C3)."""
    if became.code == Code.COOLDOWN:
        return Cause.OPERATOR if rests == CooldownCause.OPERATOR else Cause.COOLDOWN
    is_lifted = was_resting == CooldownCause.QUOTA and Part.READINGS in changed
    return Cause.READING if is_lifted else Cause.OPERATOR


def cause_of_write(was: Standing, became: Standing, *, own: Sequence[Cause], common: Collection[Part]) -> Cause:
    """Return why a write changed a spot: by one of its `own` causes, else by the `common` parts that it changed.

    Of several the one counts that the new reason speaks of, else the old reason; a spot that comes or goes without
    one does so by the catalogue, which is where rungs come from (G).
    """
    if own:
        spoken_of = [_OWN_CAUSE_OF_CODE.get(standing.code or "") for standing in (became, was)]
        return next((cause for cause in spoken_of if cause is not None and cause in own), own[0])
    moved = (Part.CATALOGUE,) if not (was.state and became.state) else ()
    part = next((part for part in [*moved, *_parts_of(became), *_parts_of(was), *Part] if part in common), None)
    return Cause.TIME if part is None else _CAUSE_OF_PART[part]


def cause_of_time(
    was: Standing,
    became: Standing,
    *,
    connection: Connection,
    settings: LadderSettings,
    open_until: datetime | None,
    budget: Budget | None,
    is_price_new: bool,
    at: datetime,
) -> Cause:
    """Return what ended at an instant and so made a connection another; `budget` is that of the rung before it.

    Of several the one counts that the new reason speaks of, else the old reason, else the first of `Cause`.
    """
    age = timedelta(seconds=settings.max_reading_age_seconds) + TICK
    windows = connection.windows
    ended = {
        Cause.COOLDOWN: at == open_until or any(one.effective_until == at for one in connection.cooldowns),
        Cause.RESET: any(one.reset_at == at for one in windows),
        Cause.TIME: any(one.observed_at is not None and shift(one.observed_at, age) == at for one in windows),
        Cause.BUDGET: budget is not None and at in money_instants(budget),
        Cause.CATALOGUE: is_price_new,
    }
    spoken_of = [_TIME_OF_CODE.get(standing.code or "") for standing in (became, was)]
    return next((cause for cause in [*spoken_of, *Cause] if cause is not None and ended.get(cause)), Cause.TIME)
