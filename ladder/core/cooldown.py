"""Cooldowns (C1 to C5): which one acts, how long a report asks for, where the clamp cuts."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

import msgspec

from billing_catalog.core.globs import glob_matches
from billing_catalog.core.values import Billing
from ladder.core.instants import shift
from ladder.core.quota import exit_cutoff
from ladder.core.values import Cooldown, CooldownCause, LadderSettings, ReadingStatus, Window

CAP = timedelta(minutes=30)
RETRY_AFTER_CAP = timedelta(days=30)
UNTIL_CLEARED = (CooldownCause.AUTH, CooldownCause.BAN)
MOST_STEPS = 8
"""Failures beyond one more than these make no cooldown longer (C4)."""


class Resting(msgspec.Struct, frozen=True, gc=False):
    """The acting cooldown of a pair; `until` None is "until cleared"."""

    cause: CooldownCause
    until: datetime | None


def acting_cooldown(*, cooldowns: Iterable[Cooldown], model: str, now: datetime) -> Resting | None:
    """Return the cooldown that acts on a model now: of several the longest (C3), or None."""
    acting = [
        Resting(item.cause, item.effective_until)
        for item in cooldowns
        if (item.effective_until is None or item.effective_until > now)
        and (item.model is None or glob_matches(pattern=item.model, name=model))
    ]
    endless = next((item for item in acting if item.until is None), None)
    return endless or max(acting, key=lambda item: item.until, default=None)  # type: ignore[arg-type,return-value]


class Report(msgspec.Struct, frozen=True):
    """One report of a refusal, and the last success known before it."""

    occurred_at: datetime
    succeeded_at: datetime | None = None


def failures_in_a_row(*, reports: Sequence[Report]) -> list[int]:
    """Return for each report, in order of time, the how many-th in a row it is without a success between (C4)."""
    counts: list[int] = []
    for place, report in enumerate(reports):
        is_first = place == 0 or (
            report.succeeded_at is not None and report.succeeded_at >= reports[place - 1].occurred_at
        )
        counts.append(1 if is_first else counts[-1] + 1)
    return counts


def backoff(*, auth_type: str | None, failure_count: int) -> timedelta:
    """Return the length of a cooldown for which the router gave none (C4)."""
    base, steps = (5, MOST_STEPS) if auth_type == "oauth" else (3, 5)
    return min(timedelta(seconds=base * 2 ** min(max(failure_count, 1) - 1, steps)), CAP)


def asked_until(
    *,
    cause: CooldownCause,
    auth_type: str | None,
    failure_count: int,
    retry_after: timedelta | None,
    occurred_at: datetime,
) -> datetime | None:
    """Return until when a report asks the connection to rest (C4); None is "until cleared" (auth, ban)."""
    if cause in UNTIL_CLEARED:
        return None
    if retry_after is not None:
        return shift(occurred_at, min(max(retry_after, timedelta(0)), RETRY_AFTER_CAP))
    return shift(occurred_at, backoff(auth_type=auth_type, failure_count=failure_count))


def clamp(*, until: datetime | None, reset_at: datetime | None, now: datetime) -> datetime | None:
    """Return the end of a quota cooldown cut at the reset of its quota (C1).

    Never later than `until`; unchanged where the reset is unknown or already past. `until` None is endless.
    """
    if reset_at is None or reset_at <= now:
        return until
    return reset_at if until is None else min(until, reset_at)


def is_clamped(*, billing: Billing, cause: CooldownCause) -> bool:
    """Tell whether C1 applies: cause `quota` of a plan-included connection, whatever its overage."""
    return cause is CooldownCause.QUOTA and billing in (Billing.SUBSCRIPTION, Billing.KEYLESS)


def reset_that_caused(
    *,
    reported_reset_at: datetime | None,
    named_window: str | None,
    windows: Sequence[Window],
    settings: LadderSettings,
    now: datetime,
) -> datetime | None:
    """Return the reset of the quota that caused a cooldown (C1).

    The report's own; else the named window's; else the latest future one among the windows last read at or below the
    cutoff or said exhausted, at whatever age.
    """
    if reported_reset_at is not None:
        return reported_reset_at
    named = next((window.reset_at for window in windows if window.window == named_window), None)
    if named is not None:
        return named
    used_up = (window.reset_at for window in windows if _is_used_up(window, settings))
    return max((reset for reset in used_up if reset is not None and reset > now), default=None)


def _is_used_up(window: Window, settings: LadderSettings) -> bool:
    if window.status is ReadingStatus.EXHAUSTED:
        return True
    percent = None if window.unlimited else window.remaining_percent
    return percent is not None and percent <= exit_cutoff(window=window, settings=settings)


def later(first: datetime | None, second: datetime | None) -> datetime | None:
    """Return the later of two ends, None being endless: a longer cooldown extends, a shorter one does not (C5)."""
    return None if first is None or second is None else max(first, second)
