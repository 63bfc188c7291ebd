"""A session's cookie is kept as a hash: whoever reads the table is signed in nowhere."""

from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from omniroute_admin.common.models_sign_in import Session
from omniroute_admin.common.sessions import SessionStore, stored_name

pytestmark = pytest.mark.django_db


def test_the_table_holds_no_cookie_and_what_it_holds_signs_nobody_in(client: Client, django_user_model: Any) -> None:
    client.force_login(django_user_model.objects.create_superuser("mira"))
    cookie = client.cookies[settings.SESSION_COOKIE_NAME].value
    (row,) = Session.objects.all()
    assert row.session_key == stored_name(cookie)
    assert cookie not in repr((row.session_key, row.session_data, row.get_decoded()))
    assert client.get("/keys").status_code == 200
    thief = Client()
    thief.cookies[settings.SESSION_COOKIE_NAME] = row.session_key
    assert thief.get("/keys").status_code == 302


def test_a_session_is_kept_changed_renamed_and_ended() -> None:
    session = SessionStore()
    session["a"] = 1
    session.create()
    first = session.session_key
    assert first is not None
    assert (SessionStore(first)["a"], session.exists(first), Session.objects.count()) == (1, True, 1)
    session.cycle_key()
    second = session.session_key
    assert second != first
    assert (SessionStore(second)["a"], session.exists(first), Session.objects.count()) == (1, False, 1)
    session.flush()
    assert Session.objects.count() == 0
    assert SessionStore(second).get("a") is None


def test_signing_out_ends_the_row(client: Client, django_user_model: Any) -> None:
    client.force_login(django_user_model.objects.create_superuser("mira"))
    client.post("/logout")
    assert not Session.objects.exists()
    assert client.get("/keys").status_code == 302


def test_an_unknown_cookie_is_nobody_and_makes_no_row(client: Client) -> None:
    client.cookies[settings.SESSION_COOKIE_NAME] = "x" * 32
    assert client.get("/keys").status_code == 302
    assert not Session.objects.exists()
