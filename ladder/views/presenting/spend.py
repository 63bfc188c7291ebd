"""Money in words and columns: each rung beside its budget, lines of a breakdown, rows of the ledger (M1 to M8)."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal

import msgspec

from ladder.core.occupancy import BudgetView
from ladder.core.spend.columns import SpendTotals
from ladder.core.spend.ledger import Spend
from ladder.core.values import PAID_RUNGS, MoneyKind, Period
from ladder.selectors.spend import SpendLine
from ladder.selectors.spend_events import Correction, LedgerRow
from ladder.selectors.spend_windows import BudgetTerms, WindowSpend
from ladder.views.presenting.money import BudgetWords, budget_words
from ladder.views.spend_reading import RungSpend
from omniroute_admin.common.core.screen import Glance, iso_text
from omniroute_admin.common.core.words import clock_text, count_text, money_text

_NOTHING = Decimal(0)
_PERIOD_WORDS = {Period.DAILY: "a day", Period.WEEKLY: "a week", Period.MONTHLY: "a month"}
_MOST_CORRECTIONS = 5

KIND_WORDS: dict[str, str] = {
    MoneyKind.BUDGET: "budget",
    MoneyKind.OVERAGE: "overage",
    MoneyKind.PLAN: "plan value",
}
"""What kind of money an event is (M5)."""

COLUMNS = (
    ("settled_usd", "Settled"),
    ("estimated_usd", "Estimated"),
    ("held_usd", "Held"),
    ("overage_usd", "Overage"),
    ("plan_value_usd", "Plan value"),
)
"""The columns of money, which never mix (M5)."""


class Amount(msgspec.Struct, frozen=True):
    """An amount in words; nothing is told more quietly."""

    text: str
    is_nothing: bool


class RungRow(msgspec.Struct, frozen=True):
    """A rung with its budget in words, its money, and the window it is counted in where it is the present one."""

    rung: str
    rung_index: int
    budget: str
    budget_kind: str
    words: BudgetWords | None
    left: str
    amounts: tuple[Amount, ...]
    overage: bool
    events: str
    window: str


class LineRow(msgspec.Struct, frozen=True):
    """A line of the breakdown: what it stands for, its money, and the filters that lead to what is in it."""

    rung: str = ""
    rung_index: int | None = None
    provider: str = ""
    connection: tuple[str, str] | None = None
    label: str = ""
    is_deleted: bool = False
    model: str = ""
    window: str = ""
    amounts: tuple[Amount, ...] = ()
    events: str = ""


class EventRow(msgspec.Struct, frozen=True):
    """An event of the ledger: what counts of it now, and what corrections made of it."""

    event_id: str
    iso: str
    clock: str
    rung: str
    rung_index: int
    provider: str
    connection_id: str
    model: str
    tokens: str
    counts: str
    was: str
    kind: str
    is_overage: bool
    is_estimated: bool
    corrections: tuple[str, ...]


def amount(value: Decimal) -> Amount:
    """Return an amount as it is told."""
    return Amount(money_text(value), not value)


def amounts(totals: SpendTotals) -> tuple[Amount, ...]:
    """Return the amounts in the order of COLUMNS."""
    return tuple(amount(getattr(totals, name)) for name, _ in COLUMNS)


def events_words(totals: SpendTotals) -> str:
    """Return how many events there were, and how many of them are only estimated (M7)."""
    count = f"{totals.events:,}"
    return f"{count}, {totals.estimated_events:,} estimated" if totals.estimated_events else count


def terms_words(terms: BudgetTerms) -> str:
    """Return a budget in words: off, no limit, or the amount and how often (M1, M3)."""
    if terms.amount_usd is None:
        return "no limit"
    if terms.amount_usd == 0:
        return "off"
    return f"{money_text(terms.amount_usd)} {_PERIOD_WORDS[terms.period]}, {terms.zone}"


def rung_row(one: RungSpend, *, glance: Glance) -> RungRow:
    """Return a rung's line; a budget is of paid rungs only, and left of it only in its present window (M5)."""
    is_paid = one.rung in PAID_RUNGS
    words = _budget_words(one, glance) if is_paid and one.window is not None else None
    kind = "none" if not is_paid else {None: "unlimited", _NOTHING: "off"}.get(one.terms.amount_usd, "amount")
    return RungRow(
        rung=one.rung.word,
        rung_index=int(one.rung),
        budget=terms_words(one.terms) if is_paid else "draws on no budget",
        budget_kind=kind,
        words=words,
        left=words.left if words is not None and kind == "amount" else "",
        amounts=amounts(one.totals),
        overage=bool(one.totals.overage_usd),
        events=events_words(one.totals),
        window=""
        if one.window is None
        else span_words(one.window.counted_from, one.window.end, one.terms.zone, glance),
    )


def _budget_words(one: RungSpend, glance: Glance) -> BudgetWords:
    limit, totals = one.terms.amount_usd, one.totals
    left = None if limit is None else max(limit - totals.spent_usd - totals.held_usd, _NOTHING)
    known = Spend(totals.spent_usd, totals.events, totals.estimated_events).accounting
    window = one.window
    view = BudgetView(
        limit,
        totals.spent_usd,
        totals.held_usd,
        left,
        known,
        window.counted_from if window else None,
        window.end if window else None,
        one.terms.zone,
    )
    return budget_words(view, glance=glance)


def span_words(start: datetime, end: datetime, zone: str, glance: Glance) -> str:
    """Return a window in its own zone: `Mon 00:00 to Tue 00:00 UTC`."""
    there = glance.in_zone(zone)
    first, last = (clock_text(at=at, now=glance.now, zone=there.zone) for at in (start, end))
    return f"{first} to {last} {zone}"


def line_row(line: SpendLine) -> LineRow:
    """Return a line of the breakdown."""
    connection = line.connection
    return LineRow(
        rung=line.rung.word if line.rung is not None else "",
        rung_index=None if line.rung is None else int(line.rung),
        provider=line.provider or "",
        connection=None if connection is None else (connection.provider, connection.connection_id),
        label="" if connection is None else connection.label,
        is_deleted=connection is not None and connection.deleted_at is not None,
        model=line.model or "",
        amounts=amounts(line.totals),
        events=events_words(line.totals),
    )


def window_row(one: WindowSpend, *, zone: str, glance: Glance) -> LineRow:
    """Return a window of a rung as a line of the breakdown."""
    return LineRow(
        rung=one.rung.word,
        rung_index=int(one.rung),
        window=span_words(one.window.start, one.window.end, zone, glance),
        amounts=amounts(one.totals),
        events=events_words(one.totals),
    )


_INDEX = {word: number for number, word in enumerate(("subscription", "keyless", "free", "cheap", "premium"))}


def event_row(row: LedgerRow, corrections: Sequence[Correction], *, glance: Glance) -> EventRow:
    """Return an event with what its corrections made of it; what counts now is what the totals hold of it (M7)."""
    counts = row.booked_usd + sum((one.booked_usd for one in corrections), _NOTHING)
    estimated = row.estimated_change + sum(one.estimated_change for one in corrections)
    return EventRow(
        event_id=row.event_id,
        iso=iso_text(row.booked_at),
        clock=clock_text(at=row.booked_at, now=glance.now, zone=glance.zone, seconds=True),
        rung=row.rung,
        rung_index=_INDEX[row.rung],
        provider=row.provider,
        connection_id=row.connection_id,
        model=row.model,
        tokens=_tokens(row),
        counts=money_text(counts),
        was=money_text(row.booked_cost) if corrections else "",
        kind=KIND_WORDS[row.money_kind],
        is_overage=row.money_kind == MoneyKind.OVERAGE,
        is_estimated=bool(estimated),
        corrections=tuple(_correction_words(corrections)),
    )


def _tokens(row: LedgerRow) -> str:
    said = [(row.input_tokens, "in"), (row.output_tokens, "out"), (row.cached_input_tokens, "cached")]
    return ", ".join(f"{number:,} {word}" for number, word in said if number is not None)


def _correction_words(corrections: Sequence[Correction]) -> Iterable[str]:
    for one in corrections[-_MOST_CORRECTIONS:]:
        change = f"changes it by {money_text(one.booked_usd)}" if one.booked_usd else "changes nothing"
        yield f"{one.event_id}: {money_text(one.booked_cost)} in full, {change}"
    more = len(corrections) - _MOST_CORRECTIONS
    if more > 0:
        yield f"and {count_text(more, 'earlier correction', 'earlier corrections')}"
