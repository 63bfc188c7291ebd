"""What the tests of signing in share: accounts with passwords, a provider, and its settings."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.omniroute_admin.sign_in.provider import CLIENT, SECRET, Provider, running_provider

PASSWORD = "correct-horse-battery-9"


@pytest.fixture
def account(db: None, django_user_model: Any) -> Any:
    """Return what makes an account with a password and roles."""
    from django.contrib.auth.models import Group

    def make(name: str = "mira", *roles: str, **values: Any) -> Any:
        made = django_user_model.objects.create_user(name, password=PASSWORD, **values)
        made.groups.set(Group.objects.filter(name__in=roles))
        return made

    return make


@pytest.fixture
def provider(settings: Any) -> Iterator[Provider]:
    """Yield a provider that this installation is set up for."""
    with running_provider() as found:
        settings.OIDC_ISSUER, settings.OIDC_CLIENT_ID, settings.OIDC_CLIENT_SECRET = found.issuer, CLIENT, SECRET
        settings.OIDC_NAME = "Example"
        yield found
