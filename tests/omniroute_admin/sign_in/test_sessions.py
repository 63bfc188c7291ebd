"""Sessions: a new key at each sign-in, an end when nobody is there, one that does not move, and ending them all."""

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from omniroute_admin.common.models_sign_in import Session
from omniroute_admin.common.sessions import stored_name
from tests.omniroute_admin.sign_in.conftest import PASSWORD
from tests.processes import manage

pytestmark = pytest.mark.django_db
IDLE = 120


@pytest.fixture
def clock() -> Any:
    with time_machine.travel(timezone.now(), tick=False) as travelled:
        yield travelled


def sign_in(user: Any) -> Client:
    client = Client(headers={"User-Agent": "Firefox of a test"})
    assert client.post("/login", {"username": user.username, "password": PASSWORD}).status_code == 302
    return client


def is_in(client: Client) -> bool:
    return bool(client.get("/account").status_code == 200)


def test_a_sign_in_gives_a_new_key_and_the_old_one_opens_nothing(account: Any, client: Client) -> None:
    row = account("mira", "viewer")
    session = client.session
    session["kept"] = "planted"
    session.save()
    planted = session.session_key
    assert Session.objects.filter(pk=stored_name(planted)).exists()
    client.post("/login", {"username": "mira", "password": PASSWORD})
    assert client.cookies["sessionid"].value != planted
    assert not Session.objects.filter(pk=stored_name(planted)).exists()
    (found,) = Session.objects.filter(user=row)
    assert (found.way, found.address, found.signed_in_at is not None) == ("password", "127.0.0.1", True)


def test_a_session_that_nobody_uses_ends_and_one_in_use_does_not(account: Any, clock: Any) -> None:
    client = sign_in(account())
    for _ in range(3):
        clock.shift(timedelta(minutes=IDLE - 1))
        assert is_in(client)
    clock.shift(timedelta(minutes=IDLE))
    assert not is_in(client)


def test_a_page_that_renews_itself_is_nobody(account: Any, clock: Any) -> None:
    client = sign_in(account("mira", "viewer"))
    for _ in range(2):
        clock.shift(timedelta(minutes=IDLE // 2 - 1))
        assert client.get("/live/ladder").status_code == 200
    clock.shift(timedelta(minutes=2))
    assert client.get("/live/ladder").status_code == 401
    assert not is_in(client)


def test_nought_minutes_are_no_end(account: Any, clock: Any, settings: Any) -> None:
    settings.SESSION_IDLE_MINUTES = 0
    client = sign_in(account())
    clock.shift(timedelta(days=6))
    assert is_in(client)


def test_the_end_after_seven_days_does_not_move_with_use(account: Any, clock: Any) -> None:
    client = sign_in(account("mira", "administrator"))
    for _ in range(7 * 24 - 1):
        clock.shift(timedelta(hours=1))
        session = client.session
        session["touched"] = str(timezone.now())
        session.save()
    assert is_in(client)
    clock.shift(timedelta(hours=1))
    assert not is_in(client)


def test_use_is_written_at_most_once_a_minute_and_never_by_a_poll(account: Any, clock: Any) -> None:
    client = sign_in(account("mira", "viewer"))

    def writes(address: str) -> int:
        with CaptureQueriesContext(connection) as found:
            client.get(address)
        return len([one for one in found if one["sql"].startswith(("UPDATE", "INSERT", "DELETE"))])

    assert writes("/account") == 0
    clock.shift(timedelta(minutes=2))
    assert (writes("/live/ladder"), writes("/account"), writes("/account")) == (0, 1, 0)


def test_a_poll_reads_the_session_and_the_user_in_two_queries_as_before(account: Any) -> None:
    client = sign_in(account("mira", "viewer"))
    version = client.get("/live/ladder").content.decode().split('data-token="')[1].split('"')[0]
    with CaptureQueriesContext(connection) as found:
        assert client.get("/live/ladder", {"v": version}).status_code == 204
    assert len(found) <= 3, [one["sql"] for one in found]


def test_signing_out_everywhere_ends_each_session_at_once(account: Any) -> None:
    row = account("mira", "viewer")
    one, other, stranger = sign_in(row), sign_in(row), sign_in(account("somebody"))
    page = one.get("/account").content.decode()
    assert "2 sessions" in page
    assert page.count("Firefox of a test") == 2
    assert page.count("this one") == 1
    one.post("/account/sign-out", {"where": "others"})
    assert (is_in(one), is_in(other), is_in(stranger)) == (True, False, True)
    again = sign_in(row)
    one.post("/account/sign-out", {"where": "all"})
    assert (is_in(one), is_in(again), is_in(stranger)) == (False, False, True)


def test_an_administrator_signs_somebody_out_with_a_reason(account: Any) -> None:
    row = account("mira", "viewer")
    owner, boss = sign_in(row), sign_in(account("boss", "administrator"))
    assert boss.post(f"/accounts/{row.pk}", {"act": "sign-out", "reason": "laptop stolen"}).status_code == 302
    assert (is_in(owner), is_in(boss)) == (False, True)
    assert "signed out everywhere" in boss.get("/audit?kind=user&what=mira").content.decode()


def test_a_new_password_ends_every_other_session(account: Any) -> None:
    row = account()
    one, other = sign_in(row), sign_in(row)
    new = "another-horse-battery-9"
    before = one.cookies["sessionid"].value
    sent = {"old_password": PASSWORD, "new_password1": new, "new_password2": new}
    assert one.post("/account/password", sent)["Location"] == "/account"
    assert one.cookies["sessionid"].value != before
    assert (is_in(one), is_in(other)) == (True, False)
    assert Session.objects.filter(user=row).count() == 1


def test_a_password_set_by_an_administrator_ends_every_session(account: Any) -> None:
    row, boss = account(), sign_in(account("boss", "administrator"))
    owner, new = sign_in(row), "another-horse-battery-9"
    sent = {"password1": new, "password2": new, "change_reason": "forgotten"}
    assert boss.post(f"/admin/auth/user/{row.pk}/password/", sent).status_code == 302
    assert not is_in(owner)
    assert is_in(boss)


def test_an_account_switched_off_and_on_again_has_no_session_left(account: Any) -> None:
    row = account("mira", "viewer")
    client = sign_in(row)
    for is_active in (False, True):
        row.is_active = is_active
        row.save()
        assert not is_in(client)
    assert not Session.objects.filter(user=row).exists()


def test_a_role_counts_from_the_next_request_on(account: Any) -> None:
    row = account("mira", "operator")
    client = sign_in(row)
    assert client.get("/tuning/budgets/cheap/reset").status_code == 200
    row.groups.set(Group.objects.filter(name="viewer"))
    assert client.get("/tuning/budgets/cheap/reset").status_code == 403


def test_a_session_ended_elsewhere_is_not_brought_back_by_a_request_under_way(account: Any) -> None:
    row = account("mira", "administrator")
    client = sign_in(row)
    held = client.session
    held["written"] = "later"
    Session.objects.all().delete()
    from django.contrib.sessions.backends.base import UpdateError

    with pytest.raises(UpdateError):
        held.save()
    assert not is_in(client)


def test_under_https_cookies_are_of_this_host_alone(tmp_path: Any) -> None:
    code = (
        "from django.conf import settings as s; print(s.SESSION_COOKIE_NAME, s.CSRF_COOKIE_NAME,"
        " s.KNOWN_BROWSER_COOKIE_NAME, s.SESSION_COOKIE_SECURE, s.CSRF_COOKIE_SECURE, s.SECURE_HSTS_SECONDS)"
    )
    words = ("shell", "--no-imports", "--command", code)
    done = manage(*words, SECURE_SSL="true", VAR_DIR=str(tmp_path))
    assert done.stdout.split() == [
        "__Host-sessionid", "__Host-csrftoken", "__Host-known", "True", "True", "31536000",
    ], done.stderr  # fmt: skip
