"""The catalogue as a file: CSV of one sort of rows, JSON of several; text in, rows of texts out (SPEC 5, 4).

Every value is a text here, as a form shows it; an empty one is null. What is wrong is told by place and field, all of
it at once.
"""

import csv
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import msgspec

from omniroute_admin.common.core.cells import csv_line, plain_cell, safe_cell
from omniroute_admin.common.core.numbers import decimal_text

Problem = tuple[str, str]
"""A field ("" is the whole row, or the whole file), and what is wrong."""


class Columns(msgspec.Struct, frozen=True):
    """The columns a sort of rows has: their names in order, and those a row is known by.

    `lists` hold lists, `truths` true or false; every other a text, a number or a date.
    """

    names: tuple[str, ...]
    identity: tuple[str, ...]
    lists: frozenset[str] = frozenset()
    truths: frozenset[str] = frozenset()


class SheetRow(msgspec.Struct, frozen=True):
    """One row: where it stands in its file, what it says, and what is wrong with it as it stands."""

    place: str
    texts: Mapping[str, str]
    problems: tuple[Problem, ...] = ()


class Sheet(msgspec.Struct, frozen=True):
    """The rows of one sort; `problems` are those of the file itself, and then there are no rows."""

    kind: str
    rows: tuple[SheetRow, ...] = ()
    problems: tuple[str, ...] = ()


def list_text(items: Sequence[str]) -> str:
    """Return a list as one text: parted by commas, as JSON where a comma or a blank edge would be lost."""
    plain = all(item == item.strip() and item and "," not in item and not item.startswith("[") for item in items)
    return ", ".join(items) if plain else json.dumps(list(items), ensure_ascii=False)


def list_of(text: str) -> list[str]:
    """Return the list that a text means.

    Raises:
        ValueError: it begins like JSON and is no list of texts.
    """
    if not text.strip().startswith("["):
        return [item.strip() for item in text.split(",") if item.strip()]
    items = json.loads(text)
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise ValueError("Give a list of texts.")
    return items


def csv_text(*, columns: Columns, rows: Iterable[Mapping[str, str]]) -> str:
    """Return rows as CSV with a heading; no cell of it can be taken for a formula."""
    lines = [columns.names, *([safe_cell(row[name]) for name in columns.names] for row in rows)]
    return "".join(map(csv_line, lines))


def read_csv(*, text: str, kind: str, columns: Columns) -> Sheet:
    """Return the rows of a CSV file with a heading; blank lines do not count."""
    # Only the line feed parts lines: the other separators that Python knows may stand in a cell.
    reader = csv.reader(re.findall(r"[^\n]*\n|[^\n]+", text), strict=True)
    try:
        heading = next(reader, [])
        names = [name.strip() for name in heading]
        if problems := _heading_problems(names, columns):
            return Sheet(kind, problems=problems)
        rows = tuple(_csv_row(cells, names, reader.line_num) for cells in reader if any(cells))
    except csv.Error as error:
        return Sheet(kind, problems=(f"line {reader.line_num}: this is no CSV ({error}).",))
    return _checked(Sheet(kind, rows), columns)


def _heading_problems(names: Sequence[str], columns: Columns) -> tuple[str, ...]:
    known = ", ".join(columns.names)
    if not any(names):
        return (f"The file is empty. Its first line names the columns: {known}.",)
    found = [f"There is no column {name!r}; the columns are {known}." for name in names if name not in columns.names]
    found += [f"The column {name!r} stands there twice." for name in dict.fromkeys(names) if names.count(name) > 1]
    missing = [name for name in columns.identity if name not in names]
    found += [f"The column {name!r} is missing: a row is known by it." for name in missing]
    return tuple(found)


def _csv_row(cells: Sequence[str], names: Sequence[str], line: int) -> SheetRow:
    problem = () if len(cells) == len(names) else (("", f"{len(cells)} cells stand under {len(names)} columns."),)
    texts = {name: plain_cell(cell) for name, cell in zip(names, cells, strict=False)}
    return SheetRow(f"line {line}", texts, problem)


def json_text(*, sheets: Mapping[str, Iterable[Mapping[str, str]]], columns: Mapping[str, Columns]) -> str:
    """Return rows of several sorts as one JSON document; an empty text is null."""
    document = {
        kind: [{name: _json_value(row[name], name, columns[kind]) for name in row} for row in rows]
        for kind, rows in sheets.items()
    }
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def _json_value(text: str, name: str, columns: Columns) -> Any:
    if name in columns.lists:
        return list_of(text)
    return text == "true" if name in columns.truths else (text or None)


def read_json(*, text: str, columns: Mapping[str, Columns]) -> list[Sheet]:
    """Return the rows of a JSON document: an object with a list of rows under the name of each sort."""
    try:
        document = json.loads(
            text, object_pairs_hook=_object, parse_float=Decimal, parse_int=Decimal, parse_constant=_constant
        )
    except (ValueError, RecursionError) as error:
        return [Sheet("", problems=(f"This is no JSON: {str(error)[:200]}.",))]
    if not isinstance(document, dict):
        return [Sheet("", problems=(f"Give an object with {', '.join(columns)}.",))]
    return [_json_sheet(kind, rows, columns) for kind, rows in document.items()] or [
        Sheet("", problems=(f"The file holds nothing. Give an object with {', '.join(columns)}.",))
    ]


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice!r} stands twice in one object")
    return found


def _constant(text: str) -> Any:
    raise ValueError(f"{text} is no number of JSON")


def _json_sheet(kind: str, rows: Any, columns: Mapping[str, Columns]) -> Sheet:
    if kind not in columns:
        return Sheet(kind, problems=(f"There is no sort of rows {kind!r}; there are {', '.join(columns)}.",))
    if not isinstance(rows, list):
        return Sheet(kind, problems=(f"{kind}: give a list of rows.",))
    read = tuple(_json_row(row, f"{kind} {place}", columns[kind]) for place, row in enumerate(rows, start=1))
    return _checked(Sheet(kind, read), columns[kind])


def _json_row(row: Any, place: str, columns: Columns) -> SheetRow:
    if not isinstance(row, dict):
        return SheetRow(place, {}, (("", "A row is an object."),))
    problems = [(name, f"There is no such field; there are {', '.join(columns.names)}.") for name in row
                if name not in columns.names]  # fmt: skip
    texts = {}
    for name in columns.names:
        if name in row:
            try:
                texts[name] = _text_of(row[name], is_list=name in columns.lists)
            except ValueError as error:
                problems.append((name, str(error)))
    return SheetRow(place, texts, tuple(problems))


def _text_of(value: Any, *, is_list: bool) -> str:
    if is_list and isinstance(value, list):
        if not all(isinstance(item, str) for item in value):
            raise ValueError("Give a list of texts.")
        return list_text(value)
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return _number_text(value)
    raise ValueError("Give a text, a number, true, false or null.")


def _number_text(value: Decimal) -> str:
    longest = 40
    return str(value) if abs(int(value.as_tuple().exponent)) > longest else decimal_text(value)


def _checked(sheet: Sheet, columns: Columns) -> Sheet:
    """Return the sheet with its rows that miss what they are known by marked."""
    return msgspec.structs.replace(sheet, rows=tuple(_with_identity(row, columns) for row in sheet.rows))


def _with_identity(row: SheetRow, columns: Columns) -> SheetRow:
    told = {name for name, _ in row.problems}
    missing = [name for name in columns.identity if name not in row.texts and name not in told and "" not in told]
    found = tuple((name, "Left out: a row is known by it.") for name in missing)
    return msgspec.structs.replace(row, problems=(*row.problems, *found))
