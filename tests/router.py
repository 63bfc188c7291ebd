"""A router that calls the API with a key."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from django.http import HttpResponse
from django.test import Client


class Router:
    """Calls the API as a router does: JSON and a key."""

    def __init__(self, secret: str) -> None:
        self.client = Client()
        self.headers = {"Authorization": f"Bearer {secret}"}

    def get(self, path: str, **headers: str) -> HttpResponse:
        return self.client.get(path, headers={**self.headers, **headers})  # type: ignore[return-value]

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> HttpResponse:
        call: Callable[..., HttpResponse] = getattr(self.client, method)
        return call(path, body, content_type="application/json", headers={**self.headers, **headers})

    def post(self, path: str, body: Any, **headers: str) -> HttpResponse:
        return self.send("post", path, body, **headers)


def make_router(*scopes: str) -> Router:
    """Return a router with a key of these scopes, of all where none is named."""
    # Imported here, since fixtures that need this are read before Django is ready.
    from omniroute_admin.common.history import Actor
    from omniroute_admin.common.scopes import SCOPES
    from omniroute_admin.common.services.keys import create_key

    _, secret = create_key(
        name="a router",
        scopes=list(scopes or SCOPES),
        expires_at=None,
        actor=Actor("tests"),
        reason="a test calls",
        now=datetime(2026, 1, 1, tzinfo=UTC),
    )
    return Router(secret)
