"""A connection's cooldowns: what was asked and what acts, drawn and in words (C2, SPEC 5, 2)."""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal

import msgspec

from ladder.core.values import CooldownCause, Window
from ladder.models import Cooldown
from omniroute_admin.common.core.screen import Glance, Moment

_FROM, _TO = Decimal(4), Decimal(356)
_EARLIEST_LABEL, _LATEST_LABEL, _LABEL_TURNS = Decimal(62), Decimal(270), Decimal(190)
_WHY = {
    CooldownCause.QUOTA: "the provider said that quota is used up",
    CooldownCause.RATE_LIMIT: "too many requests in a short time",
    CooldownCause.AUTH: "the provider refused the credential: mend it at the router, then clear this",
    CooldownCause.BAN: "the provider banned the account: once that is settled, clear this",
    CooldownCause.OPERATOR: "an operator let it rest",
}
_CLAMPED = "a plan is back when its quota resets, so no cooldown of a plan lasts longer"


class CoolBar(msgspec.Struct, frozen=True):
    """A drawing 360 wide and 66 high: from the report to what was asked; what acts is solid, what was cut hatched."""

    now_x: str
    effective_x: str
    effective_width: str
    cut_width: str
    label_x: str
    label_anchor: str
    start: str
    now: str
    effective: str
    asked: str
    words: str


class CooldownView(msgspec.Struct, frozen=True):
    """A cooldown as a screen tells it; an end of None is "until cleared"."""

    key: int
    cause: str
    model: str
    asked: Moment | None
    effective: Moment | None
    is_clamped: bool
    clamped_to: str
    why: str
    reported: Moment
    set_by: str
    origin: str
    failures: int
    lifted_by: str
    bar: CoolBar | None

    @property
    def scope(self) -> str:
        """Return what it keeps out, in words."""
        return self.model or "all models"


def is_acting(cooldown: Cooldown, *, now: datetime) -> bool:
    """Tell whether a cooldown acts; an end of None is endless."""
    return cooldown.effective_until is None or cooldown.effective_until > now


def cooldown_views(
    *, cooldowns: Sequence[Cooldown], windows: Sequence[Window], glance: Glance
) -> tuple[CooldownView, ...]:
    """Return those that act, in their order."""
    return tuple(_view(one, windows, glance) for one in cooldowns if is_acting(one, now=glance.now))


def _view(one: Cooldown, windows: Sequence[Window], glance: Glance) -> CooldownView:
    cause = CooldownCause(one.cause)
    is_clamped = one.asked_until != one.effective_until
    return CooldownView(
        key=one.pk,
        cause=one.cause,
        model=one.model or "",
        asked=glance.until(one.asked_until) if one.asked_until else None,
        effective=glance.until(one.effective_until) if one.effective_until else None,
        is_clamped=is_clamped,
        clamped_to=_clamped_to(one, windows) if is_clamped else "",
        why=_CLAMPED if is_clamped and cause is CooldownCause.QUOTA else _WHY[cause],
        reported=glance.ago(one.reported_at),
        set_by=one.set_by,
        origin=one.origin,
        failures=one.failure_count,
        lifted_by="a usable reading newer than the report, or an operator"
        if cause is CooldownCause.QUOTA
        else "an operator only",
        bar=_bar(one, glance),
    )


def _clamped_to(one: Cooldown, windows: Sequence[Window]) -> str:
    """Return the windows whose reset cut it, as far as they still tell that reset (C1)."""
    names = [window.window for window in windows if window.reset_at == one.effective_until]
    return f"the reset of {', '.join(names)}" if names else "the reset of its quota"


def _bar(one: Cooldown, glance: Glance) -> CoolBar | None:
    """Return the drawing; what ends only when it is cleared has no length to draw."""
    end = one.asked_until or one.effective_until
    if end is None or one.effective_until is None or end <= one.reported_at:
        return None
    whole = Decimal((end - one.reported_at).total_seconds())

    def place(at: datetime) -> Decimal:
        share = Decimal((at - one.reported_at).total_seconds()) / whole
        return _FROM + (_TO - _FROM) * min(max(share, Decimal(0)), Decimal(1))

    cut, now_x = place(one.effective_until), place(glance.now)
    start, now = glance.ago(one.reported_at).clock, glance.ago(glance.now).clock
    effective, asked = glance.until(one.effective_until).clock, glance.until(end).clock
    turns = cut > _LABEL_TURNS
    return CoolBar(
        now_x=_text(now_x),
        effective_x=_text(cut),
        effective_width=_text(cut - _FROM),
        cut_width=_text(_TO - cut),
        label_x=_text(min(cut, _LATEST_LABEL) if turns else max(cut, _EARLIEST_LABEL)),
        label_anchor="end" if turns else "start",
        start=start,
        now=now,
        effective=effective,
        asked=asked if one.asked_until else "until cleared",
        words=f"Cooldown from {start}, asked until {asked}, effective until {effective}; now {now}",
    )


def _text(value: Decimal) -> str:
    return f"{value:.1f}".removesuffix(".0")
