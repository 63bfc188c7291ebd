"""Where the shared reference data (vectors, facts, a real OmniRoute file) lies, if it is there at all."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def _find() -> Path | None:
    named = os.environ.get("SHARED_DIR")
    places = [Path(named)] if named else []
    return next((place for place in [*places, ROOT.parent / "shared"] if place.is_dir()), None)


SHARED = _find()

needs_shared = pytest.mark.skipif(
    SHARED is None, reason="the shared reference data is not beside the repository; SHARED_DIR can name it"
)


def shared_path(relative: str) -> Path:
    """Return the path of a shared file, or skip the test that asks for it where it is absent."""
    if SHARED is None or not (SHARED / relative).exists():
        pytest.skip(f"the shared reference data has no {relative} here; SHARED_DIR can name its folder")
    return SHARED / relative
