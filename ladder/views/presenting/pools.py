"""Pools in words: the ids in one line each, and one pool as a router gets it (SPEC 4, 5)."""

from collections.abc import Mapping
from urllib.parse import urlencode

import msgspec

from ladder.core.occupancy import BudgetView, Occupancy
from ladder.core.reasons import Code
from ladder.core.values import Entry, Exclusion, Pool, PoolOptions, Rung
from ladder.views.paging import Leaf, leaf_of
from ladder.views.presenting.values import STATES
from omniroute_admin.common.core.screen import Glance, Moment, StateWord
from omniroute_admin.common.core.words import count_text

FOLDED = frozenset({Code.NO_CONNECTIONS, Code.NO_MODELS})
"""What is the same for every model, or connection, of a provider is one line for the provider."""

SURVIVORS_SHOWN = 12
"""So many connections of one candidate are named; a list of hundreds helps nobody on a screen."""

UNKNOWN_STATE = StateWord(key="off", word="not on the ladder", shape="off", tone="off")


class Survivor(msgspec.Struct, frozen=True):
    """A connection in a pool, with the state it is in."""

    connection_id: str
    state: StateWord


class EntryRow(msgspec.Struct, frozen=True):
    """One candidate of a pool."""

    number: int
    rung: str
    rung_index: int
    provider: str
    model: str
    may_bill: bool
    survivors: tuple[Survivor, ...]
    survivor_count: int

    @property
    def more(self) -> int:
        """Return how many survivors are not named."""
        return self.survivor_count - len(self.survivors)


class LeftOutRow(msgspec.Struct, frozen=True):
    """One pair left out, or all of a provider's that are out for want of connections or models (`folded` counts).

    `alike` tells for how many other models the same keeps the connection out.
    """

    is_never: bool
    provider: str
    model: str
    connection_id: str
    folded: str
    code: str
    detail: str
    returns: Moment | None
    returns_zone: str
    no_return: str
    alike: int


class PoolPages(msgspec.Struct, frozen=True):
    """How much of a pool is shown: so many lines of each of its two lists, and which page of either.

    Where it `is_brief`, what keeps a connection out for several models alike is one line.
    """

    size: int = 60
    page: int = 1
    left_page: int = 1
    is_brief: bool = False


WHOLE = PoolPages()


class PoolView(msgspec.Struct, frozen=True):
    """One pool as a page shows it; `call` is the request that gives the same answer.

    `leaf` and `left_leaf` are the pages shown of the candidates and of the lines on what is left out.
    """

    id: str
    call: str
    entries: tuple[EntryRow, ...]
    leaf: Leaf
    pair_count: int
    left_out: tuple[LeftOutRow, ...]
    left_leaf: Leaf
    left_out_count: int
    never_count: int
    counts: tuple[tuple[str, int], ...]
    valid_until: Moment | None
    empty_code: str
    empty_detail: str
    empty_returns: Moment | None

    @property
    def for_now_count(self) -> int:
        """Return how many of the left-out pairs are out for now only."""
        return self.left_out_count - self.never_count


class PoolRow(msgspec.Struct, frozen=True):
    """One id with its state in one line."""

    id: str
    pairs: int
    rung: str
    rung_index: int | None


def pool_rows(occupancy: Occupancy) -> tuple[PoolRow, ...]:
    """Return every id, how many pairs its pool holds and the rung it serves from."""
    indexes = {rung.word: rung.value for rung in Rung}
    return tuple(
        PoolRow(
            id=line.id,
            pairs=line.pairs,
            rung=line.first_rung or "empty",
            rung_index=indexes[line.first_rung] if line.first_rung else None,
        )
        for line in occupancy.pools
    )


def pool_view(
    *, pool: Pool, occupancy: Occupancy, options: PoolOptions, glance: Glance, pages: PoolPages = WHOLE
) -> PoolView:
    """Return a pool in words; the states beside its connections are those of the ladder at the same instant."""
    states = {(place.provider, place.connection_id, place.rung): STATES[place.state] for place in occupancy.places}
    excluded: list[Exclusion] = [] if isinstance(pool.excluded, msgspec.UnsetType) else pool.excluded
    folds = _folds(excluded, is_brief=pages.is_brief)
    budgets = {rung.rung: rung.budget for rung in occupancy.rungs if rung.budget}
    leaf = leaf_of(total=len(pool.candidates), page=pages.page, size=pages.size)
    left_leaf = leaf_of(total=len(folds), page=pages.left_page, size=pages.size)
    shown = enumerate(pool.candidates[leaf.part], start=leaf.first)
    return PoolView(
        id=pool.id,
        call=_call(pool.id, options),
        entries=tuple(_entry(number, entry, states) for number, entry in shown),
        leaf=leaf,
        pair_count=sum(len(_ids(entry)) for entry in pool.candidates),
        left_out=tuple(_left_out(fold, glance, budgets) for fold in folds[left_leaf.part]),
        left_leaf=left_leaf,
        left_out_count=len(excluded),
        never_count=sum(1 for exclusion in excluded if exclusion.family == "never"),
        counts=tuple(sorted(pool.excluded_counts.items(), key=lambda pair: (-pair[1], pair[0]))),
        valid_until=glance.until(pool.valid_until) if pool.valid_until else None,
        empty_code=pool.empty.code if pool.empty else "",
        empty_detail=pool.empty.detail if pool.empty else "",
        empty_returns=glance.until(pool.empty.returns_at) if pool.empty and pool.empty.returns_at else None,
    )


def _call(pool_id: str, options: PoolOptions) -> str:
    pairs = [("mixed_rungs", "merge")] if options.mixed_rungs.value == "merge" else []
    pairs += [("lowest_rung_only", "true")] if options.lowest_rung_only else []
    return f"GET /api/v1/pools/{pool_id}?{urlencode([*pairs, ('explain', 'true')])}"


def _ids(entry: Entry) -> tuple[str, ...]:
    return (entry.connection_id,) if entry.connection_id else entry.allowed_connection_ids or ()


def _entry(number: int, entry: Entry, states: dict[tuple[str, str, str], StateWord]) -> EntryRow:
    ids = _ids(entry)
    return EntryRow(
        number=number,
        rung=entry.rung,
        rung_index=entry.rung_index,
        provider=entry.provider,
        model=entry.model,
        may_bill=entry.may_bill_past_plan,
        survivors=tuple(
            Survivor(connection_id=each, state=_state_of(entry, each, states)) for each in ids[:SURVIVORS_SHOWN]
        ),
        survivor_count=len(ids),
    )


def _state_of(entry: Entry, connection_id: str, states: dict[tuple[str, str, str], StateWord]) -> StateWord:
    """Return the state of a survivor; in a merged entry it may stand on a higher rung than the entry's (P5)."""
    above = (rung.word for rung in Rung if rung.value >= entry.rung_index)
    known = (states.get((entry.provider, connection_id, word)) for word in above)
    return next((state for state in known if state is not None), UNKNOWN_STATE)


class _Fold(msgspec.Struct):
    """A pair left out, and how many more of its provider are told by the same line."""

    exclusion: Exclusion
    count: int = 1

    @property
    def place(self) -> tuple[bool, bool]:
        """Return where the line stands: what is out for now first, what concerns nobody's connection last."""
        return self.exclusion.family == "never", self.exclusion.code in FOLDED


def _folds(excluded: list[Exclusion], *, is_brief: bool) -> list[_Fold]:
    folds: list[_Fold] = []
    known: dict[tuple[object, ...], _Fold] = {}
    for exclusion in excluded:
        is_folded = exclusion.code in FOLDED
        key: tuple[object, ...] = (exclusion.code, exclusion.provider)
        key += () if is_folded else (exclusion.connection_id, exclusion.detail, exclusion.rung, exclusion.returns_at)
        if (is_folded or is_brief) and key in known:
            known[key].count += 1
        else:
            folds.append(_Fold(exclusion))
            known[key] = folds[-1]
    return sorted(folds, key=lambda fold: fold.place)


def _left_out(fold: _Fold, glance: Glance, budgets: Mapping[str, BudgetView]) -> LeftOutRow:
    exclusion = fold.exclusion
    is_never = exclusion.family == "never"
    budget = budgets.get(exclusion.rung or "")
    # The end of a budget's window is told in the budget's own zone (M3).
    is_of_budget = exclusion.code == Code.BUDGET_SPENT and budget and budget.window_end == exclusion.returns_at
    zone = budget.zone if budget and is_of_budget else ""
    told = glance.in_zone(zone) if zone else glance
    noun = "model" if exclusion.model else "connection"
    return LeftOutRow(
        is_never=is_never,
        provider=exclusion.provider,
        model=exclusion.model or "no model",
        connection_id=exclusion.connection_id or "no connection",
        folded=count_text(fold.count, noun, f"{noun}s") if exclusion.code in FOLDED else "",
        alike=0 if exclusion.code in FOLDED else fold.count - 1,
        code=exclusion.code,
        detail=exclusion.detail,
        returns=told.until(exclusion.returns_at) if exclusion.returns_at else None,
        returns_zone=zone,
        no_return="on a change" if is_never else "unknown",
    )
