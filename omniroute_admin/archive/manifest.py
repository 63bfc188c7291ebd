"""What an archive says of itself: the last part that is written, the first that is read."""

from datetime import datetime

import msgspec

FORMAT = "omniroute_admin backup"
FORMAT_VERSION = 1
NAME = "manifest.json"


class Stamp(msgspec.Struct, frozen=True):
    """What every format's manifest says of itself, whatever else is in it."""

    format: str
    format_version: int
    product_version: str


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One table: its rows as JSON lines, each a list in the order of `columns`; `bytes` before compression."""

    table: str
    file: str
    columns: tuple[str, ...]
    rows: int
    bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where, when and by what an archive was made, and its parts. `migrations` are named `app.name`."""

    format: str
    format_version: int
    product_version: str
    made_at: datetime
    database: str
    revision: int
    migrations: tuple[str, ...]
    parts: tuple[Part, ...]

    @property
    def rows(self) -> int:
        """Return how many rows there are in all."""
        return sum(part.rows for part in self.parts)


def file_of(table: str) -> str:
    """Return the name of a table's part."""
    return f"data/{table}.jsonl"
