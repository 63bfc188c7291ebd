"""What the tests of faults share: an installation on SQLite, ended after each."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.omniroute_admin.faults.installation import Installation


@pytest.fixture
def on_sqlite(tmp_path: Path) -> Iterator[Installation]:
    """Return an installation on SQLite, prepared; no program of it runs yet."""
    installed = Installation(tmp_path, f"sqlite:///{tmp_path / 'state.sqlite3'}")
    try:
        installed.prepare()
        yield installed
    finally:
        installed.end()
