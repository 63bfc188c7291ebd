import logging
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest

from tests.ladder.adapters.omniroute_file import OmnirouteFile


@pytest.fixture
def omniroute(tmp_path: Path) -> OmnirouteFile:
    return OmnirouteFile(tmp_path / "storage.sqlite")


@pytest.fixture
def our_log() -> Iterator[StringIO]:
    """Yield what our own logs would hold at their most talkative."""
    root, text = logging.getLogger(), StringIO()
    handler, level = logging.StreamHandler(text), root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        yield text
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
