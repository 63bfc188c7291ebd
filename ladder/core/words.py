"""Reasons in words: the same sentence in an API answer, a log and on a page.

A sentence holds no age and no countdown, so that an answer stays the same until `valid_until` (P9).
"""

from decimal import Decimal
from typing import TYPE_CHECKING

from ladder.core.judge import Account, Reason
from ladder.core.quota import exit_cutoff, reentry_floor
from ladder.core.reasons import Code, EmptyCode
from ladder.core.values import ReadingStatus, Window

if TYPE_CHECKING:
    from ladder.core.snapshot import Snapshot

_EMPTY = {
    EmptyCode.NO_USABLE_PLAN: "No plan that stops hard is verified usable.",
    EmptyCode.ALL_EXHAUSTED: "No connection can serve on any rung.",
    EmptyCode.NO_FREE_CAPACITY: "No keyless or verified free connection can serve.",
    EmptyCode.NO_CANDIDATES: "There is no candidate.",
}
_STORE = "store connections (POST /api/v1/connections or manage.py import_omniroute)"

_FIXED = {
    Code.NO_CONNECTIONS: "no connection is listed for {provider}: add one on the connections page or in the request",
    Code.NO_MODELS: "no model of {provider} has a current price: run manage.py sync_prices or add a price",
    Code.UNKNOWN_CONNECTION: "{connection} is not known: add it with POST /api/v1/connections",
    Code.PROVIDER_MISMATCH: "{connection_id} is known, but not under the provider {provider}",
    Code.CONNECTION_DISABLED: "{connection} is switched off",
    Code.MODEL_EXCLUDED: "{connection} is not to serve this model",
    Code.CAPABILITY_MISSING: "the model is not known to have what the pool's category needs",
    Code.NOT_SUBSCRIPTION: "{connection} is {billing}, not a subscription",
    Code.KEYLESS_NOT_IN_PLAN: "keyless is not the plan that is paid for",
    Code.OVERAGE_NOT_HARD_STOP: "the plan of {connection} may bill past its allowance (overage {overage})",
    Code.RUNG_NOT_IN_POOL: "only what cannot bill is in this pool: {connection} is {billing}",
    Code.RUNG_DISABLED: "the budget of the rung is 0, so the rung is off: PATCH /api/v1/settings gives it another",
    Code.BREAKER_OPEN: "the breaker of {provider} is open",
    Code.BUDGET_SPENT: "the budget of the rung is spent or on hold; PATCH /api/v1/settings gives it more",
    Code.LOWER_RUNG_SERVES: "a lower rung serves",
}

_UNREAD = {
    Code.RESET_PENDING: "{window} of {name} has reset and was not read since",
    Code.QUOTA_STALE: "no reading newer than {age} s for {name}, window {window}",
    Code.QUOTA_UNVERIFIED: "{window} of {name} has no usable reading",
}


def describe(*, snapshot: "Snapshot", provider: str, connection_id: str | None, reason: Reason) -> str:
    """Return the sentence for a reason; it names the call or page that mends it where there is one."""
    account = snapshot.find_account(connection_id=connection_id or "", provider=provider)
    known = account if isinstance(account, Account) else None
    if reason.code in _FIXED:
        return _fixed(provider, connection_id, known, reason.code)
    name = f"{provider}/{connection_id}"
    if reason.resting is not None:
        clear = f" until it is cleared: DELETE /api/v1/connections/{connection_id}/cooldown"
        end = clear if reason.resting.until is None else ""
        return f"{name} is in cooldown ({reason.resting.cause}){end}"
    if known is None or reason.window is None:
        return f"no quota reading for {name}: send POST /api/v1/telemetry/readings"
    window = next((one for one in known.connection.windows if one.window == reason.window), None)
    return _quota_sentence(snapshot, name, window, reason) if window else f"{reason.window} of {name} is not usable"


def describe_emptiness(*, code: EmptyCode, why: str | None, is_anything_listed: bool) -> str:
    """Return the sentences on an empty pool: that it is empty, and the reason that is mended soonest.

    `why` None is "no connection stands behind any candidate", or no candidate at all.
    """
    if why is not None:
        return f"{_EMPTY[code]} First of the reasons: {why}."
    if is_anything_listed:
        return f"{_EMPTY[code]} No candidate has a connection: {_STORE}."
    return f"{_EMPTY[code]} Send candidates, or {_STORE} and prices (manage.py sync_prices)."


def _fixed(provider: str, connection_id: str | None, known: Account | None, code: Code) -> str:
    return _FIXED[code].format(
        provider=provider,
        connection_id=connection_id,
        connection=f"{provider}/{connection_id}",
        billing=known.verdict.billing.value if known else "unknown",
        overage=known.verdict.overage.value if known else "unknown",
    )


def _quota_sentence(snapshot: "Snapshot", name: str, window: Window, reason: Reason) -> str:
    if reason.code in _UNREAD:
        sentence = _UNREAD[reason.code].format(
            name=name, window=window.window, age=snapshot.facts.settings.max_reading_age_seconds
        )
        return f"{sentence}: send POST /api/v1/telemetry/readings"
    if reason.code is Code.HELD_FOR_REENTRY:
        floor = percent(reentry_floor(window=window, settings=snapshot.facts.settings))
        return f"{window.window} is at {_left(window)}, held until above {floor} %"
    return _exhausted_sentence(snapshot, window)


def _exhausted_sentence(snapshot: "Snapshot", window: Window) -> str:
    if window.status is ReadingStatus.EXHAUSTED:
        return f"{window.window} was reported exhausted"
    cutoff = exit_cutoff(window=window, settings=snapshot.facts.settings)
    if window.remaining_percent is not None and window.remaining_percent > cutoff:
        return f"{window.window} is held at {_left(window)}, and no other pool window is usable"
    return f"{window.window} is at {_left(window)}, at or below the cutoff of {percent(cutoff)} %"


def _left(window: Window) -> str:
    return "an unknown percent" if window.remaining_percent is None else f"{percent(window.remaining_percent)} %"


def percent(value: Decimal) -> str:
    """Return a percentage as it is, without trailing zeros and without an exponent."""
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
