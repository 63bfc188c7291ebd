"""People signed in with a role, for the tests of the catalogue's pages."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import time_machine
from django.test import Client


@pytest.fixture(autouse=True)
def _fixed_day() -> Iterator[None]:
    """Let every test of a page happen on one day, at no midnight."""
    with time_machine.travel(datetime(2026, 8, 27, 8, 12, 40, tzinfo=UTC), tick=True):
        yield


@pytest.fixture
def as_role(db: None, django_user_model: Any) -> Callable[[str], Client]:
    """Return what signs somebody in with a role."""

    from django.contrib.auth.models import Group

    def sign_in(role: str, name: str = "") -> Client:
        user = django_user_model.objects.create_user(name or f"a-{role}")
        user.groups.add(Group.objects.get(name=role))
        client = Client()
        client.force_login(user)
        return client

    return sign_in


@pytest.fixture
def curator(as_role: Callable[..., Client]) -> Client:
    return as_role("curator", "mira")
