"""Calling the catalogue's API, and reading what it refuses."""

import json
from collections.abc import Callable
from typing import Any

from django.test import Client

from omniroute_admin.common.services.keys import create_key
from tests.billing_catalog.acting import ACTOR, NOW

ROOT = "/api/v1/catalog"

Send = Callable[..., Any]


def client(*scopes: str) -> Client:
    _, secret = create_key(name="tool", scopes=list(scopes), expires_at=None, actor=ACTOR, reason="", now=NOW)
    return Client(headers={"authorization": f"Bearer {secret}"})


def sender(api: Client) -> Send:
    """Return a function that calls the API; a body goes as JSON."""

    def call(method: str, address: str, body: Any = None, **headers: str) -> Any:
        raw = "" if body is None else json.dumps(body)
        return getattr(api, method)(ROOT + address, raw, content_type="application/json", headers=headers)

    return call


def pointers(response: Any, status: int = 400) -> set[str]:
    assert response.status_code == status, response.content
    return {error["pointer"] for error in response.json()["errors"]}
