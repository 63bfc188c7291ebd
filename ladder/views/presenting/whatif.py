"""What a change would move, in words: sentences first, then places, then pools (SPEC 5, 3)."""

from collections import Counter
from collections.abc import Collection, Iterable
from datetime import datetime

import msgspec

from ladder.core.moves import Move, PoolMove, Tally
from ladder.core.occupancy import BudgetView, Occupancy, RungOccupancy
from ladder.core.places import Place
from ladder.core.values import LadderSettings
from ladder.core.whatif import Key
from ladder.selectors.whatif import WhatIf
from ladder.views.presenting.money import budget_words
from ladder.views.presenting.names import Labels, name_segment
from ladder.views.presenting.places import left_words
from ladder.views.presenting.sentence import SUBSCRIPTION, THRIFTY, Sentence
from ladder.views.presenting.values import STATES
from omniroute_admin.common.core.screen import Glance, Moment, Segment, StateWord
from omniroute_admin.common.core.words import clock_text, count_text, money_text, percent_text

MOST_ROWS = 50
MOST_NAMES = 3


class Side(msgspec.Struct, frozen=True):
    """A place as it is, or would be; `state` None is "not there". `rung` is told where the two sides differ in it."""

    state: StateWord | None
    small: str = ""
    code: str = ""
    rung: str = ""
    rung_index: int = 0
    may_bill: bool = False


class MoveRow(msgspec.Struct, frozen=True):
    """One place that would move, before and after."""

    provider: str
    connection_id: str
    label: str
    rung_index: int
    is_stored: bool
    before: Side
    after: Side


class Crowd(msgspec.Struct, frozen=True):
    """Connections that come into a pool, go out, or change rung in it: how many pairs, and whose."""

    sign: str
    words: str
    names: tuple[Segment, ...]


class PoolRow(msgspec.Struct, frozen=True):
    """One pool before and after, and who makes the difference."""

    id: str
    before: int
    after: int
    crowds: tuple[Crowd, ...]


class WhatIfView(msgspec.Struct, frozen=True):
    """What would move. `problems` are the fields that were left out of it, with what is wrong with each."""

    sentences: tuple[Sentence, ...]
    at: Moment
    at_clock: str
    places: str
    rows: tuple[MoveRow, ...]
    more: str
    pools: str
    changed: tuple[PoolRow, ...]
    same: tuple[PoolRow, ...]
    problems: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()


def whatif_view(
    *,
    answer: WhatIf,
    glance: Glance,
    labels: Labels,
    problems: Iterable[tuple[str, str]] = (),
    notes: Iterable[str] = (),
) -> WhatIfView:
    """Return the words of an answer."""
    stored = {(place.provider, place.connection_id) for place in answer.before.places}
    shown, rest = answer.moves[:MOST_ROWS], answer.moves[MOST_ROWS:]
    rows = [_pool_row(move, labels) for move in answer.pools]
    changed = tuple(row for row in rows if row.crowds)
    total = max(len(answer.before.places), len(answer.after.places))
    return WhatIfView(
        sentences=_sentences(answer, glance),
        at=glance.ago(glance.now),
        at_clock=clock_text(at=glance.now, now=glance.now, zone=glance.zone, seconds=True),
        places=f"{len(answer.moves):,} of {count_text(total, 'place', 'places')} would move",
        rows=tuple(_move_row(move, answer, labels, stored) for move in shown),
        more=_more(rest),
        pools=f"{len(changed)} of {len(rows)} pools would change",
        changed=changed,
        same=tuple(row for row in rows if not row.crowds),
        problems=tuple(problems),
        notes=tuple(notes),
    )


def _more(rest: Iterable[Move]) -> str:
    """Return the moves that the table has no room for, by kind."""
    kinds = Counter((_word(move.before), _word(move.after)) for move in rest)
    told = [f"{count:,} {was} → {becomes}" for (was, becomes), count in kinds.most_common()]
    return f"And {kinds.total():,} more: {', '.join(told)}." if told else ""


def _word(place: Place | None) -> str:
    return f"{STATES[place.state].word} on {place.rung}" if place else "not there"


def _move_row(move: Move, answer: WhatIf, labels: Labels, stored: Collection[Key]) -> MoveRow:
    first = move.before or move.after
    return MoveRow(
        provider=move.provider,
        connection_id=move.connection_id,
        label=labels.get((move.provider, move.connection_id), ""),
        rung_index=first.rung_index if first else 0,
        is_stored=(move.provider, move.connection_id) in stored,
        before=_side(move.before, answer.before, move.after),
        after=_side(move.after, answer.after, move.before, returned_above=_floor(move, answer.settings)),
    )


def _floor(move: Move, settings: LadderSettings) -> str:
    """Return what a connection that was held comes back above, where it does (Q4)."""
    if move.before is None or move.after is None or (move.before.state, move.after.state) != ("held", "usable"):
        return ""
    floor = max(settings.reentry_min_remaining_percent, settings.exit_cutoff_percent)
    return f"above re-entry {percent_text(floor)}"


def _side(place: Place | None, occupancy: Occupancy, other: Place | None, *, returned_above: str = "") -> Side:
    if place is None:
        return Side(state=None)
    return Side(
        state=STATES[place.state],
        small=returned_above or _small(place, occupancy),
        code=place.code or "",
        rung=place.rung if other is None or other.rung != place.rung else "",
        rung_index=place.rung_index,
        may_bill=place.may_bill_past_plan,
    )


def _small(place: Place, occupancy: Occupancy) -> str:
    budget = occupancy.rungs[place.rung_index].budget
    if budget is not None:
        return budget_words(budget).left
    return f"{place.window.window} {left_words(window=place.window, state=place.state)}" if place.window else ""


def _pool_row(move: PoolMove, labels: Labels) -> PoolRow:
    crowds = (
        _crowd("plus", "+{} in", move.came, labels),
        _crowd("minus", "−{} out", move.went, labels),
        _crowd("shift", "{} to another rung", move.shifted, labels),
    )
    return PoolRow(move.id, move.before, move.after, tuple(crowd for crowd in crowds if crowd is not None))


def _crowd(sign: str, words: str, tallies: tuple[Tally, ...], labels: Labels) -> Crowd | None:
    if not tallies:
        return None
    pairs = sum(tally.pairs for tally in tallies)
    names: list[Segment] = []
    for tally in tallies[:MOST_NAMES]:
        names += [Segment(text=", ")] if names else []
        names.append(name_segment(provider=tally.provider, connection_id=tally.connection_id, labels=labels))
    hidden = len(tallies) - MOST_NAMES
    names += [Segment(text=f" and {hidden:,} more")] if hidden > 0 else []
    return Crowd(sign, words.format(f"{pairs:,}"), tuple(names))


def _sentences(answer: WhatIf, glance: Glance) -> tuple[Sentence, ...]:
    told = [_thrifty(answer), _subscription(answer), *_budgets(answer, glance)]
    return tuple(sentence for sentence in told if sentence)


def _thrifty(answer: WhatIf) -> Sentence:
    was, becomes = answer.before.serving_rung, answer.after.serving_rung
    still = "still " if was == becomes else ""
    if becomes is None:
        return (_code(THRIFTY), Segment(text=f" would {still}be "), _strong("empty"), Segment(text="."))
    rung = _rung(answer.after, becomes)
    instead = "" if was == becomes else f" instead of {was}" if was else ", where it is empty now"
    return (
        _code(THRIFTY),
        Segment(text=f" would {still}serve from "),
        _strong(becomes),
        Segment(text=" ("),
        _strong(f"{rung.usable:,}"),
        Segment(text=f" of {rung.total:,} usable){instead}."),
    )


def _rung(occupancy: Occupancy, word: str) -> RungOccupancy:
    return next(rung for rung in occupancy.rungs if rung.rung == word)


def _subscription(answer: WhatIf) -> Sentence:
    """Return what becomes of the plan's own pool, where it empties or fills."""
    had, has = (
        next(line.pairs for line in occupancy.pools if line.id == SUBSCRIPTION)
        for occupancy in (answer.before, answer.after)
    )
    if bool(had) == bool(has):
        return ()
    if not has:
        return (_code(SUBSCRIPTION), Segment(text=" would be "), _strong("empty"), Segment(text="."))
    return (
        _code(SUBSCRIPTION),
        Segment(text=" would have "),
        _strong(count_text(has, "pair", "pairs")),
        Segment(text=", where it is empty now."),
    )


def _budgets(answer: WhatIf, glance: Glance) -> list[Sentence]:
    told: list[Sentence] = []
    for was, becomes in zip(answer.before.rungs, answer.after.rungs, strict=True):
        if was.budget is not None and becomes.budget is not None and _terms(was.budget) != _terms(becomes.budget):
            told.append((_strong(becomes.rung), Segment(text=" would "), *_budget(becomes.budget, glance)))
    return told


def _terms(budget: BudgetView) -> tuple[object, ...]:
    return budget.amount_usd, budget.left_usd, budget.window_start, budget.window_end, budget.zone


def _budget(budget: BudgetView, glance: Glance) -> Sentence:
    words = budget_words(budget, glance=glance)
    if words.kind == "off":
        return (Segment(text="be "), _strong("off"), Segment(text="."))
    if words.kind == "unlimited":
        return (Segment(text="have "), _strong("no limit"), Segment(text="."))
    if words.kind == "left":
        left = words.left.removesuffix(" left")
        return (Segment(text="have "), _strong(left), Segment(text=f" of {words.of} left"), *_until(budget, glance))
    if budget.amount_usd is not None and budget.spent_usd >= budget.amount_usd:
        return (Segment(text="be "), _strong("closed"), *_until(budget, glance))
    return (Segment(text="be "), _strong("closed"), Segment(text=f" while {money_text(budget.held_usd)} is on hold."))


def _until(budget: BudgetView, glance: Glance) -> Sentence:
    if budget.window_end is None:
        return (Segment(text="."),)
    end: datetime = budget.window_end
    until = glance.in_zone(budget.zone).until(end)
    return (
        Segment(text=" until "),
        Segment(text=f"{until.clock} {budget.zone}", kind="clock", iso=until.iso),
        Segment(text="."),
    )


def _code(text: str) -> Segment:
    return Segment(text=text, kind="code")


def _strong(text: str) -> Segment:
    return Segment(text=text, kind="strong")
