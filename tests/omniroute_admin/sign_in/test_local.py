"""Local accounts: locks that hold everywhere and shut no owner out, and what is told to whom."""

import logging
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.db import connections
from django.test import Client
from django.utils import timezone

from omniroute_admin.common.errors import TooManyTries
from omniroute_admin.common.models import UserVersion
from omniroute_admin.common.models_sign_in import SignInCount
from omniroute_admin.common.services.sign_in_counts import begin_try, keys_of_sign_in
from tests.omniroute_admin.sign_in.conftest import PASSWORD

pytestmark = pytest.mark.django_db
FAILURES, MINUTES = 5, 15


def try_in(client: Client, name: str = "mira", password: str = "wrong", address: str = "10.0.0.1") -> Any:
    return client.post("/login", {"username": name, "password": password}, REMOTE_ADDR=address)


def fail(times: int, *, name: str = "mira", addresses: Any = lambda number: f"10.0.0.{number}") -> list[Any]:
    return [try_in(Client(), name, address=addresses(number)) for number in range(times)]


def is_in(client: Client) -> bool:
    return bool(client.get("/account").status_code == 200)


def test_after_the_last_failure_even_the_right_password_is_not_taken_and_the_page_says_for_how_long(
    account: Any, client: Client
) -> None:
    account()
    assert [response.status_code for response in fail(FAILURES)] == [200] * FAILURES
    response = try_in(client, password=PASSWORD, address="10.9.9.9")
    assert response.status_code == 429
    assert "The next one is taken in 15 minutes." in response.content.decode()
    assert 0 < int(response["Retry-After"]) <= MINUTES * 60
    assert not is_in(client)


def test_what_is_told_is_the_same_whether_there_is_such_an_account(account: Any) -> None:
    account("mira")
    account("closed", is_active=False)
    account("sso").set_unusable_password()

    def told(name: str) -> list[tuple[int, str]]:
        responses = fail(FAILURES + 1, name=name)
        return [(each.status_code, each.content.decode().replace(name, "NAME").split("<main")[1]) for each in responses]

    def plain(name: str) -> Any:
        import re

        return [(status, re.sub(r'name="csrfmiddlewaretoken" value="\w+"', "", text)) for status, text in told(name)]

    assert plain("mira") == plain("nobody") == plain("closed") == plain("sso")


def test_a_lock_ends_by_itself_and_tries_meanwhile_do_not_make_it_longer(account: Any, client: Client) -> None:
    account()
    now = timezone.now()
    with time_machine.travel(now, tick=False) as clock:
        fail(FAILURES)
        clock.shift(timedelta(minutes=MINUTES) - timedelta(seconds=1))
        assert try_in(client, password=PASSWORD).status_code == 429
        clock.shift(timedelta(seconds=1))
        assert try_in(client, password=PASSWORD).status_code == 302


def test_failures_that_are_long_ago_count_no_more(account: Any) -> None:
    account()
    with time_machine.travel(timezone.now(), tick=False) as clock:
        fail(FAILURES - 1)
        clock.shift(timedelta(minutes=MINUTES))
        fail(FAILURES - 1)
        assert try_in(Client(), password=PASSWORD, address="10.7.7.7").status_code == 302


def test_a_success_clears_the_failures_of_the_account(account: Any) -> None:
    account()
    for _ in range(3):
        fail(FAILURES - 1)
        assert try_in(Client(), password=PASSWORD, address="10.7.7.7").status_code == 302


def test_who_guesses_one_password_at_many_accounts_is_locked_out_by_address(account: Any, client: Client) -> None:
    account()
    for number in range(FAILURES * 4):
        assert try_in(Client(), f"user-{number}", address="10.0.0.66").status_code == 200
    assert try_in(client, password=PASSWORD, address="10.0.0.66").status_code == 429
    assert try_in(client, password=PASSWORD, address="10.0.0.67").status_code == 302


def test_ones_own_success_in_between_does_not_clear_an_address(account: Any) -> None:
    account("mallory")
    for number in range(FAILURES * 4):
        assert try_in(Client(), f"user-{number}", address="10.0.0.66").status_code == 200
        if number < FAILURES * 4 - 1:
            assert try_in(Client(), "mallory", PASSWORD, address="10.0.0.66").status_code == 302
    assert try_in(Client(), "mallory", PASSWORD, address="10.0.0.66").status_code == 429


def test_a_network_of_ipv6_is_one_address(account: Any, client: Client) -> None:
    for number in range(FAILURES * 4):
        try_in(Client(), f"user-{number}", address=f"2001:db8:0:1::{number:x}")
    assert try_in(client, address="2001:db8:0:1:ffff::1").status_code == 429
    assert try_in(client, address="2001:db8:0:2::1").status_code == 200


def test_behind_a_proxy_the_address_is_the_last_that_it_names(settings: Any, client: Client) -> None:
    settings.TRUST_PROXY = True

    def asked(forged: str, seen: str) -> int:
        headers = {"X-Forwarded-For": f"{forged}, {seen}"}
        sent = {"username": f"u-{forged}", "password": "x"}
        return int(Client().post("/login", sent, headers=headers, REMOTE_ADDR="10.0.0.1").status_code)

    assert [asked(f"192.0.2.{number}", "203.0.113.5") for number in range(FAILURES * 4)] == [200] * (FAILURES * 4)
    assert asked("192.0.2.99", "203.0.113.5") == 429
    assert asked("203.0.113.5", "203.0.113.6") == 200


def test_nobody_keeps_the_owner_out_by_failing_on_purpose(account: Any) -> None:
    """A browser that signed in before goes on, whatever strangers do, from its own address or another."""
    account()
    known = Client()
    assert try_in(known, password=PASSWORD, address="10.0.0.5").status_code == 302
    known.post("/logout")
    for _ in range(3):
        fail(FAILURES * 4, addresses=lambda _: "10.0.0.5")
    assert try_in(Client(), password=PASSWORD, address="10.8.8.8").status_code == 429
    assert try_in(known, password=PASSWORD, address="10.0.0.5").status_code == 302


def test_a_known_browser_has_no_more_tries_than_others_and_locks_itself_alone(account: Any) -> None:
    account()
    known = Client()
    try_in(known, password=PASSWORD)
    known.post("/logout")
    assert [try_in(known).status_code for _ in range(FAILURES)] == [200] * FAILURES
    assert try_in(known, password=PASSWORD).status_code == 429
    assert try_in(Client(), password=PASSWORD).status_code == 302


def test_the_mark_of_a_known_browser_is_of_one_account_and_cannot_be_made_up(account: Any) -> None:
    account("mira")
    account("mallory")
    known = Client()
    try_in(known, "mallory", PASSWORD)
    mark = known.cookies["known"]
    assert (mark["httponly"], mark["samesite"]) == (True, "Lax")
    assert "mallory" not in mark.value
    fail(FAILURES)
    known.post("/logout")
    assert try_in(known, "mira", PASSWORD).status_code == 429
    forged = Client()
    forged.cookies["known"] = "WyJhIiwiYiJd:1abc:forged"
    assert try_in(forged, "mira", PASSWORD).status_code == 429


def test_many_tries_at_once_are_no_more_than_there_are(transactional_db: None, account: Any) -> None:
    account()
    now = timezone.now()
    keys = keys_of_sign_in(account="mira", address="10.0.0.1", browser=None)

    def one(_: int) -> bool:
        try:
            begin_try(keys=keys, now=now)
        except TooManyTries:
            return False
        finally:
            connections.close_all()
        return True

    with ThreadPoolExecutor(8) as together:
        assert sum(together.map(one, range(24))) == FAILURES


def test_another_way_of_writing_a_name_has_no_tries_of_its_own(account: Any) -> None:
    account()
    for name in ("mira", "MIRA", "Mira", "ｍｉｒａ", "mirA"):
        try_in(Client(), name, address="10.3.3.3")
    assert try_in(Client(), "mira", PASSWORD, address="10.8.8.8").status_code == 429


def test_every_failure_and_lock_is_logged_without_a_password_or_an_unknown_name(account: Any, caplog: Any) -> None:
    account()
    with caplog.at_level(logging.INFO, "omniroute_admin.security"):
        fail(FAILURES)
        try_in(Client(), "my-secret-in-the-wrong-field", "also-secret")
        try_in(Client(), "mira\n2026 CRITICAL forged", "x")
    lines = [record.getMessage() for record in caplog.records if record.name == "omniroute_admin.security"]
    assert lines[0] == "sign-in failed: account mira, from 10.0.0.0"
    assert len([line for line in lines if line.startswith("sign-in failed")]) == FAILURES + 2
    assert len([line for line in lines if line.startswith("sign-in locked until")]) == 1
    for secret in ("wrong", "secret", "forged"):
        assert secret not in caplog.text
    kept = repr(list(SignInCount.objects.values()))
    assert "mira" not in kept
    assert "secret" not in kept


def test_an_administrator_forgets_the_failures_with_a_reason(account: Any, client: Client) -> None:
    row, boss = account(), account("boss", "administrator")
    fail(FAILURES)
    client.force_login(boss)
    page = f"/accounts/{row.pk}"
    assert "locked for 15 minutes more" in client.get(page).content.decode()
    assert client.post(page, {"act": "unlock", "reason": " "}).status_code == 400
    assert try_in(Client(), password=PASSWORD, address="10.8.8.8").status_code == 429
    assert client.post(page, {"act": "unlock", "reason": "she called"}).status_code == 302
    assert try_in(Client(), password=PASSWORD, address="10.8.8.8").status_code == 302
    version = UserVersion.objects.filter(id=row.pk).first()
    assert version is not None
    assert (version.act, version.history_actor, version.history_change_reason) == (
        "sign-in unlocked", "boss", "she called",
    )  # fmt: skip
    assert "sign-in unlocked" in client.get("/audit?kind=user").content.decode()


@pytest.mark.parametrize("words", [["unlock", "mira"], ["unlock"]])
def test_the_server_is_the_way_out_for_a_sole_administrator(account: Any, words: list[str], capsys: Any) -> None:
    account("mira", "administrator")
    fail(FAILURES)
    call_command("sign_in", *words)
    assert "forgotten" in capsys.readouterr().out
    assert try_in(Client(), password=PASSWORD, address="10.8.8.8").status_code == 302


def test_the_command_says_what_it_cannot_do(account: Any) -> None:
    for words in (["sign-out"], ["unlock", "nobody"], ["link", "mira", "--subject", "1"]):
        account("mira") if not get_user_model().objects.exists() else None
        with pytest.raises(CommandError):
            call_command("sign_in", *words)


def test_a_password_asked_for_again_is_counted_too(account: Any, client: Client) -> None:
    client.force_login(account())
    new = {"new_password1": "another-horse-battery-9", "new_password2": "another-horse-battery-9"}
    for _ in range(FAILURES):
        assert client.post("/account/password", {"old_password": "guess"} | new).status_code == 400
    last = client.post("/account/password", {"old_password": PASSWORD} | new)
    assert "Too many failed tries" in last.content.decode()
    again = client.post("/account/second-factor", {"act": "start", "password": PASSWORD})
    for refused in (last, again):
        assert refused.status_code == 429
        assert 0 < int(refused["Retry-After"]) <= MINUTES * 60
    assert get_user_model().objects.get().check_password(PASSWORD)


def test_the_admin_has_no_login_page_and_no_password_page_of_its_own(account: Any, client: Client) -> None:
    assert client.get("/admin/login/")["Location"].startswith("/login?next=")
    sent = client.post("/admin/login/", {"username": account().username, "password": PASSWORD})
    assert sent["Location"].startswith("/login?next=")
    assert not is_in(client)
    client.force_login(account("boss", "administrator"))
    assert client.get("/admin/password_change/")["Location"] == "/account/password"
