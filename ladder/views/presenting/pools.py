"""Pools in words: the ids in one line each, and one pool as a router gets it (SPEC 4, 5)."""

from urllib.parse import urlencode

import msgspec

from ladder.core.occupancy import Occupancy
from ladder.core.values import Entry, Exclusion, Pool, PoolOptions, Rung
from ladder.views.presenting.values import STATES
from omniroute_admin.common.core.screen import Glance, Moment, StateWord

ENTRIES_SHOWN = 100
"""So many candidates are listed; a router's whole list of thousands is the API's to give."""

LEFT_OUT_SHOWN = 100
"""So many left-out pairs are listed at once; the rest is one click away."""

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
    """One pair left out."""

    is_never: bool
    provider: str
    model: str
    connection_id: str
    code: str
    detail: str
    returns: Moment | None
    no_return: str


class PoolView(msgspec.Struct, frozen=True):
    """One pool as a page shows it; `call` is the request that gives the same answer."""

    id: str
    call: str
    entries: tuple[EntryRow, ...]
    entry_count: int
    pair_count: int
    left_out: tuple[LeftOutRow, ...]
    left_out_count: int
    never_count: int
    counts: tuple[tuple[str, int], ...]
    valid_until: Moment | None
    empty_code: str
    empty_detail: str
    empty_returns: Moment | None

    @property
    def entries_more(self) -> int:
        """Return how many candidates are not listed here."""
        return self.entry_count - len(self.entries)

    @property
    def for_now_count(self) -> int:
        """Return how many of the left-out pairs are out for now only."""
        return self.left_out_count - self.never_count

    @property
    def left_out_more(self) -> int:
        """Return how many left-out pairs are not listed here."""
        return self.left_out_count - len(self.left_out)


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


def pool_view(*, pool: Pool, occupancy: Occupancy, options: PoolOptions, glance: Glance) -> PoolView:
    """Return a pool in words; the states beside its connections are those of the ladder at the same instant."""
    states = {(place.provider, place.connection_id, place.rung): STATES[place.state] for place in occupancy.places}
    excluded: list[Exclusion] = [] if isinstance(pool.excluded, msgspec.UnsetType) else pool.excluded
    shown = pool.candidates[:ENTRIES_SHOWN]
    entries = tuple(_entry(number, entry, states) for number, entry in enumerate(shown, start=1))
    return PoolView(
        id=pool.id,
        call=_call(pool.id, options),
        entries=entries,
        entry_count=len(pool.candidates),
        pair_count=sum(len(_ids(entry)) for entry in pool.candidates),
        left_out=tuple(_left_out(exclusion, glance) for exclusion in excluded[:LEFT_OUT_SHOWN]),
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


def _left_out(exclusion: Exclusion, glance: Glance) -> LeftOutRow:
    is_never = exclusion.family == "never"
    return LeftOutRow(
        is_never=is_never,
        provider=exclusion.provider,
        model=exclusion.model or "no model",
        connection_id=exclusion.connection_id or "no connection",
        code=exclusion.code,
        detail=exclusion.detail,
        returns=glance.until(exclusion.returns_at) if exclusion.returns_at else None,
        no_return="on a change" if is_never else "unknown",
    )
