"""What the tests of the lowest layer share."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
import time_machine


@pytest.fixture
def time_machine_at() -> Callable[[datetime], Any]:
    """Return what stops the clock at an instant, as a context manager."""
    return lambda instant: time_machine.travel(instant, tick=False)
