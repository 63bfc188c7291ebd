"""SPEC 4: every call of the API, for every scope alone, every scope but its own, every role, and everybody without.

How to add a route: one line in CALLS, from its address in the URL configuration to an example of it and to the scope
that each of its methods needs; or, where nobody has to say who they are, one in OPEN. A route without a line fails
`test_every_route_has_a_line`, a method that is not in its line `test_a_call_takes_the_methods_of_its_line_alone`. The
pages have their table in test_who_may.py.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import get_resolver

from omniroute_admin.common.core.roles import ROLES
from omniroute_admin.common.history import Actor
from omniroute_admin.common.models import ApiKey
from omniroute_admin.common.scopes import SCOPES
from omniroute_admin.common.selectors.revision import current_revision
from omniroute_admin.common.services.key_rotation import rotate_key
from omniroute_admin.common.services.keys import create_key, revoke_key
from tests.factories import (
    BillingEntryFactory,
    ConnectionFactory,
    FreeProviderFactory,
    ModelPriceFactory,
    PriceSourceFactory,
    ProviderAliasFactory,
    QuotaWindowFactory,
    TierOverrideFactory,
)
from tests.omniroute_admin.test_who_may import ELSEWHERE, NOBODY_YET

pytestmark = pytest.mark.django_db

CATALOG = {"GET": "catalog:read", "POST": "catalog:write"}
CATALOG_ROW = {"GET": "catalog:read", "PUT": "catalog:write", "PATCH": "catalog:write", "DELETE": "catalog:write"}
TELEMETRY = {"POST": "telemetry:write"}


class Call(NamedTuple):
    """An address that is there, and the scope that each method needs."""

    address: str
    needs: dict[str, str]


CALLS: dict[str, Call] = {
    "api/v1/pools": Call("/api/v1/pools", {"GET": "pools:read"}),
    "api/v1/pools/<path:pool_id>": Call("/api/v1/pools/auto/thrifty", {"GET": "pools:read", "POST": "pools:read"}),
    "api/v1/evaluate": Call("/api/v1/evaluate", {"POST": "pools:read"}),
    "api/v1/occupancy": Call("/api/v1/occupancy", {"GET": "pools:read"}),
    "v1/models": Call("/v1/models", {"GET": "pools:read"}),
    "metrics": Call("/metrics", {"GET": "metrics:read"}),
    "api/v1/connections": Call("/api/v1/connections", {"GET": "connections:read", "POST": "connections:write"}),
    "api/v1/connections/<str:connection_id>": Call(
        "/api/v1/connections/c1",
        {
            "GET": "connections:read",
            "PUT": "connections:write",
            "PATCH": "connections:write",
            "DELETE": "connections:write",
        },
    ),
    "api/v1/connections/<str:connection_id>/cooldown": Call(
        "/api/v1/connections/c1/cooldown", {"DELETE": "connections:write"}
    ),
    "api/v1/connections/<str:connection_id>/windows": Call(
        "/api/v1/connections/c1/windows", {"GET": "connections:read"}
    ),
    "api/v1/connections/<str:connection_id>/windows/<path:window>": Call(
        "/api/v1/connections/c1/windows/5h", {"GET": "connections:read", "PATCH": "connections:write"}
    ),
    "api/v1/connections/<str:connection_id>/mark-exhausted": Call(
        "/api/v1/connections/c1/mark-exhausted", {"POST": "connections:write"}
    ),
    "api/v1/connections/<str:connection_id>/explain": Call(
        "/api/v1/connections/c1/explain", {"GET": "connections:read"}
    ),
    "api/v1/catalog/billing": Call("/api/v1/catalog/billing", CATALOG),
    "api/v1/catalog/billing/<int:pk>": Call("/api/v1/catalog/billing/{entry}", CATALOG_ROW),
    "api/v1/catalog/prices": Call("/api/v1/catalog/prices", CATALOG),
    "api/v1/catalog/prices/<int:pk>": Call("/api/v1/catalog/prices/{price}", CATALOG_ROW),
    "api/v1/catalog/tier-overrides": Call("/api/v1/catalog/tier-overrides", CATALOG),
    "api/v1/catalog/tier-overrides/<int:pk>": Call("/api/v1/catalog/tier-overrides/{override}", CATALOG_ROW),
    "api/v1/catalog/free-providers": Call("/api/v1/catalog/free-providers", CATALOG),
    "api/v1/catalog/free-providers/<str:provider>": Call("/api/v1/catalog/free-providers/opencode", CATALOG_ROW),
    "api/v1/catalog/aliases": Call("/api/v1/catalog/aliases", CATALOG),
    "api/v1/catalog/aliases/<str:alias>": Call("/api/v1/catalog/aliases/klaude", CATALOG_ROW),
    "api/v1/catalog/price-sources": Call("/api/v1/catalog/price-sources", CATALOG),
    "api/v1/catalog/price-sources/<str:provider>": Call("/api/v1/catalog/price-sources/acme", CATALOG_ROW),
    "api/v1/settings": Call("/api/v1/settings", {"GET": "settings:read", "PATCH": "settings:write"}),
    "api/v1/settings/omniroute.json": Call(
        "/api/v1/settings/omniroute.json", {"GET": "settings:read", "PUT": "settings:write"}
    ),
    "api/v1/settings/budgets/<str:rung>/reset": Call(
        "/api/v1/settings/budgets/cheap/reset", {"POST": "settings:write"}
    ),
    "api/v1/telemetry/readings": Call("/api/v1/telemetry/readings", TELEMETRY),
    "api/v1/telemetry/rate-limits": Call("/api/v1/telemetry/rate-limits", TELEMETRY),
    "api/v1/telemetry/breakers": Call("/api/v1/telemetry/breakers", TELEMETRY),
    "api/v1/telemetry/usage": Call("/api/v1/telemetry/usage", TELEMETRY),
    "api/v1/holds": Call("/api/v1/holds", TELEMETRY),
    "api/v1/holds/<path:hold_id>": Call("/api/v1/holds/h1", {"DELETE": "telemetry:write"}),
}

OPEN = {"healthz", "readyz", "api/schema/", "api/docs/"}
"""Addresses that ask nobody who they are."""

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
NOW = datetime(2026, 8, 22, 12, tzinfo=UTC)
BY: dict[str, Any] = {"actor": Actor(name="t"), "reason": "", "now": NOW}
EACH = [(route, method, scope) for route, call in CALLS.items() for method, scope in call.needs.items()]

Ask = Callable[..., Any]


def key(*scopes: str, **given: Any) -> tuple[ApiKey, str]:
    return create_key(**({"name": "k", "scopes": scopes, "expires_at": None} | BY | given))


@pytest.fixture
def there() -> dict[str, int]:
    """Store what the addresses name, and return their numbers."""
    ConnectionFactory(connection_id="c1", provider="claude")
    QuotaWindowFactory(connection__connection_id="c9", window="5h")
    FreeProviderFactory(provider="opencode")
    ProviderAliasFactory(alias="klaude", provider="claude")
    PriceSourceFactory(provider="acme")
    return {
        "entry": BillingEntryFactory(provider="claude").pk,
        "price": ModelPriceFactory(provider="openai", model="gpt-5").pk,
        "override": TierOverrideFactory(provider="acme").pk,
    }


@pytest.fixture
def ask(client: Client, there: dict[str, int]) -> Ask:
    """Return what calls a route, by a key or by the session of the client."""

    def call(route: str, method: str, secret: str | None = None) -> Any:
        address = CALLS[route].address.format(**there)
        headers = {} if secret is None else {"authorization": f"Bearer {secret}"}
        body = "" if method == "GET" else "{}"
        return client.generic(method, address, body, content_type="application/json", headers=headers)

    return call


def routes() -> Iterator[str]:
    """Yield the address of every route that is no page."""

    def walk(patterns: list[Any], start: str) -> Iterator[str]:
        for one in patterns:
            address = start + str(one.pattern)
            if hasattr(one, "url_patterns"):
                yield from walk(one.url_patterns, address)
            elif address.startswith(ELSEWHERE) and not address.startswith("admin/"):
                yield address

    yield from walk(get_resolver().url_patterns, "")


def assert_denied(response: Any, status: int, about: Any) -> None:
    assert response.status_code == status, (about, response.content)
    code = {401: "unauthenticated", 403: "scope_lacking"}[status]
    assert response.json()["code"] == code, about
    assert ("WWW-Authenticate" in response) is (status == 401), about


def assert_let_in(response: Any, about: Any) -> None:
    assert response.status_code not in {401, 403, 405, 429}, (about, response.content)
    assert response.status_code < 500, (about, response.content)


def test_every_route_has_a_line() -> None:
    assert sorted(set(routes())) == sorted([*CALLS, *OPEN])


def test_every_scope_opens_something() -> None:
    assert {scope for _, _, scope in EACH} == set(SCOPES)


def test_a_call_takes_the_methods_of_its_line_alone(ask: Ask) -> None:
    _, secret = key(*SCOPES)
    taken = {route: [method for method in METHODS if ask(route, method, secret).status_code != 405] for route in CALLS}
    assert taken == {route: [one for one in METHODS if one in call.needs] for route, call in CALLS.items()}


@pytest.mark.parametrize("scope", SCOPES)
def test_a_key_of_one_scope_opens_what_names_it_and_nothing_else(ask: Ask, scope: str) -> None:
    _, secret = key(scope)
    before = current_revision()
    for route, method, needed in EACH:
        if needed != scope:
            assert_denied(ask(route, method, secret), 403, (route, method, scope))
    assert current_revision() == before
    for route, method, needed in EACH:
        if needed == scope:
            assert_let_in(ask(route, method, secret), (route, method, scope))


def test_a_key_of_every_scope_but_the_needed_one_opens_nothing(ask: Ask) -> None:
    others = {scope: key(*(one for one in SCOPES if one != scope))[1] for scope in SCOPES}
    before = current_revision()
    for route, method, needed in EACH:
        response = ask(route, method, others[needed])
        assert_denied(response, 403, (route, method))
        assert needed in response.json()["detail"], (route, method)
    assert current_revision() == before


def dead_keys(maker: Any) -> dict[str, tuple[str | None, int]]:
    """Return keys that open nothing, all of them with every scope, and how each is answered."""
    dead, revoked = key(*SCOPES)
    revoke_key(key=dead, **BY)
    old, replaced = key(*SCOPES)
    rotate_key(key_id=old.pk, overlap=timedelta(0), anyway=False, **BY)
    _, expired = key(*SCOPES, expires_at=NOW + timedelta(hours=1))
    live = key(*SCOPES)[1]
    _, of_nobody = key(*SCOPES, actor=Actor(name=maker.username, user_id=maker.pk))
    maker.is_active = False
    maker.save()
    wrong = live[:-1] + ("A" if live[-1] != "A" else "B")
    unauthenticated = {"none": None, "empty": "", "revoked": revoked, "replaced": replaced, "expired": expired}
    unauthenticated |= {"wrong": wrong, "cut off": live[:-1], "too long": f"{live}A", "doubled": f"{live} {live}"}
    return {name: (secret, 401) for name, secret in unauthenticated.items()} | {"no maker": (of_nobody, 403)}


def test_without_a_live_key_nothing_is_opened(ask: Ask, django_user_model: Any) -> None:
    keys = dead_keys(django_user_model.objects.create_superuser("mira"))
    before = current_revision()
    for route, method, _ in EACH:
        for name, (secret, status) in keys.items():
            assert_denied(ask(route, method, secret), status, (route, method, name))
    assert current_revision() == before


@pytest.mark.parametrize("role", [*ROLES, NOBODY_YET])
def test_a_session_opens_what_its_role_has_the_scope_of(
    client: Client, ask: Ask, django_user_model: Any, role: str
) -> None:
    user = django_user_model.objects.create_user("mira")
    user.groups.set(Group.objects.filter(name=role))
    client.force_login(user)
    held = ROLES.get(role, frozenset())
    before = current_revision()
    for route, method, needed in EACH:
        if needed not in held:
            assert_denied(ask(route, method), 403, (route, method, role))
    assert current_revision() == before
    for route, method, needed in EACH:
        if needed in held:
            assert_let_in(ask(route, method), (route, method, role))


def test_a_session_that_ended_opens_nothing(client: Client, ask: Ask, django_user_model: Any) -> None:
    user = django_user_model.objects.create_superuser("mira")
    client.force_login(user)
    user.is_active = False
    user.save()
    for route, method, _ in EACH:
        assert_denied(ask(route, method), 401, (route, method))


def test_a_key_beyond_its_limit_is_refused_by_every_call(ask: Ask) -> None:
    _, secret = key(*SCOPES, calls_per_minute=1)
    ask("api/v1/pools", "GET", secret)
    for route, method, _ in EACH:
        response = ask(route, method, secret)
        assert (response.status_code, response.json()["code"]) == (429, "rate_limited"), (route, method)
        assert 1 <= int(response["Retry-After"]) <= 60


def test_a_key_opens_no_page_of_people(client: Client) -> None:
    _, secret = key(*SCOPES)
    for address in ("/", "/keys", "/audit", "/admin/", "/tuning"):
        response = client.get(address, headers={"authorization": f"Bearer {secret}"})
        assert response.status_code == 302, address
        assert "/login" in response["Location"], address


def test_what_is_open_asks_nobody(client: Client) -> None:
    for address in sorted(OPEN - {"logout"}):
        assert client.get(f"/{address}").status_code in {200, 503}, address
