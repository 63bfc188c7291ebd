"""Rotation with overlap: a new key takes the place of an old one, which goes on for a while and then stops."""

import io
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from omniroute_admin.common.errors import BadRequest, Conflict
from omniroute_admin.common.history import Actor
from omniroute_admin.common.models import ApiKey
from omniroute_admin.common.selectors.history import Asked, find_entries
from omniroute_admin.common.selectors.key_list import KEY_STATES, keys_in, state_of_key
from omniroute_admin.common.selectors.keys import live_key
from omniroute_admin.common.selectors.revision import current_revision
from omniroute_admin.common.services.key_rotation import rotate_key
from omniroute_admin.common.services.keys import create_key, revoke_key

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 8, 22, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
ACTOR = Actor(name="a test")


def make(**given: Any) -> tuple[ApiKey, str]:
    values: dict[str, Any] = {"name": "router", "scopes": ["pools:read", "metrics:read"], "expires_at": None} | given
    return create_key(**values, actor=ACTOR, reason="", now=NOW)


def rotate(key: ApiKey, hours: float = 24, *, now: datetime = NOW, anyway: bool = False) -> tuple[ApiKey, ApiKey, str]:
    overlap = timedelta(hours=hours)
    return rotate_key(key_id=key.pk, overlap=overlap, anyway=anyway, actor=ACTOR, reason="leaked", now=now)


def lives(secret: str, now: datetime) -> bool:
    return live_key(secret=secret, now=now) is not None


def test_the_new_key_has_what_the_old_one_had_and_lasts_as_long() -> None:
    old, first = make(expires_at=NOW + 90 * 24 * HOUR, calls_per_minute=70)
    later = NOW + 80 * 24 * HOUR
    old, new, second = rotate(old, now=later)
    same = ("name", "scopes", "granted", "calls_per_minute")
    assert [getattr(new, one) for one in same] == [getattr(old, one) for one in same]
    assert (new.expires_at, first != second, new.prefix == second[:12]) == (later + 90 * 24 * HOUR, True, True)
    assert (old.replaced_by, old.replaced_until) == (new, later + 24 * HOUR)


@pytest.mark.parametrize("hours", [0, 1, 24, 720])
def test_the_old_key_goes_on_for_the_overlap_and_not_a_moment_longer(hours: int) -> None:
    old, first = make()
    before = current_revision()
    _, _, second = rotate(old, hours)
    assert current_revision() == before + 1
    end, moment = NOW + hours * HOUR, timedelta(microseconds=1)
    assert [lives(first, end - moment), lives(first, end)] == [True, False]
    assert [lives(second, NOW), lives(second, end)] == [True, True]


def test_an_overlap_gives_no_key_more_time_than_it_had() -> None:
    old, first = make(expires_at=NOW + 2 * HOUR)
    assert rotate(old)[0].replaced_until == NOW + 2 * HOUR
    assert [lives(first, NOW + HOUR), lives(first, NOW + 2 * HOUR)] == [True, False]


@pytest.mark.parametrize("hours", [-1, 721, 10**6])
def test_an_overlap_out_of_range_changes_nothing(hours: int) -> None:
    key, _ = make()
    with pytest.raises(BadRequest) as refused:
        rotate(key, hours)
    assert (refused.value.errors[0].pointer, ApiKey.objects.count()) == ("/overlap", 1)


def test_both_keys_have_a_version_with_the_reason() -> None:
    old, new, _ = rotate(make()[0])
    reasons = {one.prefix: one.history_change_reason for one in ApiKey.history.order_by("history_id")}
    assert reasons == {
        old.prefix: f"Replaced by {new.prefix}…: leaked",
        new.prefix: f"Replaces {old.prefix}…: leaked",
    }
    entries = find_entries(asked=Asked(kinds=("key",)), limit=9)
    acts = {(entry.what.split("(")[1][:12], entry.did) for entry in entries}
    assert acts == {(old.prefix, "made"), (old.prefix, "rotated"), (new.prefix, "made")}


def test_a_key_that_has_ended_or_was_rotated_before_is_rotated_only_when_that_is_said() -> None:
    revoked, expired, replaced = make()[0], make(expires_at=NOW + HOUR)[0], make()[0]
    revoke_key(key=revoked, actor=ACTOR, reason="", now=NOW)
    _, successor, _ = rotate(replaced, 5)
    later = NOW + 2 * HOUR
    for key, words in ((revoked, "is revoked"), (expired, "is expired"), (replaced, f"replaced by {successor.prefix}")):
        count = ApiKey.objects.count()
        with pytest.raises(Conflict, match=words):
            rotate(key, now=later)
        assert ApiKey.objects.count() == count
        key.refresh_from_db()
        before = state_of_key(key=key, now=later), key.replaced_until
        old, new, secret = rotate(key, now=later, anyway=True)
        assert lives(secret, later)
        assert old.replaced_by == new
        if before[1] is not None:
            assert old.replaced_until == before[1]
        if before[0] != "live":
            assert state_of_key(key=old, now=later) != "live"


def test_each_key_is_in_the_list_of_its_one_state() -> None:
    live, expired, revoked = make()[0], make(expires_at=NOW + HOUR)[0], make()[0]
    gone, going = make()[0], make()[0]
    revoke_key(key=revoked, actor=ACTOR, reason="", now=NOW)
    ended, going_on = rotate(gone, 0), rotate(going, 48)
    later = NOW + 3 * HOUR
    listed = {state: {key.pk for key in keys_in(state=state, now=later)} for state in KEY_STATES}
    assert listed == {
        "live": {live.pk, going.pk, ended[1].pk, going_on[1].pk},
        "expired": {expired.pk},
        "replaced": {gone.pk},
        "revoked": {revoked.pk},
    }
    for state, keys in listed.items():
        assert {state_of_key(key=key, now=later) for key in ApiKey.objects.filter(pk__in=keys)} == {state}


def run(*arguments: str) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    call_command("rotate_key", *arguments, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def test_the_command_prints_the_new_key_alone_on_standard_output(time_machine_at: Any) -> None:
    key, _ = make()
    with time_machine_at(NOW):
        out, err = run(key.prefix, "--overlap", "2", "--reason", "yearly")
    new = ApiKey.objects.exclude(pk=key.pk).get()
    key.refresh_from_db()
    assert (out.strip()[:12], out.strip() in err, key.replaced_until) == (new.prefix, False, NOW + 2 * HOUR)
    assert (new.made_by, new.maker_id) == ("command rotate_key", None)
    assert key.prefix in err
    assert ApiKey.history.get(id=new.pk).history_change_reason == f"Replaces {key.prefix}…: yearly"


def test_the_command_says_what_is_wrong_and_makes_nothing(time_machine_at: Any) -> None:
    key, secret = make()
    rotate(key)
    for arguments, words in (
        ((key.prefix,), "replaced by"),
        ((key.prefix, "--overlap", "-1"), "overlap"),
        ((key.prefix, "--overlap", "999999999"), "overlap"),
        (("orl_nothing!",), "No key"),
    ):
        with time_machine_at(NOW), pytest.raises(CommandError, match=words):
            run(*arguments)
    with pytest.raises(CommandError, match="first 12 characters alone") as refused:
        run(secret)
    assert secret not in str(refused.value)
    assert ApiKey.objects.count() == 2
    with time_machine_at(NOW):
        run(key.prefix, "--anyway")
    assert ApiKey.objects.count() == 3
