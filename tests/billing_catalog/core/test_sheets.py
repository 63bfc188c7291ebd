"""The catalogue as a file (SPEC 5, 4: import and export), without a database."""

import csv
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing_catalog.core.sheets import Columns, csv_text, json_text, list_of, list_text, read_csv, read_json
from omniroute_admin.common.core.cells import plain_cell, safe_cell
from tests.ladder.core.strategies import PROPERTY

COLUMNS = Columns(("provider", "reason", "tags", "truth"), ("provider",), frozenset({"tags"}), frozenset({"truth"}))
RISKY = ("=", "+", "-", "@", "\t", "\r", "\n")
texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=30) | st.sampled_from(
    ["=1+1", "+49", "-2", "@SUM(A1)", "'quoted", "''", "'=x", 'a "b", c', "two\r\nlines", "中文", "עברית", "\t", "'"]
)
rows = st.lists(
    st.fixed_dictionaries(
        {
            "provider": texts.filter(bool),
            "reason": texts,
            "tags": st.lists(texts.filter(lambda text: bool(text.strip())), max_size=3).map(list_text),
            "truth": st.sampled_from(["true", "false"]),
        }
    ),
    max_size=4,
)


@PROPERTY
@given(texts)
def test_a_cell_reads_back_as_it_was(text: str) -> None:
    assert plain_cell(safe_cell(text)) == text


@PROPERTY
@given(texts)
def test_no_cell_begins_like_a_formula(text: str) -> None:
    assert not safe_cell(text).startswith(RISKY)


def test_a_cell_that_somebody_else_wrote_with_an_apostrophe_stays() -> None:
    assert plain_cell("'tis") == "'tis"


@PROPERTY
@given(rows)
def test_what_is_written_as_csv_reads_back_the_same(written: list[dict[str, str]]) -> None:
    sheet = read_csv(text=csv_text(columns=COLUMNS, rows=written), kind="x", columns=COLUMNS)
    assert sheet.problems == ()
    assert [dict(row.texts) for row in sheet.rows] == written
    assert all(row.problems == () for row in sheet.rows)


@PROPERTY
@given(rows)
def test_no_cell_of_a_csv_file_can_run(written: list[dict[str, str]]) -> None:
    text = csv_text(columns=COLUMNS, rows=written)
    cells = [cell for row in csv.reader(text.splitlines(keepends=True)) for cell in row]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "@"))]


@PROPERTY
@given(rows)
def test_what_is_written_as_json_reads_back_the_same(written: list[dict[str, str]]) -> None:
    text = json_text(sheets={"x": written}, columns={"x": COLUMNS})
    [sheet] = read_json(text=text, columns={"x": COLUMNS})
    assert [dict(row.texts) for row in sheet.rows] == written


@PROPERTY
@given(st.lists(texts.filter(lambda text: bool(text.strip())), max_size=4))
def test_a_list_reads_back_from_its_text(items: list[str]) -> None:
    assert list_of(list_text(items)) == items


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "The file is empty"),
        ("\n\n", "The file is empty"),
        ("provider,colour,shape\na,b,c\n", "no column 'colour'"),
        ("provider,colour,shape\na,b,c\n", "no column 'shape'"),
        ("provider,provider\na,b\n", "stands there twice"),
        ("reason\na\n", "'provider' is missing"),
        ('provider,reason\nx,"never closed\n', "no CSV"),
    ],
)
def test_a_csv_file_that_is_none_is_refused_in_words(text: str, words: str) -> None:
    sheet = read_csv(text=text, kind="x", columns=COLUMNS)
    assert sheet.rows == ()
    assert any(words in problem for problem in sheet.problems), sheet.problems


def test_a_row_with_too_many_cells_is_told_by_its_line() -> None:
    sheet = read_csv(text='provider,reason\na,"two\nlines"\nb,c,d\n', kind="x", columns=COLUMNS)
    assert [(row.place, row.problems) for row in sheet.rows] == [
        ("line 3", ()),
        ("line 4", (("", "3 cells stand under 2 columns."),)),
    ]


def test_windows_line_ends_and_blank_lines_do_not_count() -> None:
    sheet = read_csv(text="provider,reason\r\n\r\na,b\r\n,\r\n", kind="x", columns=COLUMNS)
    assert [dict(row.texts) for row in sheet.rows] == [{"provider": "a", "reason": "b"}]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nope", "This is no JSON"),
        ("[]", "Give an object"),
        ("{}", "holds nothing"),
        ('{"x": 1}', "give a list of rows"),
        ('{"y": []}', "no sort of rows 'y'"),
        ('{"x": [{"provider": NaN}]}', "NaN"),
        ('{"x": [], "x": []}', "stands twice"),
        ("[" * 100_000, "This is no JSON"),
    ],
)
def test_a_json_file_that_is_none_is_refused_in_words(text: str, words: str) -> None:
    sheets = read_json(text=text, columns={"x": COLUMNS})
    assert any(words in problem for sheet in sheets for problem in sheet.problems), sheets


def test_every_bad_field_of_a_json_row_is_told() -> None:
    row = {"provider": {"a": 1}, "colour": "red", "tags": [1], "reason": 2.50, "truth": True}
    [sheet] = read_json(text=json.dumps({"x": [row, 3, {"reason": "r"}]}), columns={"x": COLUMNS})
    assert [(one.place, {name for name, _ in one.problems}) for one in sheet.rows] == [
        ("x 1", {"colour", "provider", "tags"}),
        ("x 2", {""}),
        ("x 3", {"provider"}),
    ]
    assert dict(sheet.rows[0].texts) == {"reason": "2.5", "truth": "true"}
