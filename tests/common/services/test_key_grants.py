"""A key never grants more than its maker has, at any time: at its making, and after whatever happens to the maker."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.db import connection, transaction
from django.test import Client

from omniroute_admin.common.core.roles import ROLES
from omniroute_admin.common.errors import Forbidden
from omniroute_admin.common.history import Actor
from omniroute_admin.common.models import ApiKey
from omniroute_admin.common.scopes import ALL_SCOPES, SCOPES, scopes_of_user
from omniroute_admin.common.selectors.key_list import seen_of_key
from omniroute_admin.common.selectors.keys import live_key
from omniroute_admin.common.selectors.revision import current_revision
from omniroute_admin.common.services.key_rotation import rotate_key
from omniroute_admin.common.services.keys import create_key, edit_key

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 8, 22, 12, tzinfo=UTC)
ADDRESS = "/api/v1/settings"


def user(name: str, *roles: str, **values: Any) -> Any:
    made = get_user_model().objects.create_user(name, **values)
    made.groups.set(Group.objects.filter(name__in=roles))
    return made


def by(maker: Any) -> dict[str, Any]:
    return {"actor": Actor(name=maker.username, user_id=maker.pk), "reason": "a test", "now": NOW}


def key_of(maker: Any, *scopes: str) -> tuple[ApiKey, str]:
    given = scopes or tuple(sorted(scopes_of_user(maker)))
    return create_key(name="router", scopes=given, expires_at=None, **by(maker))


def edit(key: ApiKey, editor: Any, *scopes: str) -> ApiKey:
    kept = {"name": key.name, "calls_per_minute": None, "expires_at": None, "seen": seen_of_key(key)}
    return edit_key(key_id=key.pk, scopes=scopes, **kept, **by(editor))


def acts(secret: str) -> frozenset[str]:
    facts = live_key(secret=secret, now=NOW)
    assert facts is not None
    return facts.scopes


def status(secret: str) -> int:
    return Client().get(ADDRESS, headers={"authorization": f"Bearer {secret}"}).status_code


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("scope", SCOPES)
def test_nobody_makes_or_widens_a_key_beyond_their_own_scopes(role: str, scope: str) -> None:
    maker, boss = user("mira", role), user("root", is_superuser=True)
    mine = key_of(boss, "pools:read")[0]
    before = current_revision()
    if scope in scopes_of_user(maker):
        assert key_of(maker, "pools:read", scope)[0].granted
        assert edit(mine, maker, scope).granted == [scope]
        return
    for act in (lambda: key_of(maker, "pools:read", scope), lambda: edit(mine, maker, "pools:read", scope)):
        with pytest.raises(Forbidden, match=scope) as refused:
            act()
        assert "pools:read" not in refused.value.detail
    mine.refresh_from_db()
    assert (mine.scopes, mine.maker_id, current_revision()) == (["pools:read"], boss.pk, before)


def test_nobody_rotates_a_key_that_may_more_than_they() -> None:
    key, _ = key_of(user("root", is_superuser=True), "pools:read", "settings:write")
    how: dict[str, Any] = {"key_id": key.pk, "overlap": timedelta(0), "anyway": False}
    with pytest.raises(Forbidden, match=r"settings:write\.$"):
        rotate_key(**how, **by(user("mira", "viewer")))
    assert ApiKey.objects.get().replaced_until is None
    assert rotate_key(**how, **by(user("omar", "operator")))[1].granted == ["pools:read", "settings:write"]


def take_role(maker: Any) -> None:
    maker.groups.remove(Group.objects.get(name="administrator"))


def take_role_from_the_other_side(maker: Any) -> None:
    Group.objects.get(name="administrator").user_set.remove(maker)


def clear_roles(maker: Any) -> None:
    maker.groups.clear()


def clear_the_role(maker: Any) -> None:
    Group.objects.get(name="administrator").user_set.clear()


def delete_the_role(maker: Any) -> None:
    Group.objects.get(name="administrator").delete()


def switch_off(maker: Any) -> None:
    maker.is_active = False
    maker.save()


def delete(maker: Any) -> None:
    maker.delete()


WAYS = [
    take_role, take_role_from_the_other_side, clear_roles, clear_the_role, delete_the_role, switch_off, delete,
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_a_key_stops_with_its_makers_rights_at_the_very_next_call(way: Callable[[Any], None]) -> None:
    maker = user("mira", "administrator")
    key, secret = key_of(maker)
    assert (acts(secret), status(secret)) == (ALL_SCOPES, 200)
    before = current_revision()
    way(maker)
    assert (acts(secret), status(secret)) == (frozenset(), 403)
    assert current_revision() > before
    key.refresh_from_db()
    assert (key.granted, key.scopes) == ([], list(SCOPES))
    assert "Its maker's rights changed" in ApiKey.history.first().history_change_reason


def test_a_superuser_who_is_one_no_more_leaves_the_keys_what_the_roles_give() -> None:
    maker = user("mira", "viewer", is_superuser=True)
    _, secret = key_of(maker)
    maker.is_superuser = False
    maker.save()
    assert acts(secret) == scopes_of_user(get_user_model().objects.get()) < ALL_SCOPES


def test_rights_that_come_back_bring_back_what_was_asked_and_no_more() -> None:
    maker = user("mira", "operator")
    _, secret = key_of(maker, "pools:read", "settings:write")
    maker.groups.clear()
    assert acts(secret) == frozenset()
    maker.groups.set(Group.objects.filter(name__in=["viewer", "curator"]))
    assert acts(secret) == {"pools:read"}
    maker.groups.add(Group.objects.get(name="administrator"))
    assert acts(secret) == {"pools:read", "settings:write"}


def test_the_keys_of_others_and_of_commands_stay_as_they_are() -> None:
    maker, other = user("mira", "administrator"), user("omar", "administrator")
    _, of_other = key_of(other)
    _, of_command = create_key(
        name="r", scopes=SCOPES, expires_at=None, actor=Actor(name="command"), reason="", now=NOW
    )
    delete(maker)
    assert acts(of_other) == acts(of_command) == ALL_SCOPES


def test_the_refusal_says_that_the_maker_lost_the_scope_and_who_mends_it() -> None:
    maker = user("mira", "administrator")
    _, secret = key_of(maker, "settings:read")
    switch_off(maker)
    told = Client().get(ADDRESS, headers={"authorization": f"Bearer {secret}"}).json()
    assert told["code"] == "scope_lacking"
    assert "who made the key has it no more" in told["detail"]
    _, narrow = key_of(user("omar", "viewer"), "pools:read")
    told = Client().get(ADDRESS, headers={"authorization": f"Bearer {narrow}"}).json()
    assert told["detail"] == "This needs the scope settings:read."


def test_another_person_who_edits_the_key_becomes_its_maker_and_mends_it() -> None:
    maker, other = user("mira", "administrator"), user("omar", "operator")
    key, secret = key_of(maker, "settings:read", "settings:write")
    switch_off(maker)
    key.refresh_from_db()
    assert edit(key, other, "settings:read").maker_id == other.pk
    assert acts(secret) == {"settings:read"}
    maker.is_active = True
    maker.save()
    take_role(maker)
    assert acts(secret) == {"settings:read"}


def test_one_act_in_several_steps_is_one_version_of_the_key_and_none_where_it_comes_to_nothing(client: Client) -> None:
    boss, maker = user("boss", "administrator"), user("mira", "operator")
    key, secret = key_of(maker, "pools:read", "settings:write")
    client.force_login(boss)
    given = {"username": "mira", "email": "", "is_active": "on", "change_reason": "asked", "keys_may_lose": "on"}
    roles = {name: Group.objects.get(name=name).pk for name in ROLES}
    address = f"/admin/auth/user/{maker.pk}/change/"
    client.post(address, {**given, "groups": [roles["administrator"]]})
    assert (acts(secret), ApiKey.history.filter(id=key.pk).count()) == ({"pools:read", "settings:write"}, 1)
    client.post(address, {**given, "groups": [roles["curator"]]})
    last = ApiKey.history.filter(id=key.pk).first()
    assert (acts(secret), ApiKey.history.filter(id=key.pk).count()) == ({"pools:read"}, 2)
    assert (last.granted, last.history_actor) == (["pools:read"], "boss")
    assert last.history_change_reason == "Its maker's rights changed: asked"


def test_a_change_that_is_undone_leaves_the_keys_as_they_were() -> None:
    maker = user("mira", "administrator")
    _, secret = key_of(maker)
    with transaction.atomic():
        take_role(maker)
        assert acts(secret) == frozenset()
        transaction.set_rollback(True)
    assert acts(secret) == ALL_SCOPES


def test_an_upgrade_brings_keys_in_line_with_what_roles_are_then() -> None:
    """A bare statement stands for what no signal tells: a role that means less after an upgrade."""
    maker = user("mira", "administrator")
    _, secret = key_of(maker)
    get_user_model().objects.update(is_active=False)
    assert acts(secret) == ALL_SCOPES
    call_command("migrate", verbosity=0)
    assert acts(secret) == frozenset()


def test_what_a_shell_left_behind_is_mended_by_the_next_save_of_the_account() -> None:
    maker = user("mira", "administrator")
    _, secret = key_of(maker)
    get_user_model().objects.update(is_active=False)
    maker.refresh_from_db()
    maker.save()
    assert acts(secret) == frozenset()


@pytest.mark.django_db(transaction=True)
def test_a_key_made_while_its_maker_loses_the_right_never_keeps_it(database_url: str) -> None:
    """Both orders come out the same: one of the two waits for the other's end, and sees what it did."""
    maker = user("mira", "administrator")
    user("boss", "administrator")
    made: list[str] = []
    failed: list[BaseException] = []
    start = threading.Barrier(2)

    def make() -> None:
        start.wait()
        for _ in range(20):
            try:
                made.append(key_of(maker, "settings:write")[1])
            except Forbidden as error:
                failed.append(error)
                break
        connection.close()

    thread = threading.Thread(target=make)
    thread.start()
    start.wait()
    take_role(maker)
    thread.join()
    assert all(acts(secret) == frozenset() for secret in made)
    with pytest.raises(Forbidden):
        key_of(maker, "settings:write")
