"""The tuning page in words: what a setting was, the hysteresis band as a drawing, a budget's window (SPEC 5, 3)."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import msgspec

from ladder.core.money import held_usd
from ladder.core.values import Accounting, Budget
from ladder.forms.tuning import LABELS
from ladder.selectors.tuning import NO_LIMIT, OFF, Texts
from ladder.views.presenting.sentence import Sentence
from omniroute_admin.common.core.screen import Glance, Segment, iso_text
from omniroute_admin.common.core.stale import Difference
from omniroute_admin.common.core.words import money_text, percent_text, span_text

_PERCENT = frozenset({"exit_cutoff_percent", "reentry_min_remaining_percent"})
_USD = frozenset({"cheap_amount", "premium_amount", "tier_free", "tier_cheap"})


def value_words(name: str, text: str) -> str:
    """Return a setting's value as people read it: `5 %`, `240 s`, `$5.00`, `off`, `no limit`."""
    if name in _PERCENT:
        return percent_text(Decimal(text))
    if name == "max_reading_age_seconds":
        return f"{text} s"
    if name in _USD and text not in {OFF, NO_LIMIT}:
        return money_text(Decimal(text))
    return "no limit" if name in _USD and text == NO_LIMIT else text


class Mark(msgspec.Struct, frozen=True):
    """What stands beside a field: what it was where it differs, and what is wrong with it."""

    name: str
    was: str
    error: str


def marks(*, began: Texts, sent: Texts, problems: Mapping[str, str]) -> dict[str, Mark]:
    """Return the mark of every field."""
    return {
        name: Mark(
            name,
            f"changed, was {value_words(name, began[name])}" if sent.get(name, began[name]) != began[name] else "",
            problems.get(name, ""),
        )
        for name in LABELS
    }


class Clash(msgspec.Struct, frozen=True):
    """One field that two people changed, or only the other one (SPEC 5, 3)."""

    name: str
    label: str
    began: str
    stored: str
    sent: str
    is_touched: bool


def clashes(differences: list[Difference]) -> tuple[Clash, ...]:
    """Return the differences of a stale form in words, in the order of the page."""
    by_name = {one.name: one for one in differences}
    return tuple(
        Clash(
            name,
            label,
            value_words(name, one.began),
            value_words(name, one.stored),
            value_words(name, one.sent),
            one.is_touched,
        )
        for name, label in LABELS.items()
        if (one := by_name.get(name)) is not None
    )


WIDTH = Decimal(440)
_ROOM = Decimal(46)
_SPACE = Decimal(6)
_CLEAR = Decimal(62)
"""So far from the ends of the band its words in the middle stay clear of "out" and "in"."""
_SCALES = (10, 20, 50, 100)


class Label(msgspec.Struct, frozen=True):
    """A number under the band."""

    x: str
    anchor: str
    text: str


class Band(msgspec.Struct, frozen=True):
    """The hysteresis band as a drawing: out up to `low`, as it was up to `high`, in above (Q4)."""

    low: str
    high: str
    keep: str
    rest: str
    middle: str
    has_band: bool
    labels: tuple[Label, ...]
    words: str
    note: str


def band(*, exit_cutoff: Decimal, reentry: Decimal) -> Band:
    """Return the drawing of two settings; a re-entry floor below the exit cutoff counts as the cutoff."""
    floor = max(exit_cutoff, reentry)
    top = next((scale for scale in _SCALES if floor <= Decimal(scale) * 7 / 10), 100)
    low, high = (_x(value, top) for value in (exit_cutoff, floor))
    cutoff_words, floor_words = percent_text(exit_cutoff), percent_text(floor)
    between = f", above {cutoff_words} up to {floor_words} a connection stays as it was" if high > low else ""
    return Band(
        low=_text(low),
        high=_text(high),
        keep=_text(high - low),
        rest=_text(WIDTH - high),
        middle=_text(min(max((low + high) / 2, _CLEAR), WIDTH - _CLEAR)),
        has_band=high > low,
        labels=_labels(low, high, cutoff_words, floor_words, top),
        words=f"Up to {cutoff_words} out{between}, above {floor_words} in",
        note=f"Below the exit cutoff: counts as {cutoff_words}, the exit cutoff." if reentry < exit_cutoff else "",
    )


def _x(value: Decimal, top: int) -> Decimal:
    return value * WIDTH / top


def _text(value: Decimal) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".")


def _labels(low: Decimal, high: Decimal, cutoff: str, floor: str, top: int) -> tuple[Label, ...]:
    """Return the numbers under the band; those of two edges that are close stand on their two sides."""
    if high == low:
        edges = [_centred(low, cutoff)]
    elif high - low >= _ROOM:
        edges = [_centred(low, cutoff), _centred(high, floor)]
    else:
        left = min(max(low, _ROOM), WIDTH - _ROOM - _SPACE)
        right = min(max(high, left + _SPACE), WIDTH - _ROOM)
        edges = [Label(_text(left), "end", cutoff), Label(_text(right), "start", floor)]
    ends = [Label("0", "start", "0 %")] if low >= 2 * _ROOM else []
    ends += [Label(str(WIDTH), "end", f"{top} %")] if WIDTH - high >= 2 * _ROOM else []
    return (*ends, *edges)


def _centred(at: Decimal, text: str) -> Label:
    return Label(_text(min(max(at, _ROOM / 2), WIDTH - _ROOM / 2)), "middle", text)


class AgeWords(msgspec.Struct, frozen=True):
    """What a maximum age means for the readings that arrive."""

    text: str
    is_short: bool


def age_words(*, seconds: int, gap: timedelta | None) -> AgeWords:
    """Say how often readings arrive, and what follows where that is rarer than they count (Settings)."""
    rule = "Older than this is stale: out of subscription, tried by thrifty."
    if gap is None:
        return AgeWords(f"How often readings arrive is not known yet. {rule}", False)
    usual = f"Readings usually arrive every {span_text(gap.total_seconds())}"
    if timedelta(seconds=seconds) < gap:
        return AgeWords(
            f"{usual}, which is rarer than {seconds} s: subscription would be empty most of the time, and thrifty would"
            " try plans unverified.",
            True,
        )
    return AgeWords(f"{usual}. {rule}", False)


def budget_line(*, budget: Budget, glance: Glance, is_moved: bool) -> Sentence:
    """Return a budget's window as it is enforced: spend, holds, and until when, told in its own zone (M2, M3, M4).

    `is_moved` says that another period, weekday or zone would give it this window.
    """
    held = held_usd(budget=budget, at=glance.now)
    spent = budget.spent_usd or Decimal(0)
    is_silent = budget.accounting is Accounting.NONE and not spent
    money = "no spend reported" if is_silent else f"{money_text(spent)} spent"
    money += f" + {money_text(held)} on hold" if held else ""
    money += ", partly estimated" if budget.accounting is Accounting.PARTIAL else ""
    segments = [Segment(text="The window would be the one" if is_moved else f"This window: {money},")]
    if budget.window_start is not None and (is_moved or budget.accounting is not Accounting.NONE):
        segments += [Segment(text=" since "), _dated(budget.window_start, budget.zone)]
    if budget.window_end is not None:
        segments += [Segment(text=" until "), _dated(budget.window_end, budget.zone)]
    segments.append(Segment(text=f" {budget.zone}"))
    tail = f", with what happened in it: {money}." if is_moved else "."
    return (*segments, Segment(text=tail))


def _dated(at: datetime, zone: str) -> Segment:
    """Return an instant with its weekday and date: the two ends of a week would read alike by the weekday."""
    local = at.astimezone(ZoneInfo(zone))
    return Segment(text=f"{local:%a} {local.day} {local:%b %H:%M}", kind="clock", iso=iso_text(at))
