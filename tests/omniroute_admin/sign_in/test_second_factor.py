"""The second factor of local accounts: set up, asked for, counted once, kept encrypted, removed (RFC 6238)."""

import re
from datetime import timedelta
from typing import Any

import pyotp
import pytest
import time_machine
from django.test import Client
from django.utils import timezone

from omniroute_admin.common.errors import BadRequest
from omniroute_admin.common.history import Actor
from omniroute_admin.common.models import UserVersion
from omniroute_admin.common.models_sign_in import RecoveryCode, SecondFactor, SignInCount
from omniroute_admin.common.services.second_factors import (
    confirm_second_factor,
    secret_of,
    start_second_factor,
    takes_code,
)
from tests.omniroute_admin.sign_in.conftest import PASSWORD

pytestmark = pytest.mark.django_db
FAILURES = 5


def code_of(user: Any, *, steps: int = 0) -> str:
    secret = secret_of(SecondFactor.objects.get(user=user))
    assert secret is not None
    return pyotp.TOTP(secret).at(timezone.now(), counter_offset=steps)


def set_up(user: Any) -> list[str]:
    """Give an account a second factor; the code that confirmed it was of the step before."""
    now = timezone.now()
    start_second_factor(user=user, now=now)
    return confirm_second_factor(user=user, code=code_of(user, steps=-1), actor=Actor(name="t"), now=now)


def say_password(client: Client, name: str = "mira") -> Any:
    return client.post("/login", {"username": name, "password": PASSWORD, "next": "/timeline"})


def is_in(client: Client) -> bool:
    return bool(client.get("/account").status_code == 200)


@pytest.fixture(autouse=True)
def clock() -> Any:
    with time_machine.travel(timezone.now().replace(second=5, microsecond=0), tick=False) as travelled:
        yield travelled


def test_the_whole_way_on_the_page_of_ones_account(account: Any, client: Client) -> None:
    row = account("mira", "viewer")
    client.force_login(row)
    elsewhere = Client()
    elsewhere.force_login(row)
    page = "/account/second-factor"
    assert client.post(page, {"act": "start", "password": "wrong"}).status_code == 400
    assert not SecondFactor.objects.exists()
    assert client.post(page, {"act": "start", "password": PASSWORD})["Location"] == page
    shown = client.get(page)
    secret = secret_of(SecondFactor.objects.get())
    assert secret is not None
    assert " ".join(re.findall("....", secret)) in shown.content.decode()
    assert "<svg" in shown.content.decode()
    assert "style=" not in shown.content.decode()
    assert "no-store" in shown["Cache-Control"]
    assert client.post(page, {"act": "confirm", "code": "000000"}).status_code == 400
    assert SecondFactor.objects.get().confirmed_at is None
    done = client.post(page, {"act": "confirm", "code": code_of(row)})
    codes = re.findall(r"<code>((?:[a-z2-7]{4}-){3}[a-z2-7]{4})</code>", done.content.decode())
    assert len(set(codes)) == 10
    assert "no-store" in done["Cache-Control"]
    assert not any(code in client.get(page).content.decode() for code in codes)
    assert is_in(client)
    assert not is_in(elsewhere)
    version = UserVersion.objects.filter(id=row.pk).first()
    assert version is not None
    assert (version.act, version.history_actor) == ("second factor set up", "mira")


def test_it_is_asked_for_after_the_password_and_nobody_is_in_before(account: Any, client: Client) -> None:
    row = account("mira", "viewer")
    set_up(row)
    assert say_password(client)["Location"] == "/login/code"
    assert not is_in(client)
    assert client.get("/", follow=False)["Location"].startswith("/login")
    assert client.get("/api/v1/settings").status_code == 401
    assert client.post("/login/code", {"code": "000000"}).status_code == 400
    assert not is_in(client)
    response = client.post("/login/code", {"code": code_of(row)})
    assert (response.status_code, response["Location"]) == (302, "/timeline")
    assert is_in(client)


def test_nobody_comes_in_by_a_code_alone(account: Any, client: Client) -> None:
    row = account()
    set_up(row)
    assert client.post("/login/code", {"code": code_of(row)})["Location"] == "/login"
    assert not is_in(client)


def test_the_time_between_password_and_code_is_short_and_ends_with_the_password(
    account: Any, client: Client, clock: Any
) -> None:
    row = account()
    set_up(row)
    say_password(client)
    clock.shift(timedelta(minutes=11))
    assert client.post("/login/code", {"code": code_of(row)})["Location"] == "/login"
    say_password(client)
    row.set_password("another-horse-battery-9")
    row.save()
    assert client.post("/login/code", {"code": code_of(row)})["Location"] == "/login"
    assert not is_in(client)


@pytest.mark.parametrize(("steps", "is_taken"), [(-2, False), (-1, True), (0, True), (1, True), (2, False)])
def test_a_clock_may_be_half_a_minute_off(account: Any, clock: Any, steps: int, is_taken: bool) -> None:
    row = account()
    set_up(row)
    clock.shift(timedelta(minutes=10))
    assert takes_code(user=row, code=code_of(row, steps=steps), now=timezone.now()) is is_taken


def test_a_code_counts_once_and_so_does_every_older_one(account: Any, clock: Any) -> None:
    row = account()
    set_up(row)
    clock.shift(timedelta(minutes=10))
    now = timezone.now()
    old, code = code_of(row, steps=-1), code_of(row)
    assert takes_code(user=row, code=f"{code[:3]} {code[3:]}", now=now)
    assert not takes_code(user=row, code=code, now=now)
    assert not takes_code(user=row, code=old, now=now)


def test_the_code_that_set_it_up_does_not_open_it(account: Any, client: Client) -> None:
    row, now = account(), timezone.now()
    start_second_factor(user=row, now=now)
    code = code_of(row)
    confirm_second_factor(user=row, code=code, actor=Actor(name="t"), now=now)
    say_password(client)
    assert client.post("/login/code", {"code": code}).status_code == 400


def test_a_recovery_code_stands_in_once_however_it_is_typed(account: Any, client: Client) -> None:
    codes = set_up(account("mira", "viewer"))
    say_password(client)
    assert client.post("/login/code", {"code": codes[0].upper().replace("-", " ")}).status_code == 302
    assert is_in(client)
    again = Client()
    say_password(again)
    assert again.post("/login/code", {"code": codes[0]}).status_code == 400
    assert again.post("/login/code", {"code": codes[1]}).status_code == 302


def test_codes_are_guessed_no_more_often_than_passwords(account: Any) -> None:
    row = account()
    set_up(row)
    answers = []
    for _ in range(FAILURES + 1):
        client = Client()
        answers.append(say_password(client).status_code)
        answers.append(client.post("/login/code", {"code": "000000"}).status_code)
    assert answers == [302, 400] * FAILURES + [429, 302]


def test_the_right_password_before_each_code_forgets_no_wrong_code(account: Any, client: Client) -> None:
    row = account()
    set_up(row)
    for _ in range(FAILURES):
        say_password(client)
        client.post("/login/code", {"code": "000000"})
    refused = client.post("/login/code", {"code": code_of(row)})
    assert refused.status_code == 429
    assert int(refused["Retry-After"]) > 0


def test_nothing_of_it_lies_in_the_open(account: Any, settings: Any) -> None:
    row = account()
    codes = set_up(row)
    factor = SecondFactor.objects.get()
    secret = secret_of(factor)
    assert secret
    kept = repr([*SecondFactor.objects.values(), *RecoveryCode.objects.values(), *UserVersion.objects.values()])
    assert secret not in kept
    assert not any(code in kept or code.replace("-", "") in kept for code in codes)
    settings.TOTP_KEY = "another-key-of-more-than-thirty-two-characters"
    assert secret_of(factor) is None
    assert not takes_code(user=row, code="000000", now=timezone.now())
    assert takes_code(user=row, code=codes[0], now=timezone.now())


def test_one_that_cannot_be_read_is_told_and_counts_as_no_failure(account: Any, client: Client, settings: Any) -> None:
    row = account("mira", "viewer")
    codes = set_up(row)
    code = code_of(row)
    say_password(client)
    told = "cannot be read on this installation"
    assert told not in client.get("/login/code").content.decode()
    settings.TOTP_KEY = "another-key-of-more-than-thirty-two-characters"
    assert told in client.get("/login/code").content.decode()
    for _ in range(FAILURES + 1):
        answer = client.post("/login/code", {"code": code})
        assert (answer.status_code, answer.context["form"].errors["code"][0].count(told)) == (400, 1)
    assert not SignInCount.objects.filter(tries__gt=0).exists()
    assert client.post("/login/code", {"code": codes[0]}).status_code == 302
    assert is_in(client)


def test_a_wrong_recovery_code_counts_also_where_the_second_factor_cannot_be_read(
    account: Any, client: Client, settings: Any
) -> None:
    codes = set_up(account())
    settings.TOTP_KEY = "another-key-of-more-than-thirty-two-characters"
    say_password(client)
    answers = [client.post("/login/code", {"code": "abcd-efgh-abcd-efgh"}) for _ in range(FAILURES)]
    assert {answer.status_code for answer in answers} == {400}
    assert answers[0].context["form"].errors["code"] == ["This recovery code is wrong or was used before."]
    assert client.post("/login/code", {"code": codes[0]}).status_code == 429


def test_the_page_of_the_account_says_so_too(account: Any, client: Client, settings: Any) -> None:
    row = account()
    codes = set_up(row)
    client.force_login(row)
    settings.TOTP_KEY = "another-key-of-more-than-thirty-two-characters"
    sent = {"act": "remove", "password": PASSWORD}
    for _ in range(FAILURES + 1):
        answer = client.post("/account/second-factor", sent | {"code": "000000"})
        assert answer.status_code == 400
        assert "cannot be read on this installation" in answer.content.decode()
    assert client.post("/account/second-factor", sent | {"code": codes[0]}).status_code == 302
    assert not SecondFactor.objects.exists()


def test_removing_asks_for_password_and_code(account: Any, client: Client, clock: Any) -> None:
    row = account()
    set_up(row)
    client.force_login(row)
    page = "/account/second-factor"
    for wrong in ({"password": PASSWORD, "code": "000000"}, {"password": "wrong", "code": code_of(row)}, {}):
        assert client.post(page, {"act": "remove"} | wrong).status_code == 400
        assert SecondFactor.objects.exists()
    clock.shift(timedelta(minutes=1))
    right = {"act": "remove", "password": PASSWORD, "code": code_of(row)}
    assert client.post(page, right)["Location"] == "/account"
    assert not SecondFactor.objects.exists()
    assert UserVersion.objects.filter(id=row.pk, act="second factor removed").exists()


def test_new_recovery_codes_end_the_old_ones(account: Any, client: Client) -> None:
    row = account()
    old = set_up(row)
    client.force_login(row)
    sent = {"act": "renew", "password": PASSWORD, "code": old[0]}
    done = client.post("/account/second-factor", sent).content.decode()
    assert done.count("<li><code>") == 10
    assert not takes_code(user=row, code=old[1], now=timezone.now())


def test_an_administrator_removes_one_with_a_reason_and_its_sessions_end(account: Any, client: Client) -> None:
    row, boss = account("mira", "viewer"), account("boss", "administrator")
    set_up(row)
    owner = Client()
    owner.force_login(row)
    client.force_login(boss)
    page = f"/accounts/{row.pk}"
    assert client.post(page, {"act": "remove-factor", "reason": ""}).status_code == 400
    assert client.post(page, {"act": "remove-factor", "reason": "phone lost"}).status_code == 302
    assert not SecondFactor.objects.exists()
    assert not is_in(owner)
    version = UserVersion.objects.filter(id=row.pk, act="second factor removed").get()
    assert (version.history_actor, version.history_change_reason) == ("boss", "phone lost")


def test_where_all_need_one_it_is_set_up_before_the_first_page(account: Any, client: Client, settings: Any) -> None:
    row = account("mira", "viewer")
    before = Client()
    before.force_login(row)
    assert is_in(before)
    settings.REQUIRE_TOTP = True
    assert not is_in(before)
    assert say_password(client)["Location"] == "/login/second-factor"
    assert not is_in(client)
    assert client.post("/login/second-factor", {"code": "000000"}).status_code == 400
    assert not is_in(client)
    done = client.post("/login/second-factor", {"code": code_of(row)})
    assert done.content.decode().count("<li><code>") == 10
    assert 'href="/timeline"' in done.content.decode()
    assert is_in(client)
    sent = {"act": "remove", "password": PASSWORD, "code": code_of(row, steps=1)}
    assert client.post("/account/second-factor", sent).status_code == 400
    assert SecondFactor.objects.exists()


def test_a_second_one_is_not_begun_over_the_first(account: Any, client: Client) -> None:
    row = account()
    set_up(row)
    box = SecondFactor.objects.get().secret_box
    client.force_login(row)
    assert client.post("/account/second-factor", {"act": "start", "password": PASSWORD}).status_code == 409
    assert SecondFactor.objects.get().secret_box == box
    with pytest.raises(BadRequest):
        confirm_second_factor(user=row, code=code_of(row), actor=Actor(name="t"), now=timezone.now())


def test_an_account_of_single_sign_on_has_none_of_its_own(account: Any, client: Client) -> None:
    row = account()
    row.set_unusable_password()
    row.save()
    client.force_login(row)
    assert client.get("/account/second-factor")["Location"] == "/account"
    assert client.post("/account/second-factor", {"act": "start", "password": ""})["Location"] == "/account"
