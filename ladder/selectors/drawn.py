"""What drew on a budget in a span, by when it happened (M4): always what the rows of the ledger add up to.

Adding up a month of them takes long, so a process remembers what it has added up, with the last row of the rung that
was there, and then adds only what came since. That is exact. Rows that draw on a rung's budget are never changed, and
are added under the lock of that budget: keys rise in the order in which rows become visible. So where that last row is
still there, all before it are, and what came since has a higher key; a database that was put back, or is seen as it was
earlier, does not have that row. What retention takes out of the ledger leaves sums: where those of the span are not
what they were, everything is added up again.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from enum import Enum, auto
from typing import Any

import msgspec
from django.db.models import Count, Q, QuerySet, Sum, Value

from ladder.core.memory import make_room
from ladder.core.money import Span
from ladder.core.spend.ledger import Spend
from ladder.core.values import MoneyKind, Rung
from ladder.mapping import rung_named
from ladder.models import LedgerSum, UsageEvent
from omniroute_admin.common.selectors.compiled import Compiled
from omniroute_admin.common.selectors.revision import is_in_view

KEPT_FROM = 1_000
"""From so many rows on a sum is remembered; fewer are added up as fast."""

NEW_AT_MOST = 2_000
"""Behind more rows that came since, everything is added up again: that reads the index alone."""


class Stand(Enum):
    """How the rows of a rung stand while several statements read them."""

    MOVING = auto()
    """Others may add some in between."""
    STILL = auto()
    """Nobody can: they are read in one view of the database, or under the lock of the budget."""
    WITH_MINE = auto()
    """Nobody can, and some are this transaction's own, which may be undone: nothing is remembered of them."""


_Row = tuple[Any, ...]


class _Drawn(msgspec.Struct, frozen=True):
    """What drew on a budget: by rows of events, and by the sums of old ones."""

    events: Spend = Spend()
    folded: Spend = Spend()

    @property
    def spend(self) -> Spend:
        return self.events.plus(self.folded)


class _Known(msgspec.Struct, frozen=True):
    """What was added up; `last` is the rung's last row then, as `_ROW` tells it."""

    last: _Row
    drawn: _Drawn


_known: dict[tuple[Rung, Span], _Known] = {}


def forget_drawn() -> None:
    """Forget what this process has added up."""
    _known.clear()


def read_drawn(*, spans: Mapping[Rung, Span], stand: Stand | None = None) -> dict[Rung, Spend]:
    """Add up what drew on each rung's budget in [start, end); a rung that nothing drew on may be left out.

    One query, and one for each rung of which something is remembered. Where `stand` is not said, the rows stand still
    inside a view of the database and move elsewhere.
    """
    stand = stand or (Stand.STILL if is_in_view() else Stand.MOVING)
    since = {} if stand is Stand.MOVING else dict(_read_since(spans))
    found = _add_up(spans, but_events_of=since)
    known = {rung: one for rung in since if (one := _renewed(*since[rung], spans[rung], found.get(rung, _Drawn())))}
    anew = {rung: one for rung, one in found.items() if rung not in since}
    anew |= _add_up({rung: spans[rung] for rung in since if rung not in known})
    if stand is Stand.STILL:
        _remember(spans, known | dict(_worth_keeping(anew)))
    return {rung: drawn.spend for rung, drawn in (anew | {rung: one.drawn for rung, one in known.items()}).items()}


def _remember(spans: Mapping[Rung, Span], found: Mapping[Rung, _Known]) -> None:
    for rung, one in found.items():
        make_room(_known)
        _known[rung, spans[rung]] = one


def _worth_keeping(found: Mapping[Rung, _Drawn]) -> Iterator[tuple[Rung, _Known]]:
    for rung, drawn in found.items():
        if drawn.events.rows >= KEPT_FROM:
            yield rung, _Known(_LAST.rows([rung.word])[0], drawn)


def _read_since(spans: Mapping[Rung, Span]) -> Iterator[tuple[Rung, tuple[_Known, list[_Row]]]]:
    """Yield what is known of these spans and the rows from its last one on, where that is still what it was."""
    for rung, span in spans.items():
        known = _known.get((rung, span))
        rows = [] if known is None else _SINCE.rows([known.last[0]], rung.word)
        if known is not None and rows and rows[0] == known.last and len(rows) <= NEW_AT_MOST:
            yield rung, (known, rows)


def _renewed(known: _Known, rows: list[_Row], span: Span, found: _Drawn) -> _Known | None:
    """Return what is known with the rows that came since; None where the sums of old rows are not what they were."""
    if found.folded != known.drawn.folded:
        return None
    return _Known(rows[-1], _Drawn(_together(known.drawn.events, rows[1:], span), found.folded))


def _together(events: Spend, rows: Iterable[_Row], span: Span) -> Spend:
    """Return a spend with those of these rows that are in the span."""
    for *_, at, usd, estimated in rows:
        if span[0] <= at < span[1]:
            events = events.plus(Spend(usd, 1, estimated))
    return events


def _add_up(spans: Mapping[Rung, Span], *, but_events_of: Collection[Rung] = ()) -> dict[Rung, _Drawn]:
    """Add up everything in these spans, of some rungs only the sums of old rows; one query, each part from an index."""
    found: dict[Rung, _Drawn] = {}
    instants = [instant for span in spans.values() for instant in span]
    is_whole = tuple(rung not in but_events_of for rung in spans)
    for word, is_folded, *sums in _PARTS.rows_at([rung.word for rung in spans], instants, is_whole):
        rung, part = rung_named(word), _spend_of(*sums)
        had = found.get(rung, _Drawn())
        found[rung] = _Drawn(had.events, part) if is_folded else _Drawn(part, had.folded)
    return found


def _spend_of(usd: Decimal | None, rows: int, estimated: int | None) -> Spend:
    return Spend(usd or Decimal(0), int(rows), int(estimated or 0))


_SUMS: Mapping[type[UsageEvent] | type[LedgerSum], Mapping[str, Any]] = {
    UsageEvent: {"usd": Sum("booked_usd"), "rows": Count("*"), "estimated": Sum("estimated_change")},
    LedgerSum: {"usd": Sum("booked_usd"), "rows": Sum("folded_rows"), "estimated": Sum("folded_estimates")},
}


def _parts_of(words: Sequence[str], instants: Sequence[datetime], is_whole: Sequence[bool]) -> QuerySet[Any, Any]:
    """Return the query of what drew on each rung's budget in its span: two instants for each word, start and end."""
    spans = zip(words, instants[::2], instants[1::2], is_whole, strict=True)
    parts = [
        _part(model, word, start, end)
        for word, start, end, events in spans
        for model in ((UsageEvent, LedgerSum) if events else (LedgerSum,))
    ]
    return parts[0].union(*parts[1:], all=True) if len(parts) > 1 else parts[0]


def _part(model: Any, word: str, start: datetime, end: datetime) -> QuerySet[Any, Any]:
    rows = model._default_manager.filter(_OF_BUDGET, rung=word, booked_at__gte=start, booked_at__lt=end).order_by()
    sums, is_folded = _SUMS[model], Value(int(model is LedgerSum))
    return rows.values("rung").annotate(is_folded=is_folded, **sums).values_list("rung", "is_folded", *sums)


def _since_of(keys: Sequence[int], word: str) -> QuerySet[Any, Any]:
    rows = UsageEvent.objects.filter(_OF_BUDGET, rung=word, pk__gte=keys[0]).order_by("pk")
    return rows.values_list(*_ROW)[: NEW_AT_MOST + 1]


def _last_of(words: Sequence[str]) -> QuerySet[Any, Any]:
    return UsageEvent.objects.filter(_OF_BUDGET, rung=words[0]).order_by("-pk").values_list(*_ROW)[:1]


_OF_BUDGET = Q(money_kind=MoneyKind.BUDGET.value)
_ROW = ("pk", "event_id", "received_at", "booked_at", "booked_usd", "estimated_change")
"""Enough to know a row again, and to add it up."""

# They stand on the way of every write that spends, and of every decision after one.
_PARTS, _SINCE, _LAST = Compiled(_parts_of), Compiled(_since_of), Compiled(_last_of)
