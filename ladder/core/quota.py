"""Quota (Q1 to Q9): the verdict of one window, then of all windows that count for a model."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal

import msgspec

from billing_catalog.core.globs import glob_matches
from ladder.core.instants import TICK, shift
from ladder.core.reasons import PRECEDENCE, Code
from ladder.core.values import Combine, LadderSettings, QuotaVerdict, ReadingStatus, Window


class WindowJudgement(msgspec.Struct, frozen=True, gc=False):
    """Verdict of one window (Q1 to Q4); `code` is None where it is usable."""

    verdict: QuotaVerdict
    code: Code | None = None


class QuotaJudgement(msgspec.Struct, frozen=True, gc=False):
    """Verdict of all counting windows (Q8); `window` is the binding one and `returns_at` the return time (Q9)."""

    verdict: QuotaVerdict
    code: Code | None = None
    window: str | None = None
    returns_at: datetime | None = None


_USABLE = WindowJudgement(QuotaVerdict.USABLE)
_HELD = WindowJudgement(QuotaVerdict.HELD, Code.HELD_FOR_REENTRY)
_EXHAUSTED = WindowJudgement(QuotaVerdict.EXHAUSTED, Code.QUOTA_EXHAUSTED)
_RESET_PENDING = WindowJudgement(QuotaVerdict.UNVERIFIED, Code.RESET_PENDING)
_STALE = WindowJudgement(QuotaVerdict.UNVERIFIED, Code.QUOTA_STALE)
_UNVERIFIED = WindowJudgement(QuotaVerdict.UNVERIFIED, Code.QUOTA_UNVERIFIED)
_BARRED = (QuotaVerdict.EXHAUSTED, QuotaVerdict.HELD)


def exit_cutoff(*, window: Window, settings: LadderSettings) -> Decimal:
    """Return the percent at or below which the window is exhausted; its own cutoff wins (Q7)."""
    own = window.exit_cutoff_percent
    return settings.exit_cutoff_percent if own is None else own


def reentry_floor(*, window: Window, settings: LadderSettings) -> Decimal:
    """Return the percent strictly above which a window that dropped out is back: max(re-entry, exit) (Q4)."""
    return max(settings.reentry_min_remaining_percent, exit_cutoff(window=window, settings=settings))


def judge_window(*, window: Window, settings: LadderSettings, now: datetime) -> WindowJudgement:
    """Judge one window alone; the first rule that matches wins (Q1 to Q4)."""
    if window.observed_at is None:
        return _UNVERIFIED
    if window.reset_at is not None and window.reset_at <= now:
        return _RESET_PENDING
    if window.status is ReadingStatus.EXHAUSTED:
        return _EXHAUSTED
    percent = None if window.unlimited else window.remaining_percent
    if window.status is ReadingStatus.UNKNOWN or (percent is None and not window.unlimited):
        return _UNVERIFIED
    if is_stale(observed_at=window.observed_at, settings=settings, now=now):
        return _STALE
    return _USABLE if percent is None else _judge_percent(window=window, percent=percent, settings=settings)


def is_stale(*, observed_at: datetime, settings: LadderSettings, now: datetime) -> bool:
    """Tell whether a reading is older than the maximum age: strictly; one from the future is fresh (Q3)."""
    return now - observed_at > timedelta(seconds=settings.max_reading_age_seconds)


def _judge_percent(*, window: Window, percent: Decimal, settings: LadderSettings) -> WindowJudgement:
    if percent <= exit_cutoff(window=window, settings=settings):
        return _EXHAUSTED
    if window.held and percent <= reentry_floor(window=window, settings=settings):
        return _HELD
    return _USABLE


def counting_windows(*, windows: Iterable[Window], model: str) -> tuple[Window, ...]:
    """Return the windows that count for a model: not muted, still reported, in scope (Q6).

    They come by name, so that of two that bind alike the same one is told in whatever order they are kept.
    """
    return tuple(
        window
        for window in sorted(windows, key=lambda window: window.window)
        if window.is_reported
        and not window.is_muted
        and (window.model is None or glob_matches(pattern=window.model, name=model))
    )


def judge_windows(*, windows: Sequence[Window], settings: LadderSettings, now: datetime) -> QuotaJudgement:
    """Judge all counting windows together (Q6, Q8, Q9); without any the pair is unverified."""
    if not windows:
        return QuotaJudgement(QuotaVerdict.UNVERIFIED, Code.QUOTA_UNVERIFIED)
    limits = [_as_limit(window, settings, now) for window in windows if window.combine is Combine.LIMIT]
    pool = [_as_limit(window, settings, now) for window in windows if window.combine is Combine.POOL]
    if pool:
        limits.append(_join_pool(pool))
    return _join_limits(limits)


def _as_limit(window: Window, settings: LadderSettings, now: datetime) -> QuotaJudgement:
    judged = judge_window(window=window, settings=settings, now=now)
    returns_at = window.reset_at if judged.verdict in _BARRED else None
    return QuotaJudgement(judged.verdict, judged.code, window.window, returns_at)


def _join_pool(members: list[QuotaJudgement]) -> QuotaJudgement:
    """Join the `pool` windows to one limit: one usable is enough; else unverified if any is, else exhausted."""
    for verdict in (QuotaVerdict.USABLE, QuotaVerdict.UNVERIFIED):
        of_verdict = [member for member in members if member.verdict is verdict]
        if of_verdict:
            return min(of_verdict, key=_precedence)
    unknown = next((member for member in members if member.returns_at is None), None)
    first = unknown or min(members, key=lambda member: member.returns_at)  # type: ignore[arg-type,return-value]
    return QuotaJudgement(QuotaVerdict.EXHAUSTED, Code.QUOTA_EXHAUSTED, first.window, first.returns_at)


def _join_limits(limits: list[QuotaJudgement]) -> QuotaJudgement:
    """Join limits, which must all be usable (Q6, Q8); the binding one is the last to return (Q9)."""
    barred = [limit for limit in limits if limit.verdict in _BARRED]
    if barred:
        worst = min(barred, key=_precedence)
        unknown = next((limit for limit in barred if limit.returns_at is None), None)
        last = unknown or max(barred, key=lambda limit: limit.returns_at)  # type: ignore[arg-type,return-value]
        return QuotaJudgement(worst.verdict, worst.code, last.window, last.returns_at)
    unverified = [limit for limit in limits if limit.verdict is QuotaVerdict.UNVERIFIED]
    if unverified:
        return min(unverified, key=_precedence)
    return QuotaJudgement(QuotaVerdict.USABLE)


def _precedence(judged: QuotaJudgement) -> int:
    return PRECEDENCE[judged.code] if judged.code else -1


def is_barred(*, windows: Sequence[Window], settings: LadderSettings, now: datetime) -> bool:
    """Tell whether the windows together are exhausted or held."""
    return judge_windows(windows=windows, settings=settings, now=now).verdict in _BARRED


def barred_windows(*, windows: Iterable[Window], settings: LadderSettings, now: datetime) -> tuple[Window, ...]:
    """Return the windows that are exhausted or held: by itself none of the others ever becomes so."""
    return tuple(one for one in windows if judge_window(window=one, settings=settings, now=now).verdict in _BARRED)


def quota_instants(*, windows: Iterable[Window], settings: LadderSettings) -> list[datetime]:
    """Return the instants at which a verdict on these windows could change by itself: resets and ageing (P9)."""
    age = timedelta(seconds=settings.max_reading_age_seconds)
    resets = [window.reset_at for window in windows if window.reset_at is not None]
    return resets + [shift(window.observed_at, age + TICK) for window in windows if window.observed_at is not None]
