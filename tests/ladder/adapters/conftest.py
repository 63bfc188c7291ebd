from pathlib import Path

import pytest

from tests.ladder.adapters.omniroute_file import OmnirouteFile


@pytest.fixture
def omniroute(tmp_path: Path) -> OmnirouteFile:
    return OmnirouteFile(tmp_path / "storage.sqlite")
