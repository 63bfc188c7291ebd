"""Signing in, as far as it is pure: counts of tries, claims, codes."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omniroute_admin.common.core.sign_in import (
    ACCOUNT,
    ADDRESS,
    Count,
    Limits,
    account_key,
    given_back,
    hash_code,
    is_app_code,
    name_of_claims,
    next_count,
    numbered,
    plain_code,
    roles_of_claims,
    steps_at,
    wait_words,
)

NOW = datetime(2026, 8, 22, 12, tzinfo=UTC)
LIMITS = Limits(failures=5, lock=timedelta(minutes=15))


def counted(times: int, *, kind: str = ACCOUNT, step: timedelta = timedelta()) -> Count:
    count = Count(tries=0, began_at=NOW)
    for number in range(times):
        count = next_count(count, limits=LIMITS, kind=kind, now=NOW + number * step)
    return count


@pytest.mark.parametrize(("kind", "most"), [(ACCOUNT, 5), (ADDRESS, 20)])
def test_the_last_try_there_is_locks_and_none_before_it(kind: str, most: int) -> None:
    assert counted(most - 1, kind=kind).locked_until is None
    assert counted(most, kind=kind).locked_until == NOW + LIMITS.lock


def test_a_lock_holds_to_its_end_and_not_at_it() -> None:
    count = counted(5)
    end = NOW + LIMITS.lock
    assert count.is_locked(now=end - timedelta(microseconds=1))
    assert not count.is_locked(now=end)
    assert next_count(count, limits=LIMITS, kind=ACCOUNT, now=end).tries == 1


def test_tries_that_are_far_apart_never_lock() -> None:
    assert counted(50, step=timedelta(minutes=15)).locked_until is None


@given(st.integers(1, 40))
def test_a_try_given_back_leaves_the_count_as_it_was(times: int) -> None:
    before = counted(times - 1, kind=ADDRESS)
    if before.locked_until is None:
        after = given_back(next_count(before, limits=LIMITS, kind=ADDRESS, now=NOW), limits=LIMITS, kind=ADDRESS)
        assert after == before


@pytest.mark.parametrize(
    ("seconds", "words"), [(1, "1 minute"), (60, "1 minute"), (61, "2 minutes"), (900, "15 minutes"), (0, "1 minute")]
)
def test_a_wait_is_told_in_whole_minutes_upwards(seconds: int, words: str) -> None:
    assert wait_words(until=NOW + timedelta(seconds=seconds), now=NOW) == words


def test_a_name_is_counted_however_it_is_written() -> None:
    assert len({account_key(name) for name in ("mira", "MIRA", "ｍｉｒａ")}) == 1
    assert account_key("mira") != account_key("mara")


def test_a_code_is_taken_in_its_own_half_minute_and_in_its_neighbours() -> None:
    assert steps_at(now=datetime.fromtimestamp(90, UTC)) == (3, 2, 4)


@pytest.mark.parametrize(
    ("typed", "is_app"), [("123 456", True), ("123-456", True), ("12345", False), ("٣٣٣٣٣٣", False), ("abcdef", False)]
)
def test_a_code_of_an_app_is_six_plain_digits(typed: str, is_app: bool) -> None:
    assert is_app_code(plain_code(typed)) is is_app


def test_a_recovery_code_is_the_same_however_it_is_typed() -> None:
    assert hash_code("ABCD efgh-ijkl mnop") == hash_code("abcd-efgh-ijkl-mnop")


MAPPING = {"ops": "operator", "boss": "administrator", "cn=x,dc=y": "viewer"}


@pytest.mark.parametrize(
    ("claims", "claim", "roles"),
    [
        ({"groups": ["ops", "boss", "other"]}, "groups", ("operator", "administrator")),
        ({"groups": "ops"}, "groups", ("operator",)),
        ({"groups": ["cn=x,dc=y"]}, "groups", ("viewer",)),
        ({"realm": {"roles": ["ops"]}}, "realm.roles", ("operator",)),
        ({"https://example.com/roles": ["ops"]}, "https://example.com/roles", ("operator",)),
        ({"groups": None}, "groups", ()),
        ({"groups": {"ops": True}}, "groups", ()),
        ({"groups": [["ops"], 7, None]}, "groups", ()),
        ({"groups": "ops boss"}, "groups", ()),
        ({"groups": ["OPS"]}, "groups", ()),
        ({"realm": "ops"}, "realm.roles", ()),
        ({}, "groups", ()),
    ],
)
def test_roles_are_what_the_values_of_the_claim_stand_for(claims: Any, claim: str, roles: tuple[str, ...]) -> None:
    assert roles_of_claims(claims, claim=claim, mapping=MAPPING) == roles


@pytest.mark.parametrize(
    ("claims", "name"),
    [
        ({"preferred_username": "mira", "email": "m@example.com"}, "mira"),
        ({"email": "m@example.com"}, "m@example.com"),
        ({"preferred_username": "mira\n<script>"}, "mirascript"),
        ({"preferred_username": "Özgür Ağa"}, "ÖzgürAğa"),
        ({"preferred_username": 7, "email": None}, "sso-"),
        ({"preferred_username": "  "}, "sso-"),
    ],
)
def test_a_new_account_is_named_by_what_one_goes_by(claims: Any, name: str) -> None:
    assert name_of_claims(claims | {"sub": "1"}, issuer="https://a.example").startswith(name)


@given(st.text(max_size=400))
def test_a_name_has_only_signs_that_names_have_and_room_for_a_number(text: str) -> None:
    name = name_of_claims({"preferred_username": text, "sub": "1"}, issuer="https://a.example")
    assert 0 < len(numbered(name, 999)) <= 150
    assert all(sign.isalnum() or sign in "@.+-_" for sign in name)
