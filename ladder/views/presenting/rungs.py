"""The ladder as it is drawn: five steps, each with its state, its budget and who stands on it (SPEC 5)."""

from collections import Counter
from decimal import Decimal

import msgspec

from ladder.core.occupancy import BudgetView, Occupancy, RungOccupancy
from ladder.core.places import Place
from ladder.core.values import Rung
from ladder.views.presenting.money import budget_words
from ladder.views.presenting.names import name_segment
from ladder.views.presenting.places import Around, ends_with_budget, left_words, quota_bar
from ladder.views.presenting.values import STATES, TRIED_STATES, Bar
from omniroute_admin.common.core.screen import Segment, StateWord, moment_segments

STRIP_LIMIT = 12
"""Up to so many connections a rung shows one shape each; above it counts them by state."""

Line = tuple[Segment, ...]


class StripItem(msgspec.Struct, frozen=True):
    """A shape on the strip; `count` is 1 where each connection has its own."""

    state: StateWord
    count: int


class Step(msgspec.Struct, frozen=True):
    """One step of the ladder."""

    rung: str
    rung_index: int
    is_serving: bool
    is_next: bool
    is_closed: bool
    count: str
    strip: tuple[StripItem, ...]
    strip_is_counts: bool
    strip_words: str
    bar: Bar | None
    lines: tuple[Line, ...]


def steps(*, occupancy: Occupancy, around: Around) -> tuple[Step, ...]:
    """Return the steps from the top down: a request climbs, so rung 0 stands at the foot."""
    ordered = sorted(occupancy.rungs, key=lambda rung: -rung.rung_index)
    return tuple(_step(occupancy=occupancy, rung=rung, around=around) for rung in ordered)


def _step(*, occupancy: Occupancy, rung: RungOccupancy, around: Around) -> Step:
    places = [place for place in occupancy.places if place.rung_index == rung.rung_index]
    states = Counter(place.state.value for place in places)
    bar, lines = _signal(rung=rung, places=places, around=around)
    return Step(
        rung=rung.rung,
        rung_index=rung.rung_index,
        is_serving=rung.rung == occupancy.serving_rung,
        is_next=rung.rung == occupancy.next_rung,
        is_closed=not any(place.state in TRIED_STATES for place in places),
        count=f"{rung.usable} of {rung.total} usable" if rung.total else "no connections",
        strip=_strip(places, states),
        strip_is_counts=len(places) > STRIP_LIMIT,
        strip_words=", ".join(f"{states[key]} {STATES[key].word}" for key in STATES if states[key]),
        bar=bar,
        lines=lines,
    )


def _strip(places: list[Place], states: Counter[str]) -> tuple[StripItem, ...]:
    if len(places) <= STRIP_LIMIT:
        return tuple(StripItem(state=STATES[place.state], count=1) for place in places)
    return tuple(StripItem(state=STATES[key], count=states[key]) for key in STATES if states[key])


def _signal(*, rung: RungOccupancy, places: list[Place], around: Around) -> tuple[Bar | None, tuple[Line, ...]]:
    if rung.budget is not None:
        bar, lines = _money(budget=rung.budget, places=places, around=around)
        is_top = rung.rung_index == Rung.PREMIUM
        return msgspec.structs.replace(bar, hatch="hatch-money-4") if bar and is_top else bar, lines
    if not places:
        return None, ((Segment(text="nothing stands here"),),)
    return _quota(places=places, around=around)


def _money(*, budget: BudgetView, places: list[Place], around: Around) -> tuple[Bar | None, tuple[Line, ...]]:
    words = budget_words(budget, glance=around.glance)
    # The end of the window itself is told with the amount, in the budget's zone.
    waiting = _waiting([place for place in places if not ends_with_budget(place, budget)], around=around)
    if words.kind == "off":
        return None, (
            (Segment(text="off", kind="strong"), Segment(text=" · budget set to off, nothing is spent here")),
        )
    if words.kind == "unlimited":
        spent = words.whole.replace(", no limit", "")
        return Bar(kind="line"), ((Segment(text="no limit", kind="strong"), Segment(text=f" · {spent}")), *waiting)
    notes = ((Segment(text=", ".join(words.notes)),),) if words.notes else ()
    until = (
        (
            Segment(text=" · until "),
            Segment(text=f"{words.until.clock} {words.zone}", kind="clock", iso=words.until.iso),
        )
        if words.until
        else ()
    )
    amount = (Segment(text=words.left, kind="strong"), Segment(text=f" of {words.of}"), *until)
    return words.bar, (amount, *notes, *waiting)


def _quota(*, places: list[Place], around: Around) -> tuple[Bar | None, tuple[Line, ...]]:
    best = max((place for place in places if place.state == "usable"), key=_left, default=None)
    waiting = _waiting(places, around=around)
    if best is not None:
        bar = quota_bar(window=best.window, state="usable", settings=around.settings)
        return bar, (_best(best, around), *waiting)
    if any(place.state in TRIED_STATES for place in places):
        words = (Segment(text="unknown", kind="strong"), Segment(text=" · nothing measured now, tried unverified"))
        return Bar(kind="dashed"), (words, *waiting)
    return Bar(kind="solid", edged=True), waiting or ((Segment(text="nothing here can serve now"),),)


def _left(place: Place) -> tuple[bool, Decimal]:
    """Order usable places by what is left; unlimited is the most."""
    window = place.window
    if window is None or window.remaining_percent is None:
        return bool(window and window.unlimited), Decimal(-1)
    return False, window.remaining_percent


def _best(place: Place, around: Around) -> Line:
    left = left_words(window=place.window, state=place.state)
    window = place.window.window if place.window else ""
    best = "" if place.window and place.window.unlimited else "best measured, "
    tail = (Segment(text=f" {window}"),) if window else ()
    return (Segment(text=left, kind="strong"), Segment(text=f" · {best}"), _name(place, around), *tail)


def _name(place: Place, around: Around) -> Segment:
    return name_segment(provider=place.provider, connection_id=place.connection_id, labels=around.labels)


def _waiting(places: list[Place], *, around: Around) -> tuple[Line, ...]:
    """Return a line on the first connection to come back, where one is known."""
    known = [(place.returns_at, place) for place in places if place.returns_at and place.state != "usable"]
    coming = [pair for pair in known if pair[0] > around.glance.now]
    if not coming:
        return ()
    at, first = min(coming, key=lambda pair: pair[0])
    back = moment_segments(around.glance.until(at))
    return ((_name(first, around), Segment(text=" back not before "), *back),)
