"""SPEC 3: every write through the admin moves the revision and says who, when and why; a key is shown once."""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.admin import AdminSite
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import path, reverse

from billing_catalog.models import FreeProvider
from omniroute_admin.common.admin_base import DecidingAdmin, change_of
from omniroute_admin.common.errors import BadRequest, field
from omniroute_admin.common.history import Actor, stamp
from omniroute_admin.common.models import ApiKey, Heartbeat
from omniroute_admin.common.selectors.keys import live_key
from omniroute_admin.common.selectors.revision import current_revision
from omniroute_admin.common.services.keys import create_key, revoke_key
from omniroute_admin.urls import urlpatterns as product_urls
from tests.factories import ModelPriceFactory

NOW = datetime(2026, 8, 22, 12, tzinfo=UTC)
site = AdminSite(name="deciding")


class FreeAdmin(DecidingAdmin):
    reads = "catalog:read"
    writes = "catalog:write"

    def save_model(self, request: Any, obj: Any, form: Any, change: bool) -> None:
        if obj.reason == "refuse this":
            raise BadRequest("The service refuses it.", errors=[field("reason", "No")])
        super().save_model(request, obj, form, change)


site.register(FreeProvider, FreeAdmin)
urlpatterns = [path("deciding/", site.urls), *product_urls]
pytestmark = [pytest.mark.urls(__name__), pytest.mark.django_db]
LIST = "/deciding/billing_catalog/freeprovider/"


@pytest.fixture
def boss(client: Client) -> Client:
    client.force_login(get_user_model().objects.create_superuser("boss"))
    return client


def free(provider: str = "codex") -> FreeProvider:
    return FreeProvider.objects.create(provider=provider, origin="facts", created_at=NOW, updated_at=NOW)


def key(**values: Any) -> tuple[ApiKey, str]:
    given: dict[str, Any] = {"name": "router", "scopes": ["pools:read"], "expires_at": None} | values
    return create_key(**given, actor=Actor(name="a test"), reason="", now=NOW)


def test_adding_and_changing_are_stamped_and_move_the_revision(boss: Client, time_machine_at: Any) -> None:
    before = current_revision()
    later = NOW + timedelta(hours=1)
    with time_machine_at(NOW):
        boss.post(f"{LIST}add/", {"provider": "Codex", "reason": "r", "change_reason": "first"})
    row = FreeProvider.objects.get()
    assert (row.provider, row.origin, row.created_at, row.updated_at) == ("codex", "operator", NOW, NOW)
    assert current_revision() == before + 1
    FreeProvider.objects.update(origin="facts")
    with time_machine_at(later):
        boss.post(f"{LIST}{row.pk}/change/", {"provider": "codex", "reason": "s", "change_reason": "second"})
    row.refresh_from_db()
    assert (row.origin, row.created_at, row.updated_at) == ("operator", NOW, later)
    assert current_revision() == before + 2
    written = FreeProvider.history.values_list("history_actor", "history_change_reason", "history_date")
    assert list(written) == [("boss", "second", later), ("boss", "first", NOW)]
    assert FreeProvider.history.first().history_user.get_username() == "boss"


def test_without_a_reason_nothing_is_written_and_the_revision_stays(boss: Client) -> None:
    row, before = free(), current_revision()
    response = boss.post(f"{LIST}{row.pk}/change/", {"provider": "codex", "reason": "s", "change_reason": ""})
    assert "change_reason" in response.context["adminform"].form.errors
    boss.post(f"{LIST}{row.pk}/delete/", {"post": "yes"})
    assert (FreeProvider.objects.get().reason, current_revision()) == ("", before)


def test_looking_moves_nothing(boss: Client) -> None:
    row, before = free(), current_revision()
    for address in ("", "add/", f"{row.pk}/change/", f"{row.pk}/delete/", f"{row.pk}/history/", "?q=x"):
        assert boss.get(f"{LIST}{address}").status_code in {200, 302}, address
    assert current_revision() == before


def test_a_history_names_each_change_once_and_numbers_as_people_write_them(boss: Client) -> None:
    row = ModelPriceFactory(input_usd_per_million=Decimal("3.00000000"), rank=None)
    stamp(instance=row, actor=Actor(name="a key"), reason="r" * 4000, now=datetime(2100, 1, 1, tzinfo=UTC))
    row.input_usd_per_million, row.rank = Decimal("0E-8"), 4
    row.save()
    row.input_usd_per_million = Decimal("0.5000")
    row.save()
    text = boss.get(reverse("admin:billing_catalog_modelprice_history", args=[row.pk])).content.decode()
    assert "history_actor" not in text
    assert text.count(">a key<") == 2
    assert "3 → 0<" in text
    assert "0 → 0.5<" in text
    assert "none → 4<" in text


def test_every_group_of_the_admin_has_a_heading_in_words(boss: Client) -> None:
    text = boss.get(reverse("admin:index")).content.decode()
    headings = re.findall(r'class="section"[^>]*>\s*(.*?)\s*</a>', text)
    assert {"Access", "Billing catalogue", "Ladder"} <= set(headings)
    assert not any("_" in heading or heading == "Common" for heading in headings)


def test_what_a_service_refuses_is_a_message_and_nothing_is_written(boss: Client) -> None:
    before = current_revision()
    bad = {"provider": "codex", "reason": "refuse this", "change_reason": "why"}
    response = boss.post(f"{LIST}add/", bad, follow=True)
    assert "The service refuses it. reason: No." in response.content.decode()
    assert (FreeProvider.objects.count(), current_revision(), LogEntry.objects.count()) == (0, before, 0)


def test_deleting_one_and_many_keeps_who_and_why(boss: Client) -> None:
    rows, before = [free("a"), free("b"), free("c")], current_revision()
    assert 'name="change_reason"' in boss.get(f"{LIST}{rows[0].pk}/delete/").content.decode()
    boss.post(f"{LIST}{rows[0].pk}/delete/", {"post": "yes", "change_reason": "one"})
    assert current_revision() == before + 1
    chosen = {"action": "delete_selected", "_selected_action": [rows[1].pk, rows[2].pk]}
    asked = boss.post(LIST, chosen).content.decode()
    assert 'name="change_reason"' in asked
    assert current_revision() == before + 1
    boss.post(LIST, {**chosen, "post": "yes", "change_reason": "many"})
    assert current_revision() == before + 2
    written = FreeProvider.history.filter(history_type="-").values_list("history_actor", "history_change_reason")
    assert sorted(written) == [("boss", "many"), ("boss", "many"), ("boss", "one")]


def test_an_earlier_state_comes_back_with_a_reason(boss: Client) -> None:
    boss.post(f"{LIST}add/", {"provider": "codex", "reason": "old", "change_reason": "first"})
    row = FreeProvider.objects.get()
    boss.post(f"{LIST}{row.pk}/change/", {"provider": "codex", "reason": "new", "change_reason": "second"})
    before, version = current_revision(), FreeProvider.history.last()
    address = f"{LIST}{row.pk}/history/{version.pk}/"
    assert "old</textarea>" in boss.get(address).content.decode()
    boss.post(address, {"provider": "codex", "reason": "old", "change_reason": "back"})
    row.refresh_from_db()
    assert (row.reason, current_revision()) == ("old", before + 1)
    assert FreeProvider.history.first().history_change_reason == "back"


def test_a_reason_is_cut_to_what_the_history_keeps(rf: Any) -> None:
    request = rf.post("/", {"change_reason": "x" * 10_001})
    request.user = get_user_model()(username="boss", pk=1)
    assert change_of(request)["reason"] == "x" * 10_000


def test_a_key_made_in_the_admin_is_shown_once_and_works(boss: Client) -> None:
    address = reverse("admin:common_apikey_add")
    assert boss.get(address).status_code == 200
    before = current_revision()
    response = boss.post(
        address,
        {"name": "router", "scopes": ["pools:read", "metrics:read"], "expires_at_0": "", "expires_at_1": "",
         "change_reason": "new router", "form_name": "a form"},
    )  # fmt: skip
    secret = response.context["secret"]
    assert response.status_code == 200
    assert "no-store" in response["Cache-Control"]
    assert secret in response.content.decode()
    facts = live_key(secret=secret, now=NOW)
    assert facts is not None
    assert facts.scopes == {"pools:read", "metrics:read"}
    assert current_revision() == before + 1
    row = ApiKey.objects.get()
    assert (row.made_by, ApiKey.history.get().history_change_reason) == ("boss", "new router")
    hidden = (secret, row.secret_hash)
    pages = [reverse("admin:common_apikey_changelist")] + [
        reverse(f"admin:common_apikey_{name}", args=[row.pk]) for name in ("change", "history")
    ]
    version = ApiKey.history.get().pk
    for page in [*pages, reverse("admin:common_apikey_simple_history", args=[row.pk, version])]:
        shown = boss.get(page)
        assert shown.status_code == 200, page
        assert not any(text in shown.content.decode() for text in hidden), page
    assert secret not in str(boss.cookies) + repr(list(LogEntry.objects.values())) + repr(dict(boss.session))


def test_a_form_for_a_key_sent_twice_makes_one_key(boss: Client) -> None:
    address = reverse("admin:common_apikey_add")
    names = [re.findall(r'name="form_name" value="([\w-]+)"', boss.get(address).content.decode()) for _ in range(2)]
    assert len(names[0]) == len(names[1]) == 1
    assert names[0] != names[1]
    values = {"name": "router", "scopes": ["pools:read"], "change_reason": "x", "form_name": names[0][0]}
    assert "secret" in boss.post(address, values).context
    before = current_revision()
    again = boss.post(address, values, follow=True)
    assert "This form was sent before" in again.content.decode()
    assert (ApiKey.objects.count(), current_revision()) == (1, before)
    assert "secret" in boss.post(address, {**values, "form_name": names[1][0]}).context
    assert ApiKey.objects.count() == 2
    assert "form_name" in boss.post(address, values | {"form_name": ""}).context["adminform"].form.errors


def test_bad_values_of_a_new_key_are_shown_and_none_is_made(boss: Client) -> None:
    address = reverse("admin:common_apikey_add")
    past = {"expires_at_0": "2001-01-01", "expires_at_1": "00:00:00"}
    given = {"name": "r", "change_reason": "x", "form_name": "a form"}
    boss.post(address, given | {"scopes": ["nope"]})
    response = boss.post(address, given | {"scopes": ["pools:read"]} | past, follow=True)
    assert "passed already" in response.content.decode()
    assert not ApiKey.objects.exists()


def test_keys_are_found_and_filtered(boss: Client) -> None:
    key(name="alpha")
    key(name="beta", expires_at=NOW + timedelta(hours=1))
    revoke_key(key=key(name="gamma")[0], actor=Actor(name="t"), reason="", now=NOW)
    address = reverse("admin:common_apikey_changelist")

    def names(query: str) -> list[str]:
        return sorted(row.name for row in boss.get(f"{address}?{query}").context["cl"].queryset)

    assert names("q=alp") == ["alpha"]
    assert names("state=live") == ["alpha"]
    assert names("state=expired") == ["beta"]
    assert names("state=revoked") == ["gamma"]


def test_revoking_needs_a_reason_and_acts_at_once(boss: Client) -> None:
    row, secret = key()
    address, before = reverse("admin:common_apikey_changelist"), current_revision()
    chosen = {"action": "revoke", "_selected_action": [row.pk]}
    assert "Say why" in boss.post(address, chosen, follow=True).content.decode()
    assert live_key(secret=secret, now=NOW) is not None
    boss.post(address, {**chosen, "change_reason": "lost"})
    assert live_key(secret=secret, now=NOW) is None
    assert current_revision() > before
    assert ApiKey.history.first().history_change_reason == "lost"


def test_a_key_is_neither_edited_nor_deleted_nor_turned_back(boss: Client) -> None:
    row, secret = key()
    version = ApiKey.history.get().pk
    for name, arguments in (("change", [row.pk]), ("delete", [row.pk]), ("simple_history", [row.pk, version])):
        address = reverse(f"admin:common_apikey_{name}", args=arguments)
        assert boss.post(address, {"name": "x", "post": "yes", "change_reason": "x"}).status_code == 403
    assert (ApiKey.objects.get().name, live_key(secret=secret, now=NOW) is not None) == ("router", True)


def test_heartbeats_are_shown_and_not_edited(boss: Client) -> None:
    beat = Heartbeat.objects.create(name="worker", beat_at=NOW)
    assert boss.get(reverse("admin:common_heartbeat_changelist")).status_code == 200
    address = reverse("admin:common_heartbeat_change", args=[beat.pk])
    assert boss.get(address).status_code == 200
    assert boss.post(address, {"name": "x"}).status_code == 403
