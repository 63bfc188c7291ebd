"""Cells of a CSV file that a spreadsheet takes for text, never for a formula, and that read back as they were."""

import csv
from collections.abc import Iterable

_MARK = "'"
_RISKY = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""What a spreadsheet may take for the beginning of a formula."""


def tamed_cell(text: str) -> str:
    """Return the text with a mark before it where a spreadsheet could run it; it need not read back."""
    return f"{_MARK}{text}" if text.startswith(_RISKY) else text


def safe_cell(text: str) -> str:
    """Return the text with a mark before it where a spreadsheet could run it, or where it begins with the mark."""
    return f"{_MARK}{text}" if text.startswith((*_RISKY, _MARK)) else text


def plain_cell(cell: str) -> str:
    """Return the text of a cell that `safe_cell` wrote; a cell that somebody else wrote stays as it is."""
    return cell[1:] if cell.startswith(_MARK) and cell[1:].startswith((*_RISKY, _MARK)) else cell


class _Echo:
    """A file that hands back what is written to it."""

    def write(self, line: str) -> str:
        """Return the line."""
        return line


_WRITER = csv.writer(_Echo())


def csv_line(cells: Iterable[str]) -> str:
    """Return one line of a CSV file, its end included."""
    line: str = _WRITER.writerow(cells)
    return line
