"""SPEC 5, Roles: every page and every list of the admin, for every role, from a table.

How to add a page: one line in PAGES, from its name in the URL configuration to an example of its address, the roles
that open it and, where it has a form, those that may send it. A list of the admin: one line in LISTS. A page without a
line fails here, and so does a list. The calls of the API have their table in test_who_may_call.py.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import get_resolver, reverse

from omniroute_admin.common.admin_rights import ByRights
from omniroute_admin.common.core.roles import ROLES
from omniroute_admin.common.history import Actor
from omniroute_admin.common.services.keys import create_key
from tests.factories import AlertDeliveryFactory, BillingEntryFactory, ConnectionFactory, ModelPriceFactory

pytestmark = pytest.mark.django_db

VIEWER, OPERATOR, CURATOR, AUDITOR, ADMINISTRATOR = "viewer", "operator", "curator", "auditor", "administrator"
ALL = {VIEWER, OPERATOR, CURATOR, AUDITOR, ADMINISTRATOR}
AUDIT = ALL - {VIEWER}
OPERATORS = {OPERATOR, ADMINISTRATOR}
CURATORS = {CURATOR, ADMINISTRATOR}
ADMINISTRATORS = {ADMINISTRATOR}
NOBODY_YET = "no role"
ONLY_SENT = (405,)
"""What a page answers that has only a form to be sent to it."""
EVERYBODY = ALL | {NOBODY_YET}
"""Whoever is signed in: what is one's own needs no role."""
ELSEWHERE = ("api/", "admin/", "v1/", "healthz", "readyz", "metrics")
"""Addresses that this table does not speak of: machines' own."""


class Line(NamedTuple):
    """Who may open a page, and who may send its form (None: it has none)."""

    address: str
    opens: set[str]
    sends: set[str] | None = None
    shows: tuple[int, ...] = (200,)


PAGES: dict[str, Line] = {
    "ladder": Line("/", ALL),
    "live-ladder": Line("/live/ladder", ALL),
    "pools": Line("/pools?pool=auto/thrifty", ALL, shows=(302,)),
    "pool": Line("/pools/auto/thrifty", ALL),
    "connections": Line("/connections", ALL),
    "connection-new": Line("/connections/new", OPERATORS, sends=OPERATORS),
    "connection": Line("/connections/claude/c1", ALL),
    "live-connection": Line("/live/connections/claude/c1", ALL, shows=(200, 204)),
    "connection-act": Line("/connections/claude/c1/pause", ALL, sends=OPERATORS, shows=(302,)),
    "tuning": Line("/tuning", ALL, sends=OPERATORS),
    "tuning-reset": Line("/tuning/budgets/cheap/reset", OPERATORS, sends=OPERATORS),
    "tuning-export": Line("/tuning/omniroute.json", ALL),
    "tuning-import": Line("/tuning/import", OPERATORS, sends=OPERATORS, shows=(302,)),
    "whatif": Line("/whatif", ALL, sends=ALL, shows=ONLY_SENT),
    "catalogue": Line("/catalogue", ALL),
    "catalogue-prices": Line("/catalogue/prices", ALL),
    "catalogue-model": Line("/catalogue/prices/model?provider=openai&model=gpt-5", ALL, sends=CURATORS),
    "catalogue-end-price": Line("/catalogue/prices/{price}/end", CURATORS, sends=CURATORS, shows=ONLY_SENT),
    "catalogue-tier-overrides": Line("/catalogue/tier-overrides", ALL),
    "catalogue-free-providers": Line("/catalogue/free-providers", ALL),
    "catalogue-aliases": Line("/catalogue/aliases", ALL),
    "catalogue-price-sources": Line("/catalogue/price-sources", ALL),
    "catalogue-files": Line("/catalogue/files", ALL, sends=CURATORS),
    "catalogue-undo": Line("/catalogue/files/undo/1", CURATORS, sends=CURATORS, shows=(200, 404)),
    "catalogue-export": Line("/catalogue/export/billing.csv", ALL),
    "catalogue-reviewed": Line("/catalogue/billing/{entry}/reviewed", CURATORS, sends=CURATORS, shows=ONLY_SENT),
    "catalogue-new": Line("/catalogue/billing/new", CURATORS, sends=CURATORS),
    "catalogue-row": Line("/catalogue/billing/{entry}", ALL, sends=CURATORS),
    "catalogue-delete": Line("/catalogue/billing/{entry}/delete", CURATORS, sends=CURATORS),
    "uncurated": Line("/catalogue/uncurated", ALL),
    "spend": Line("/spend", ALL),
    "spend-breakdown": Line("/spend/breakdown.csv", ALL),
    "spend-events": Line("/spend/events.csv", ALL),
    "timeline": Line("/timeline", ALL),
    "alerts": Line("/alerts", ALL),
    "live-alerts": Line("/live/alerts", ALL),
    "alerts-usual": Line("/alerts/usual", OPERATORS, sends=OPERATORS),
    "alert-rule-new": Line("/alerts/rules/new", OPERATORS, sends=OPERATORS),
    "alert-rule": Line("/alerts/rules/{rule}", ALL, sends=OPERATORS),
    "alert-rule-pause": Line("/alerts/rules/{rule}/pause", OPERATORS, sends=OPERATORS),
    "alert-rule-delete": Line("/alerts/rules/{rule}/delete", OPERATORS, sends=OPERATORS),
    "alert-rule-test": Line("/alerts/rules/{rule}/test", OPERATORS, sends=OPERATORS, shows=ONLY_SENT),
    "alert-again": Line("/alerts/deliveries/{delivery}/again", OPERATORS, sends=OPERATORS, shows=ONLY_SENT),
    "audit": Line("/audit", AUDIT),
    "audit-csv": Line("/audit.csv", AUDIT),
    "audit-json": Line("/audit.json", AUDIT),
    "history-version": Line("/audit/settings/{settings}", AUDIT, sends=OPERATORS),
    "keys": Line("/keys", ADMINISTRATORS),
    "key-new": Line("/keys/new", ADMINISTRATORS, sends=ADMINISTRATORS),
    "key-edit": Line("/keys/{key}/edit", ADMINISTRATORS, sends=ADMINISTRATORS),
    "key-rotate": Line("/keys/{key}/rotate", ADMINISTRATORS, sends=ADMINISTRATORS),
    "key-revoke": Line("/keys/{key}/revoke", ADMINISTRATORS, sends=ADMINISTRATORS),
    "account-of": Line("/accounts/{account}", ADMINISTRATORS, sends=ADMINISTRATORS),
    "account": Line("/account", EVERYBODY),
    "account-password": Line("/account/password", EVERYBODY, sends=EVERYBODY, shows=(200, 302)),
    "account-factor": Line("/account/second-factor", EVERYBODY, sends=EVERYBODY, shows=(200, 302)),
    # The last one: whoever sends it is signed out.
    "account-sign-out": Line("/account/sign-out", EVERYBODY, sends=EVERYBODY, shows=ONLY_SENT),
}

WAYS_IN: dict[str, tuple[str, int, int]] = {
    "login": ("/login", 200, 200),
    "login-code": ("/login/code", 302, 302),
    "login-new-factor": ("/login/second-factor", 302, 302),
    "sso": ("/login/sso", 404, 404),
    "sso-callback": ("/login/sso/callback", 404, 404),
    "logout": ("/logout", 405, 302),
}
"""The addresses for strangers: what each answers one who opens it, and one who sends an empty form, where no single
sign-on is configured."""

LISTS: dict[str, tuple[set[str], set[str]]] = {
    "common.apikey": (ADMINISTRATORS, ADMINISTRATORS),
    "common.heartbeat": (ALL, set()),
    "common.taskrun": (ALL, set()),
    "common.horizon": (ALL, set()),
    "auth.user": (ADMINISTRATORS, ADMINISTRATORS),
    "auth.group": (ADMINISTRATORS, set()),
    "billing_catalog.billingentry": (ALL, CURATORS),
    "billing_catalog.provideralias": (ALL, CURATORS),
    "billing_catalog.modelprice": (ALL, CURATORS),
    "billing_catalog.tieroverride": (ALL, CURATORS),
    "billing_catalog.freeprovider": (ALL, CURATORS),
    "billing_catalog.pricesource": (ALL, CURATORS),
    "billing_catalog.tierthresholds": (ALL, set()),
    "billing_catalog.loadedfact": (ALL, set()),
    "ladder.connection": (ALL, OPERATORS),
    "ladder.quotawindow": (ALL, set()),
    "ladder.quotareading": (ALL, set()),
    "ladder.refusalreport": (ALL, set()),
    "ladder.cooldown": (ALL, OPERATORS),
    "ladder.breaker": (ALL, OPERATORS),
    "ladder.laddersettings": (ALL, set()),
    "ladder.rungbudget": (ALL, set()),
    "ladder.usageevent": (ALL, set()),
    "ladder.spendhold": (ALL, set()),
    "ladder.ledgersum": (ALL, set()),
    "ladder.rungflip": (ALL, set()),
    "ladder.rungsample": (ALL, set()),
    "ladder.alertrule": (ALL, OPERATORS),
    "ladder.alert": (ALL, set()),
    "ladder.alertdelivery": (ALL, set()),
}
"""Of each list of the admin: who sees it, and who may add to it."""

CALLS: list[tuple[str, str, Any, set[str]]] = [
    ("get", "/api/v1/pools", None, ALL),
    ("get", "/api/v1/occupancy", None, ALL),
    ("get", "/api/v1/connections", None, ALL),
    ("get", "/api/v1/catalog/prices", None, ALL),
    ("get", "/api/v1/settings", None, ALL),
    ("patch", "/api/v1/settings", {"exit_cutoff_percent": 3}, OPERATORS),
    ("post", "/api/v1/connections", {"connection_id": "c2", "provider": "claude"}, OPERATORS),
    ("delete", "/api/v1/connections/c1/cooldown", None, OPERATORS),
    ("post", "/api/v1/catalog/free-providers", {"provider": "opencode"}, CURATORS),
    ("post", "/api/v1/telemetry/readings", {"readings": []}, OPERATORS),
]


@pytest.fixture
def there() -> dict[str, Any]:
    """Store what the addresses name, and return their numbers."""
    from ladder.models import LadderSettings

    ConnectionFactory(connection_id="c1", provider="claude")
    key, _ = create_key(
        name="r",
        scopes=["pools:read"],
        expires_at=None,
        actor=Actor(name="t"),
        reason="",
        now=datetime(2026, 8, 22, tzinfo=UTC),
    )
    entry, price = BillingEntryFactory(provider="claude"), ModelPriceFactory(provider="openai", model="gpt-5")
    delivery = AlertDeliveryFactory()
    return {
        "rule": delivery.rule.pk,
        "delivery": delivery.pk,
        "key": key.pk,
        "entry": entry.pk,
        "price": price.pk,
        "settings": LadderSettings.history.latest("history_id").history_id,
        "account": get_user_model().objects.create_user("somebody").pk,
    }


@pytest.fixture
def as_role(client: Client, django_user_model: Any) -> Any:
    def sign(role: str) -> Client:
        user = django_user_model.objects.create_user(role.replace(" ", "-"))
        user.groups.set(Group.objects.filter(name=role))
        client.force_login(user)
        return client

    return sign


def page_names() -> Iterator[str]:
    """Yield the name of every address of a page, or the address itself where it has none."""

    def walk(patterns: list[Any], start: str) -> Iterator[str]:
        for one in patterns:
            address = start + str(one.pattern)
            if hasattr(one, "url_patterns"):
                yield from walk(one.url_patterns, address)
            elif not address.startswith(ELSEWHERE):
                yield one.name or address

    yield from walk(get_resolver().url_patterns, "")


def lists() -> dict[str, Any]:
    return {model._meta.label_lower: one for model, one in admin.site._registry.items()}


def test_every_page_has_a_line_in_the_table_of_who_may_open_it() -> None:
    assert sorted(set(page_names())) == sorted([*PAGES, *WAYS_IN])


def test_the_ways_in_answer_a_stranger_as_their_lines_say_and_lead_nowhere_but_to_the_login_page() -> None:
    for name, (address, opened, sent) in WAYS_IN.items():
        for response, status in ((Client().get(address), opened), (Client().post(address, {}), sent)):
            assert response.status_code == status, name
            assert response.get("Location", "/login") == "/login", name


def test_every_list_of_the_admin_has_a_line_and_names_its_rights() -> None:
    assert sorted(lists()) == sorted(LISTS)
    assert not [name for name, one in lists().items() if not isinstance(one, ByRights) or not one.reads]


@pytest.mark.parametrize("role", [*ROLES, NOBODY_YET])
def test_a_page_is_opened_by_the_roles_of_its_line_and_by_no_other(as_role: Any, there: Any, role: str) -> None:
    client = as_role(role)
    for name, line in PAGES.items():
        response = client.get(line.address.format(**there))
        if role in line.opens:
            assert response.status_code in line.shows, (name, role)
            assert not response.get("Location", "").startswith("/login"), (name, role)
        else:
            assert response.status_code == 403, (name, role)
            words = response.content.decode()
            assert "This needs the role" in words, (name, role)
            assert next(one for one in ROLES if one in line.opens) in words, (name, role)


@pytest.mark.parametrize("role", [*ROLES, NOBODY_YET])
def test_a_form_is_taken_from_the_roles_of_its_line_and_from_no_other(as_role: Any, there: Any, role: str) -> None:
    client = as_role(role)
    for name, line in PAGES.items():
        status = client.post(line.address.format(**there), {}).status_code
        if line.sends is None:
            assert status in ({405} if role in line.opens else {403, 405}), (name, role)
        elif role not in line.sends:
            assert status == 403, (name, role)
        else:
            assert status < 500, (name, role)
            assert status != 403, (name, role)


def test_a_stranger_is_led_to_the_login_page_and_a_script_is_told_401(client: Client, there: Any) -> None:
    for name, line in PAGES.items():
        address = line.address.format(**there)
        response = client.get(address)
        if name.startswith("live-"):
            assert response.status_code == 401
        else:
            assert response.status_code == 302, name
            assert response["Location"].startswith("/login?next="), name
        assert client.get(address, headers={"HX-Request": "true"}).status_code == 401, name
        assert client.post(address, {}).status_code in {302, 401, 405}, name


def test_a_form_from_another_site_is_refused_before_anything_is_looked_at(django_user_model: Any, there: Any) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(django_user_model.objects.create_superuser("root"))
    for name, line in PAGES.items():
        if line.sends is not None:
            assert strict.post(line.address.format(**there), {}).status_code == 403, name


@pytest.mark.parametrize("role", [*ROLES, NOBODY_YET])
def test_the_admin_shows_and_takes_what_a_role_may(as_role: Any, role: str) -> None:
    client = as_role(role)
    if role == NOBODY_YET:
        assert client.get(reverse("admin:index")).status_code == 403
    else:
        index = client.get(reverse("admin:index")).content.decode()
    for label, (sees, adds) in LISTS.items():
        start = f"admin:{label.replace('.', '_')}"
        response = client.get(reverse(f"{start}_changelist"))
        assert response.status_code == (200 if role in sees else 403), label
        if response.status_code == 403:
            assert "This needs the role" in response.content.decode(), label
        added = client.post(reverse(f"{start}_add"), {"change_reason": "x"})
        assert added.status_code == (200 if role in adds else 403), label
        if role != NOBODY_YET:
            assert (f'href="{reverse(f"{start}_changelist")}"' in index) is (role in sees), label


def test_a_stranger_in_the_admin_is_led_to_the_one_login_page(client: Client) -> None:
    for address in (reverse("admin:index"), reverse("admin:ladder_connection_changelist")):
        response = client.get(address, follow=True)
        assert response.redirect_chain[-1][0].startswith("/login?next=/admin/")
        assert response.status_code == 200


def test_the_history_in_the_admin_needs_the_right_to_read_the_audit(as_role: Any, there: Any) -> None:
    from ladder.models import LadderSettings

    version = LadderSettings.history.latest("history_id").history_id
    pages = ("/admin/ladder/laddersettings/1/history/", f"/admin/ladder/laddersettings/1/history/{version}/")
    client = as_role(VIEWER)
    assert "historylink" not in client.get("/admin/ladder/laddersettings/1/change/").content.decode()
    assert [client.get(page).status_code for page in pages] == [403, 403]
    client = as_role(AUDITOR)
    assert "historylink" in client.get("/admin/ladder/laddersettings/1/change/").content.decode()
    assert [client.get(page).status_code for page in pages] == [200, 200]
    assert client.post(pages[1], {"exit_cutoff_percent": "9", "change_reason": "x"}).status_code == 403


def test_actions_of_a_list_are_offered_and_taken_by_right_alone(as_role: Any, there: Any) -> None:
    address = reverse("admin:ladder_connection_changelist")
    chosen = {"action": "delete_selected", "_selected_action": "1", "change_reason": "x", "post": "yes"}
    client = as_role(VIEWER)
    assert 'name="action"' not in client.get(address).content.decode()
    assert client.post(address, chosen).status_code == 403
    assert client.post(reverse("admin:ladder_connection_delete", args=[1]), {}).status_code == 403
    assert 'name="action"' in as_role(OPERATOR).get(address).content.decode()


@pytest.mark.parametrize("role", [*ROLES, NOBODY_YET])
def test_a_session_may_by_the_api_what_its_roles_give(as_role: Any, there: Any, role: str) -> None:
    client = as_role(role)
    for method, address, body, may in CALLS:
        response = getattr(client, method)(address, data=body, content_type="application/json")
        assert (response.status_code < 300) is (role in may), (method, address, role, response.content)
        if role not in may:
            assert response.status_code == 403, (method, address, role)
            assert response.json()["code"] == "scope_lacking", (method, address, role)


def test_a_role_that_is_taken_counts_no_more_at_the_next_call(as_role: Any, django_user_model: Any) -> None:
    client = as_role(OPERATOR)
    assert client.get("/audit").status_code == 200
    django_user_model.objects.get().groups.clear()
    assert client.get("/audit").status_code == 403
    assert client.get("/api/v1/settings").status_code == 403
    django_user_model.objects.update(is_active=False)
    assert client.get("/audit").status_code == 302
