"""Spend as CSV: the breakdown and the rows of the ledger, streamed, exact to the last place (SPEC 5, 5)."""

from collections.abc import Iterable, Iterator
from decimal import Decimal

from ladder.core.spend.columns import SpendTotals
from ladder.selectors.spend import SpendLine
from ladder.selectors.spend_events import LedgerRow
from ladder.selectors.spend_windows import WindowSpend
from ladder.views.presenting.spend import KIND_WORDS
from omniroute_admin.common.core.cells import csv_line, safe_cell
from omniroute_admin.common.core.numbers import usd_text
from omniroute_admin.common.core.screen import iso_text

_MONEY = (
    "settled_usd",
    "estimated_usd",
    "held_usd",
    "overage_usd",
    "plan_value_usd",
    "events",
    "estimated_events",
)
LINE_COLUMNS = ("rung", "provider", "connection_id", "model", *_MONEY)
WINDOW_COLUMNS = ("rung", "window_start", "window_end", *_MONEY)
EVENT_COLUMNS = (
    "event_id",
    "occurred_at",
    "booked_at",
    "received_at",
    "rung",
    "provider",
    "connection_id",
    "model",
    "input_tokens",
    "output_tokens",
    "cached_input_tokens",
    "reported_cost_usd",
    "full_cost_usd",
    "adds_usd",
    "money",
    "is_estimated",
    "corrects_event_id",
    "hold_id",
    "sum_of_events",
)
"""Of a row `full_cost_usd` is what it claims, `adds_usd` what it adds to the totals: their sum is the truth.

A row that stands for old events says how many (`sum_of_events`), has no id, and stands at the first instant of its
quarter of an hour."""


def lines_file(lines: Iterable[SpendLine]) -> Iterator[str]:
    """Yield a breakdown as CSV."""
    for line in lines:
        where = line.connection
        provider = line.provider or (where.provider if where else "")
        texts = [line.rung.word if line.rung is not None else "", provider, where.connection_id if where else ""]
        yield _line([*texts, line.model or ""], _numbers(line.totals))


def windows_file(lines: Iterable[WindowSpend]) -> Iterator[str]:
    """Yield windows as CSV."""
    for one in lines:
        yield _line([one.rung.word, iso_text(one.window.start), iso_text(one.window.end)], _numbers(one.totals))


def events_file(rows: Iterable[LedgerRow]) -> Iterator[str]:
    """Yield rows of the ledger as CSV, events and corrections."""
    for row in rows:
        instants = [iso_text(at) if at else "" for at in (row.occurred_at, row.booked_at, row.received_at)]
        tokens = [_whole(each) for each in (row.input_tokens, row.output_tokens, row.cached_input_tokens)]
        money = [_money(each) for each in (row.cost_usd, row.booked_cost, row.booked_usd)]
        texts = [row.event_id, *instants, row.rung, row.provider, row.connection_id, row.model]
        kind = [KIND_WORDS[row.money_kind], "yes" if row.is_estimated else "no"]
        last = [row.corrects_event_id, row.hold_id, str(row.sum_of) if row.sum_of else ""]
        yield _line(texts, [*tokens, *money, *kind], last)


def head(columns: Iterable[str]) -> str:
    """Return the first line of a file."""
    return _line(list(columns))


def _numbers(totals: SpendTotals) -> list[str]:
    values = [getattr(totals, name) for name in _MONEY]
    return [_money(each) if isinstance(each, Decimal) else str(each) for each in values]


def _money(value: Decimal | None) -> str:
    return "" if value is None else usd_text(value)


def _whole(value: int | None) -> str:
    return "" if value is None else str(value)


def _line(texts: list[str], numbers: Iterable[str] = (), more_texts: Iterable[str] = ()) -> str:
    """Return a line; only texts can be taken for a formula, and a number stays a number, a negative one too."""
    return csv_line([*map(safe_cell, texts), *numbers, *map(safe_cell, more_texts)])
