"""A router that calls the API with a key."""

import pytest

from tests.router import Router, make_router


@pytest.fixture
def router(db: None) -> Router:
    return make_router()
