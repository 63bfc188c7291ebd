"""The history as a file: every change that the filters leave, streamed, however many (SPEC 5, 7)."""

from collections.abc import Iterator

import msgspec

from omniroute_admin.common.core.cells import csv_line, tamed_cell
from omniroute_admin.common.core.changes import HistoryEntry
from omniroute_admin.common.core.screen import iso_text
from omniroute_admin.common.selectors.history import Asked, entries_at, find_places

COLUMNS = ("at", "kind", "version", "row", "what", "act", "did", "who", "reason", "field", "old", "new")
_AT_ONCE = 500


def csv_lines(asked: Asked) -> Iterator[str]:
    """Yield a CSV file: one line per changed field, and one for a change without any."""
    yield csv_line(COLUMNS)
    for entry in _all(asked):
        for cells in _rows(entry):
            yield csv_line(map(tamed_cell, cells))


def json_lines(asked: Asked) -> Iterator[bytes]:
    """Yield a JSON document: an object with the list `entries`, one line for each change."""
    yield b'{"entries": ['
    mark = b"\n"
    for entry in _all(asked):
        yield mark + msgspec.json.encode(_document(entry))
        mark = b",\n"
    yield b"\n]}\n"


def _all(asked: Asked) -> Iterator[HistoryEntry]:
    places = find_places(asked=asked)
    for start in range(0, len(places), _AT_ONCE):
        yield from entries_at(places=places[start : start + _AT_ONCE])


def _rows(entry: HistoryEntry) -> Iterator[list[str]]:
    said = [entry.what, entry.act, entry.did, entry.who, entry.reason]
    start = [iso_text(entry.at), entry.kind, str(entry.history_id), str(entry.row), *said]
    for change in entry.changes:
        yield [*start, change.field, change.old, change.new]
    if not entry.changes:
        yield [*start, "", "", ""]


def _document(entry: HistoryEntry) -> dict[str, object]:
    changes = [{"field": one.field, "label": one.label, "old": one.old, "new": one.new} for one in entry.changes]
    return {
        "at": iso_text(entry.at),
        "kind": entry.kind,
        "version": entry.history_id,
        "row": entry.row,
        "what": entry.what,
        "act": entry.act,
        "did": entry.did,
        "who": entry.who,
        "reason": entry.reason,
        "changes": changes,
    }
