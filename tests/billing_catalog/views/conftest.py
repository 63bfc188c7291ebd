"""People signed in with a role, for the tests of the catalogue's pages."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client


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
