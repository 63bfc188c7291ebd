"""Who saved which setting last, from the one history (SPEC 3, SPEC 5, 3)."""

from collections.abc import Iterable

from ladder.models import RungBudget
from omniroute_admin.common.core.changes import CHANGED, HistoryEntry
from omniroute_admin.common.selectors.history import Asked, entries_of, find_entries

KINDS = ("settings", "budget", "thresholds")
"""The parts of the history that the tuning page is about."""

_LOOKED_BACK = 10
_THE_ROW = 1
_COLUMNS = {"amount": "amount_usd"}
"""Where a column is called otherwise than the end of the setting's name."""


def read_saves(*, limit: int) -> list[HistoryEntry]:
    """Return the last changes of any setting, the newest first."""
    return find_entries(asked=Asked(kinds=KINDS, act=CHANGED), limit=limit)


def read_last_saves(*, names: Iterable[str]) -> list[HistoryEntry]:
    """Return the last change of each of these settings, every change once, the newest first."""
    found: dict[tuple[str, int], HistoryEntry] = {}
    for kind, row, fields in _rows_of(names):
        wanted = set(fields)
        for entry in entries_of(kind=kind, rows=[row], limit=_LOOKED_BACK):
            changed = wanted & {change.field for change in entry.changes}
            # That a row was made is nobody's save: it is there from the start.
            if changed and entry.act == CHANGED:
                found[kind, entry.history_id] = entry
                wanted -= changed
    return sorted(found.values(), key=lambda entry: entry.at, reverse=True)


def _rows_of(names: Iterable[str]) -> list[tuple[str, int, set[str]]]:
    """Return the rows that hold these settings: kind, primary key, and columns."""
    budgets = dict(RungBudget.objects.values_list("rung", "pk"))
    rows: dict[tuple[str, int], set[str]] = {}
    for name in names:
        first, _, rest = name.partition("_")
        if first in budgets:
            rows.setdefault(("budget", budgets[first]), set()).add(_COLUMNS.get(rest, rest))
        elif first == "tier":
            rows.setdefault(("thresholds", _THE_ROW), set()).add(rest)
        else:
            rows.setdefault(("settings", _THE_ROW), set()).add(name)
    return [(kind, row, fields) for (kind, row), fields in rows.items()]
