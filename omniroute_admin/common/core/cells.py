"""Cells of a CSV file that a spreadsheet takes for text, never for a formula, and that read back as they were."""

_MARK = "'"
_RISKY = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""What a spreadsheet may take for the beginning of a formula."""


def safe_cell(text: str) -> str:
    """Return the text with a mark before it where a spreadsheet could run it, or where it begins with the mark."""
    return f"{_MARK}{text}" if text.startswith((*_RISKY, _MARK)) else text


def plain_cell(cell: str) -> str:
    """Return the text of a cell that `safe_cell` wrote; a cell that somebody else wrote stays as it is."""
    return cell[1:] if cell.startswith(_MARK) and cell[1:].startswith((*_RISKY, _MARK)) else cell
