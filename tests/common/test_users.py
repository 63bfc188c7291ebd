"""SPEC 3, 5: roles are given by administrators, nobody gives more than they have, and the history keeps it."""

import re
from html import unescape
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from omniroute_admin.common.core.changes import HistoryEntry
from omniroute_admin.common.core.roles import ROLES
from omniroute_admin.common.models import UserVersion
from omniroute_admin.common.scopes import rights_of_user
from omniroute_admin.common.selectors.history import Asked, find_entries
from omniroute_admin.common.selectors.revision import current_revision

pytestmark = pytest.mark.django_db
PASSWORD = "correct-horse-battery-9"
ADD, LIST = "/admin/auth/user/add/", "/admin/auth/user/"


def user(name: str, *roles: str, **values: Any) -> Any:
    made = get_user_model().objects.create_user(name, password="x", **values)
    made.groups.set(Group.objects.filter(name__in=roles))
    return made


@pytest.fixture
def boss(client: Client) -> Client:
    client.force_login(user("boss", "administrator"))
    return client


def ids(*roles: str) -> list[int]:
    return [Group.objects.get(name=name).pk for name in roles]


def change(row: Any) -> str:
    return f"{LIST}{row.pk}/change/"


def values(row: Any, *roles: str, **given: Any) -> dict[str, Any]:
    base = {"username": row.username, "email": "", "is_active": "on", "groups": ids(*roles), "change_reason": "asked"}
    return {name: value for name, value in (base | given).items() if value is not None}


def entries(name: str) -> list[HistoryEntry]:
    """Return what the history tells of an account, the oldest first."""
    found = find_entries(asked=Asked(kinds=("user",), what=name), limit=99)
    return sorted(found, key=lambda one: one.history_id)


def told(entry: HistoryEntry) -> list[tuple[str, str, str]]:
    return [(one.label, one.old, one.new) for one in entry.changes]


def test_an_account_is_made_with_its_roles_in_one_act_of_the_history(boss: Client) -> None:
    before = current_revision()
    form = {"username": "mira", "email": "", "password1": PASSWORD, "password2": PASSWORD}
    response = boss.post(ADD, {**form, "groups": ids("operator", "curator"), "change_reason": "new colleague"})
    assert response.status_code == 302
    mira = get_user_model().objects.get(username="mira")
    assert "settings:write" in rights_of_user(mira)
    assert (mira.is_superuser, mira.check_password(PASSWORD)) == (False, True)
    (entry,) = entries("mira")
    assert (entry.act, entry.who, entry.reason) == ("made", "boss", "new colleague")
    assert ("roles", "", "operator, curator") in told(entry)
    assert current_revision() == before + 1


def test_roles_given_and_taken_move_the_revision_and_are_told_with_both_values(boss: Client) -> None:
    row, before = user("mira", "viewer"), current_revision()
    boss.post(change(row), values(row, "operator"))
    entry = entries("mira")[-1]
    assert told(entry) == [("roles", "viewer", "operator")]
    assert (entry.who, entry.reason, entry.act, entry.may_roll_back) == ("boss", "asked", "changed", False)
    assert current_revision() == before + 1
    row = get_user_model().objects.get(pk=row.pk)
    assert "settings:write" in rights_of_user(row)


def test_an_account_is_switched_off_and_never_deleted(boss: Client) -> None:
    row = user("mira", "viewer")
    boss.post(change(row), values(row, "viewer", is_active=None))
    assert told(entries("mira")[-1]) == [("active", "yes", "no")]
    assert boss.post(f"{LIST}{row.pk}/delete/", {"post": "yes", "change_reason": "x"}).status_code == 403
    assert get_user_model().objects.filter(pk=row.pk).exists()


def test_without_a_reason_nothing_is_changed(boss: Client) -> None:
    row, before = user("mira", "viewer"), current_revision()
    response = boss.post(change(row), values(row, "operator", change_reason=" "))
    assert "change_reason" in response.context["adminform"].form.errors
    assert (current_revision(), [group.name for group in row.groups.all()]) == (before, ["viewer"])


def test_the_last_administrator_is_not_locked_out(boss: Client) -> None:
    row = get_user_model().objects.get(username="boss")
    before, written = current_revision(), UserVersion.objects.count()
    for given in (values(row, "viewer"), values(row, "administrator", is_active=None)):
        response = boss.post(change(row), given, follow=True)
        assert "nobody who may give roles" in response.content.decode()
    row.refresh_from_db()
    assert (row.is_active, [group.name for group in row.groups.all()]) == (True, ["administrator"])
    assert (current_revision(), UserVersion.objects.count()) == (before, written)
    user("deputy", "administrator")
    boss.post(change(row), values(row, "viewer"))
    assert [group.name for group in row.groups.all()] == ["viewer"]


def test_only_a_superuser_makes_changes_or_sees_a_superuser(boss: Client) -> None:
    root = get_user_model().objects.create_superuser("root", password="x")
    row = user("mira", "viewer")
    assert 'name="is_superuser"' not in boss.get(change(row)).content.decode()
    boss.post(change(row), values(row, "viewer", is_superuser="on"))
    row.refresh_from_db()
    assert not row.is_superuser
    assert boss.post(change(root), values(root)).status_code == 403
    password = f"{LIST}{root.pk}/password/"
    assert password not in boss.get(change(root)).content.decode()
    assert f"{LIST}{row.pk}/password/" in boss.get(change(row)).content.decode()
    given = {"password1": PASSWORD, "password2": PASSWORD, "change_reason": "x"}
    assert boss.post(password, given).status_code == 403
    boss.force_login(root)
    boss.post(change(row), values(row, "viewer", is_superuser="on"))
    row.refresh_from_db()
    assert row.is_superuser


def test_raw_permissions_are_not_offered_and_groups_are_only_looked_at(boss: Client) -> None:
    row = user("mira", "viewer")
    text = boss.get(change(row)).content.decode()
    assert "user_permissions" not in text
    assert "is_staff" not in text
    assert all(f"{name}: " in text for name in ROLES)
    group = Group.objects.get(name="viewer")
    address = f"/admin/auth/group/{group.pk}/"
    assert boss.get(f"{address}change/").status_code == 200
    for act in ("change/", "delete/"):
        assert boss.post(address + act, {"name": "x", "post": "yes"}).status_code == 403
    assert boss.get("/admin/auth/group/add/").status_code == 403


def test_a_new_password_is_told_and_never_shown(boss: Client) -> None:
    row = user("mira", "viewer")
    address = f"{LIST}{row.pk}/password/"
    given = {"password1": PASSWORD, "password2": PASSWORD, "change_reason": "forgotten"}
    assert boss.post(address, {**given, "change_reason": ""}).status_code == 200
    assert boss.post(address, {**given, "password2": "other"}).status_code == 200
    assert boss.post(address, given).status_code == 302
    row.refresh_from_db()
    assert row.check_password(PASSWORD)
    entry = entries("mira")[-1]
    assert (entry.did, told(entry), entry.who, entry.reason) == (
        "password set", [("password", "not told", "set anew")], "boss", "forgotten",
    )  # fmt: skip
    kept = repr(list(UserVersion.objects.values()))
    assert PASSWORD not in kept
    assert row.password not in kept
    assert row.password not in boss.get(change(row)).content.decode()


def test_ones_own_new_password_is_told_too(client: Client) -> None:
    row = user("mira", "viewer")
    client.force_login(row)
    client.post(
        reverse("account-password"),
        {"old_password": "x", "new_password1": PASSWORD, "new_password2": PASSWORD},
    )
    assert (entries("mira")[-1].did, entries("mira")[-1].who) == ("password set", "mira")


def test_a_sign_in_is_no_change_of_the_account(client: Client) -> None:
    user("mira", "viewer")
    before = UserVersion.objects.count(), current_revision()
    client.post(reverse("login"), {"username": "mira", "password": "x"})
    assert get_user_model().objects.get(username="mira").last_login is not None
    assert (UserVersion.objects.count(), current_revision()) == before


def test_what_a_command_or_a_shell_does_is_history_as_well() -> None:
    call_command("createsuperuser", username="root", email="r@example.com", interactive=False, verbosity=0)
    root = get_user_model().objects.get(username="root")
    assert ("superuser", "", "yes") in told(entries("root")[-1])
    Group.objects.get(name="viewer").user_set.add(root)
    assert told(entries("root")[-1]) == [("roles", "no role", "viewer")]
    root.delete()
    assert entries("root")[-1].act == "deleted"


def test_the_history_of_an_account_is_its_part_of_the_audit(boss: Client) -> None:
    row = user("mira", "viewer")
    response = boss.get(f"{LIST}{row.pk}/history/", follow=True)
    assert response.redirect_chain == [(f"{reverse('audit')}?kind=user&what=mira", 302)]
    assert "mira" in response.content.decode()


@pytest.mark.parametrize("role", ["viewer", "operator", "curator", "auditor"])
def test_accounts_are_the_administrators_alone(client: Client, role: str) -> None:
    row = user("mira", role)
    client.force_login(row)
    for address in (LIST, ADD, change(row), f"{LIST}{row.pk}/password/"):
        for response in (client.get(address), client.post(address, values(row, "administrator"))):
            assert response.status_code == 403, address
            assert "<strong>administrator</strong>" in response.content.decode(), address
    assert [group.name for group in row.groups.all()] == [role]
    assert "/admin/auth/user/" not in client.get("/admin/").content.decode()


def test_an_address_with_an_empty_field_to_look_by_opens_the_account_all_the_same(boss: Client) -> None:
    row = user("mira", "viewer")
    role = Group.objects.get(name="viewer")
    for address in (change(row), f"/admin/auth/group/{role.pk}/change/"):
        assert boss.get(address, {"_to_field": ""}).status_code == 200


def test_a_list_is_narrowed_by_what_its_filters_name_and_by_no_hidden_column(boss: Client) -> None:
    """SPEC 4: a key is stored hashed; nobody finds the hash out letter by letter either."""
    for address in (
        "/admin/common/apikey/?secret_hash__startswith=a",
        "/admin/auth/user/?password__startswith=a",
        "/admin/ladder/connection/?connection_id__regex=(((",
        "/admin/ladder/usageevent/?occurred_at__year=99999",
        f"/admin/ladder/rungflip/?at__year={'9' * 30}",
    ):
        assert boss.get(address).status_code == 400, address


def test_every_filter_that_a_list_offers_is_taken(boss: Client) -> None:
    for name in ("common/apikey", "auth/user", "ladder/connection", "billing_catalog/modelprice", "ladder/rungflip"):
        page = boss.get(f"/admin/{name}/").content.decode()
        offered = {unescape(link) for link in re.findall(r'href="(\?[^"]+)"', page)}
        assert offered
        for link in offered:
            assert boss.get(f"/admin/{name}/{link}").status_code == 200, (name, link)


def test_a_number_beyond_any_row_in_an_address_of_the_admin_fails_nothing(boss: Client) -> None:
    far = "9" * 30
    for address in (
        f"{LIST}?groups__id__exact={far}",
        f"/admin/ladder/rungflip/?rung__exact={far}",
    ):
        assert boss.get(address, follow=True).status_code == 200, address
    for tail in ("abc/history/", "1/history/abc/", "abc/history/abc/", f"1/history/{far}/"):
        assert boss.get(f"/admin/ladder/connection/{tail}").status_code == 404, tail
