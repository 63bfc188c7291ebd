from typing import Any

import pytest


@pytest.fixture
def act() -> dict[str, Any]:
    """The three arguments that every write takes."""
    from tests.billing_catalog.acting import ACTOR, NOW

    return {"actor": ACTOR, "reason": "because", "now": NOW}
