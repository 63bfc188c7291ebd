"""The sentences on top of the ladder page, told from the decision and nothing else (SPEC 5, 1)."""

from datetime import datetime

import msgspec

from ladder.core.alerts.conditions import is_exhausted
from ladder.core.occupancy import Occupancy, PoolLine, RungOccupancy
from ladder.core.places import Place
from ladder.core.reasons import EmptyCode
from ladder.core.values import Empty
from ladder.views.presenting.money import BudgetWords, budget_words
from ladder.views.presenting.names import Labels, name_segment
from omniroute_admin.common.core.screen import Glance, Segment, moment_segments
from omniroute_admin.common.core.words import count_text

THRIFTY = "auto/thrifty"
SUBSCRIPTION = "auto/subscription"
Sentence = tuple[Segment, ...]


class Headline(msgspec.Struct, frozen=True):
    """The sentences; `rung_index` is the serving rung's, None where nothing serves. An empty plan is told apart."""

    thrifty: Sentence
    subscription: Sentence
    plan_is_empty: bool
    plan_code: str
    rung_index: int | None


NO_LABELS: Labels = {}


def headline(*, occupancy: Occupancy, glance: Glance, labels: Labels = NO_LABELS) -> Headline:
    """Return the sentences of this moment."""
    line = _line(occupancy, SUBSCRIPTION)
    plan_is_empty = line is not None and not line.pairs
    serving = _rung(occupancy, occupancy.serving_rung)
    return Headline(
        thrifty=_thrifty(occupancy=occupancy, glance=glance),
        subscription=_empty(line, what="first plan back", glance=glance)
        if plan_is_empty and line
        else _plans(occupancy=occupancy, glance=glance, labels=labels),
        plan_is_empty=plan_is_empty,
        plan_code=line.empty.code if plan_is_empty and line and line.empty else "",
        rung_index=serving.rung_index if serving else None,
    )


def _line(occupancy: Occupancy, pool_id: str) -> PoolLine | None:
    return next((line for line in occupancy.pools if line.id == pool_id), None)


def _rung(occupancy: Occupancy, word: str | None) -> RungOccupancy | None:
    return next((rung for rung in occupancy.rungs if rung.rung == word), None)


def _thrifty(*, occupancy: Occupancy, glance: Glance) -> Sentence:
    serving = _rung(occupancy, occupancy.serving_rung)
    if not occupancy.places:
        return _nothing_stored(_line(occupancy, THRIFTY))
    if serving is None:
        empty = _empty(_line(occupancy, THRIFTY), what="first back", glance=glance, pool_id=THRIFTY)
        return (*empty, *_budgets(occupancy=occupancy, glance=glance))
    unverified = "" if serving.usable else ", tried unverified"
    return (
        Segment(text=THRIFTY, kind="code"),
        Segment(text=" serves from "),
        Segment(text=serving.rung, kind="serving"),
        Segment(text=f" ({serving.usable} of {serving.total} usable{unverified}). "),
        *_next(occupancy),
        *_budgets(occupancy=occupancy, glance=glance),
    )


def _nothing_stored(line: PoolLine | None) -> Sentence:
    """Return that there is no connection, and in the words of the API's answer how to begin."""
    detail = f" {line.empty.detail}" if line and line.empty and line.empty.detail else ""
    return (
        Segment(text=THRIFTY, kind="code"),
        Segment(text=" is "),
        Segment(text="empty", kind="strong"),
        Segment(text=f": no connection is stored.{detail}"),
    )


def _next(occupancy: Occupancy) -> Sentence:
    if occupancy.next_rung is None:
        return (Segment(text="Nothing stands behind it."),)
    return (Segment(text="Next: "), Segment(text=occupancy.next_rung, kind="strong"), Segment(text="."))


def _budgets(*, occupancy: Occupancy, glance: Glance) -> Sentence:
    """Return a sentence for each paid rung that has a budget set, or places that could spend without one."""
    segments: list[Segment] = []
    for rung in occupancy.rungs:
        if rung.budget and (rung.total or rung.budget.amount_usd is not None):
            words = budget_words(rung.budget, glance=glance)
            segments += [Segment(text=" "), Segment(text=rung.rung, kind="strong"), *_budget(words)]
    return tuple(segments)


def _budget(words: BudgetWords) -> Sentence:
    if words.kind == "off":
        return (Segment(text=" is off."),)
    if words.kind == "unlimited":
        return (Segment(text=" has no limit."),)
    amount = (
        f"{words.left.removesuffix(' left')} of {words.of} left" if words.kind == "left" else f"spent its {words.of}"
    )
    until = (
        (
            Segment(text="until ", kind=""),
            Segment(text=f"{words.until.clock} {words.zone}", kind="clock", iso=words.until.iso),
        )
        if words.until
        else ()
    )
    return (Segment(text=f" has {amount} "), *until, Segment(text="."))


def _plans(*, occupancy: Occupancy, glance: Glance, labels: Labels) -> Sentence:
    plans = [place for place in occupancy.places if _is_plan(place)]
    serving = {(place.provider, place.connection_id) for place in plans if place.state == "usable"}
    waiting = [(place.returns_at, place) for place in plans if place.state != "usable" and place.returns_at]
    return (
        Segment(text=SUBSCRIPTION, kind="code"),
        Segment(text=" serves from "),
        Segment(text=count_text(len(serving), "plan", "plans"), kind="strong"),
        *(_next_plan(waiting, glance=glance, labels=labels) if waiting else (Segment(text="."),)),
    )


def _is_plan(place: Place) -> bool:
    return place.rung_index == 0 and place.overage == "hard-stop"


def _next_plan(waiting: list[tuple[datetime, Place]], *, glance: Glance, labels: Labels) -> Sentence:
    at, place = min(waiting, key=lambda pair: pair[0])
    return (
        Segment(text="; next plan back not before "),
        *moment_segments(glance.until(at)),
        Segment(text=": "),
        name_segment(provider=place.provider, connection_id=place.connection_id, labels=labels),
        Segment(text="."),
    )


def _empty(line: PoolLine | None, *, what: str, glance: Glance, pool_id: str = SUBSCRIPTION) -> Sentence:
    return (
        Segment(text=pool_id, kind="code"),
        Segment(text=" is "),
        Segment(text="empty", kind="strong"),
        *_back(line.empty if line else None, what=what, glance=glance),
    )


def _back(empty: Empty | None, *, what: str, glance: Glance) -> Sentence:
    """Return when an empty pool may have something again; where that is not known, none is promised."""
    if empty is not None and empty.code == EmptyCode.NO_CANDIDATES:
        return (Segment(text=": it has no candidates."),)
    if empty is None or empty.returns_at is None:
        return (Segment(text=f"; {what} with the next reading or change, no time is known."),)
    return (Segment(text=f"; {what} "), *moment_segments(glance.until(empty.returns_at)), Segment(text="."))


def exhausted_rungs(occupancy: Occupancy) -> int:
    """Return how many rungs have connections of which none would be tried; a rung that is off is not exhausted."""
    return sum(1 for rung in occupancy.rungs if _is_exhausted(occupancy, rung))


def _is_exhausted(occupancy: Occupancy, rung: RungOccupancy) -> bool:
    return is_exhausted(place for place in occupancy.places if place.rung_index == rung.rung_index)
