from typing import Any

import pytest


@pytest.fixture
def act() -> dict[str, Any]:
    """The three arguments that every write takes."""
    from tests.billing_catalog.acting import ACTOR, NOW

    return {"actor": ACTOR, "reason": "because", "now": NOW}


@pytest.fixture
def send(db: None) -> Any:
    """Call the API with a key that may read and write the catalogue."""
    from tests.billing_catalog.calling import client, sender

    return sender(client("catalog:read", "catalog:write"))
