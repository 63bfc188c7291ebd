"""Everything about one connection in the words a router gets (SPEC 4, explain)."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from billing_catalog.core.values import Matched, Verdict
from billing_catalog.models import BillingEntry
from ladder.core.explain import PoolPlace, judge_connection, pool_places
from ladder.core.judge import Account
from ladder.core.places import WindowView, window_view
from ladder.core.snapshot import Snapshot
from ladder.models import Connection, Cooldown


class BillingView(msgspec.Struct, frozen=True):
    """Class and overage, which catalogue row said so, and why: the override's reason, else the row's own."""

    billing: str
    overage: str
    matched: str
    overridden: bool
    reason: str


class CooldownView(msgspec.Struct, frozen=True):
    """The acting cooldown; null instants are "until cleared" (C2), a null model is every model (C3).

    `model` is an addition to SPEC's form: without it a cooldown of one model reads as one of the whole connection.
    """

    model: str | None
    asked_until: datetime | None
    effective_until: datetime | None
    clamped: bool
    cause: str
    set_by: str
    reported_at: datetime


class BreakerView(msgspec.Struct, frozen=True):
    """The open breaker of the connection's provider."""

    open_until: datetime


class Explanation(msgspec.Struct, frozen=True):
    """The answer of `…/{id}/explain`."""

    connection_id: str
    provider: str
    billing: BillingView
    windows: tuple[WindowView, ...]
    cooldown: CooldownView | None
    breaker: BreakerView | None
    verdict: str
    binding_window: str | None
    returns_at: datetime | None
    pools: list[PoolPlace]


def explain_connection(*, snapshot: Snapshot, account: Account, models: Sequence[str], now: datetime) -> Explanation:
    """Explain one connection over some of its provider's models."""
    one = account.connection
    judged = judge_connection(account=account, snapshot=snapshot, now=now)
    open_until = snapshot.facts.breakers.get(one.provider)
    return Explanation(
        connection_id=one.connection_id,
        provider=one.provider,
        billing=_billing(account),
        windows=tuple(window_view(window=window, snapshot=snapshot, now=now) for window in one.windows),
        cooldown=_acting(account, now),
        breaker=BreakerView(open_until) if open_until is not None and open_until > now else None,
        verdict=judged.verdict.value,
        binding_window=judged.window,
        returns_at=judged.returns_at,
        pools=pool_places(account=account, models=models, snapshot=snapshot, now=now),
    )


def _billing(account: Account) -> BillingView:
    verdict = account.verdict
    reason = _reason(account, verdict)
    return BillingView(verdict.billing.value, verdict.overage.value, verdict.matched.value, verdict.overridden, reason)


def _reason(account: Account, verdict: Verdict) -> str:
    """Return the reason of an override in force (B4), else the justification of the row that matched, if one did."""
    if verdict.overridden and (override := _override_reason(account)):
        return override
    if verdict.matched not in (Matched.PROVIDER, Matched.PROVIDER_AUTH_TYPE):
        return ""
    auth_type = account.connection.auth_type if verdict.matched is Matched.PROVIDER_AUTH_TYPE else None
    rows = BillingEntry.objects.filter(provider=account.connection.provider)
    rows = rows.filter(auth_type__isnull=True) if auth_type is None else rows.filter(auth_type=auth_type)
    return rows.values_list("reason", flat=True).first() or ""


def _override_reason(account: Account) -> str:
    one = account.connection
    rows = Connection.objects.live().filter(connection_id=one.connection_id, provider=one.provider)
    return rows.values_list("overage_override_reason", flat=True).first() or ""


def _acting(account: Account, now: datetime) -> CooldownView | None:
    """Return the longest cooldown that acts on every model, else on one (C3)."""
    one = account.connection
    rows = Cooldown.objects.filter(
        connection__connection_id=one.connection_id, connection__provider=one.provider, connection__deleted_at=None
    )
    acting = [row for row in rows if row.effective_until is None or row.effective_until > now]
    # The last of this order acts: for every model before for one, endless before ending, late before early.
    acting.sort(key=lambda row: (row.model is None, row.effective_until is None, row.effective_until or now))
    if not acting:
        return None
    row = acting[-1]
    clamped = row.asked_until != row.effective_until
    return CooldownView(
        row.model, row.asked_until, row.effective_until, clamped, row.cause, row.set_by, row.reported_at
    )
