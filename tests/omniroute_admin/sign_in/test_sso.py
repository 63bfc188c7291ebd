"""Single sign-on through a real provider: the whole code flow with PKCE, state and nonce, and all that is refused."""

import logging
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.test import Client

from omniroute_admin.common.adapters import oidc
from omniroute_admin.common.models import UserVersion
from omniroute_admin.common.models_sign_in import OidcIdentity, Session
from omniroute_admin.common.scopes import roles_of_user
from omniroute_admin.common.selectors.revision import current_revision
from omniroute_admin.common.services.sessions import end_sessions
from omniroute_admin.common.sessions import stored_name
from tests.omniroute_admin.sign_in.conftest import PASSWORD
from tests.omniroute_admin.sign_in.provider import SECRET, Provider

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _forget_the_provider() -> None:
    oidc._made.cache_clear()


def come_in(client: Client, *, wanted: str = "/") -> Any:
    """Go the whole way as a browser does: here, there, and back."""
    there = client.get("/login/sso", {"next": wanted})
    assert there.status_code == 302, there.content
    if there["Location"] == "/login":
        return there
    back = requests.get(there["Location"], allow_redirects=False, timeout=10)
    address = urlsplit(back.headers["Location"])
    assert (address.netloc, address.path) == ("testserver", "/login/sso/callback")
    return client.get(f"{address.path}?{address.query}")


def is_in(client: Client) -> bool:
    return bool(client.get("/account").status_code == 200)


def test_somebody_new_gets_an_account_without_a_role_or_a_password(client: Client, provider: Provider) -> None:
    before = current_revision()
    response = come_in(client, wanted="/timeline")
    assert (response.status_code, response["Location"]) == (302, "/timeline")
    user = get_user_model().objects.get()
    assert (user.username, roles_of_user(user), user.is_superuser) == ("mira", (), False)
    assert not user.has_usable_password()
    assert client.get("/").status_code == 403
    assert b"single sign-on" in client.get("/account").content
    (version,) = UserVersion.objects.all()
    assert (version.history_actor, version.roles) == ("single sign-on", [])
    assert current_revision() > before


def test_the_flow_uses_pkce_state_and_nonce_and_asks_for_nothing_that_is_not_configured(
    client: Client, provider: Provider
) -> None:
    there = client.get("/login/sso")["Location"]
    asked = {name: values[0] for name, values in parse_qs(urlsplit(there).query).items()}
    assert asked["scope"] == "openid profile email"
    assert asked["code_challenge_method"] == "S256"
    assert asked["redirect_uri"] == "http://testserver/login/sso/callback"
    assert len(asked["state"]) > 20
    assert len(asked["nonce"]) >= 20
    assert come_in(client)["Location"] == "/"
    assert len(provider.sent[0]["code_verifier"]) > 40
    assert SECRET not in str(provider.asked)


def test_the_same_person_is_the_same_account_whatever_else_they_are_called(client: Client, provider: Provider) -> None:
    come_in(client)
    provider.person |= {"preferred_username": "renamed", "email": "other@example.com"}
    come_in(Client())
    assert [user.username for user in get_user_model().objects.all()] == ["mira"]


@pytest.mark.parametrize("is_checked", [True, False, None])
def test_a_mail_address_or_name_of_a_local_account_takes_nothing_over(
    client: Client, provider: Provider, account: Any, is_checked: Any
) -> None:
    local = account("mira", "administrator", email="mira@example.com")
    provider.person |= {"email_verified": is_checked}
    come_in(client)
    assert client.get("/account").context["user"].username == "mira-2"
    assert OidcIdentity.objects.get().user_id != local.pk
    made = get_user_model().objects.get(username="mira-2")
    assert made.email == ("mira@example.com" if is_checked is True else "")
    assert client.get("/keys").status_code == 403


def test_roles_come_and_go_with_the_claim_and_are_history(client: Client, provider: Provider, settings: Any) -> None:
    settings.OIDC_ROLES = {"ops": "operator", "boss": "administrator"}
    provider.person["groups"] = ["ops", "unknown"]
    come_in(client)
    user = get_user_model().objects.get()
    assert roles_of_user(user) == ("operator",)
    assert client.get("/tuning").status_code == 200
    user.groups.add(Group.objects.get(name="auditor"))
    before = current_revision()
    for groups, roles in (("boss", ["administrator", "auditor"]), (None, ["auditor"]), ([], ["auditor"])):
        provider.person["groups"] = groups
        come_in(Client())
        assert sorted(user.groups.values_list("name", flat=True)) == roles
    assert current_revision() == before + 2
    last = UserVersion.objects.order_by("-history_id").first()
    assert last is not None
    assert (last.history_actor, last.roles, last.history_change_reason) == (
        "single sign-on", ["auditor"], "as the claim groups says",
    )  # fmt: skip
    # Taken at the provider, it counts in sessions that are open.
    assert client.get("/tuning/import").status_code == 403


def test_a_claim_deep_in_the_token_is_found_by_its_path(client: Client, provider: Provider, settings: Any) -> None:
    settings.OIDC_ROLES, settings.OIDC_ROLES_CLAIM = {"seer": "viewer"}, "realm_access.roles"
    provider.person["realm_access"] = {"roles": ["seer"]}
    come_in(client)
    assert client.get("/").status_code == 200


def test_a_claim_never_makes_a_superuser(client: Client, provider: Provider, settings: Any) -> None:
    settings.OIDC_ROLES = {"boss": "administrator"}
    provider.person |= {"groups": ["boss"], "is_superuser": True, "is_staff": True}
    come_in(client)
    user = get_user_model().objects.get()
    assert (user.is_superuser, user.is_staff, roles_of_user(user)) == (False, False, ("administrator",))


def test_somebody_unknown_stays_out_where_that_is_set_until_an_administrator_links_them(
    client: Client, provider: Provider, settings: Any, account: Any
) -> None:
    settings.OIDC_NEW_ACCOUNTS = False
    local, boss = account("local", "viewer"), account("boss", "administrator")
    assert come_in(client)["Location"] == "/login"
    assert "an administrator links an account" in client.get("/login").content.decode()
    assert get_user_model().objects.count() == 2
    desk = Client()
    desk.force_login(boss)
    page = f"/accounts/{local.pk}"
    assert desk.post(page, {"act": "link", "subject": "1234", "reason": ""}).status_code == 400
    assert desk.post(page, {"act": "link", "subject": "", "reason": "asked"}).status_code == 400
    assert desk.post(page, {"act": "link", "subject": "1234", "reason": "asked"}).status_code == 302
    assert desk.post(f"/accounts/{boss.pk}", {"act": "link", "subject": "1234", "reason": "x"}).status_code == 409
    come_in(client)
    assert client.get("/account").context["user"] == local
    assert UserVersion.objects.filter(id=local.pk, act="single sign-on linked", history_actor="boss").exists()
    identity = OidcIdentity.objects.get()
    assert desk.post(page, {"act": "unlink", "identity": identity.pk, "reason": "left"}).status_code == 302
    assert come_in(Client())["Location"] == "/login"


def test_an_administrator_links_nobody_to_a_superuser(provider: Provider, account: Any, client: Client) -> None:
    root, boss = account("root", is_superuser=True), account("boss", "administrator")
    client.force_login(boss)
    for act in ("link", "unlock", "sign-out", "remove-factor", "unlink"):
        response = client.post(f"/accounts/{root.pk}", {"act": act, "subject": "1234", "reason": "x"})
        assert response.status_code == 403, act
    assert not OidcIdentity.objects.exists()


def test_an_account_that_is_switched_off_stays_out(client: Client, provider: Provider) -> None:
    come_in(client)
    user = get_user_model().objects.get()
    user.is_active = False
    user.save()
    assert not is_in(client)
    assert come_in(client)["Location"] == "/login"
    assert not is_in(client)


def wrong(name: str, value: Any) -> Any:
    return lambda provider: setattr(provider, name, value)


def signed(name: str) -> Any:
    return lambda provider: setattr(provider, "sign", getattr(provider, name))


LONG_AGO = 1_000_000_000


@pytest.mark.parametrize(
    ("misbehave", "why"),
    [
        pytest.param(signed("by_another_key"), "bad_signature", id="signed by another key"),
        pytest.param(signed("by_nothing"), "unsupported_algorithm", id="not signed"),
        pytest.param(signed("by_the_shared_secret"), "unsupported_algorithm", id="signed by the secret"),
        pytest.param(signed("by_the_public_key_as_a_secret"), "unsupported_algorithm", id="signed by the public key"),
        pytest.param(wrong("claims", {"aud": "somebody-else"}), "aud", id="another audience"),
        pytest.param(wrong("claims", {"aud": None}), "aud", id="no audience"),
        pytest.param(wrong("claims", {"azp": "somebody-else"}), "azp", id="for another party"),
        pytest.param(wrong("claims", {"iss": "https://evil.example"}), "iss", id="another issuer"),
        pytest.param(wrong("claims", {"exp": LONG_AGO}), "expired_token", id="expired"),
        pytest.param(wrong("claims", {"exp": None}), "exp", id="no end"),
        pytest.param(wrong("claims", {"iat": None}), "iat", id="no beginning"),
        pytest.param(wrong("claims", {"nbf": LONG_AGO * 3}), "nbf", id="not yet"),
        pytest.param(wrong("claims", {"nonce": "of-another-sign-in"}), "nonce", id="another nonce"),
        pytest.param(wrong("claims", {"nonce": None}), "nonce", id="no nonce"),
        pytest.param(wrong("claims", {"sub": None}), "sub", id="nobody"),
        pytest.param(wrong("claims", {"sub": ""}), "", id="an empty name"),
        pytest.param(wrong("claims", {"sub": ["1234"]}), "", id="a list for a name"),
        pytest.param(
            wrong("description", {"issuer": "https://evil.example"}), "another issuer", id="other description"
        ),
        pytest.param(
            wrong("description", {"id_token_signing_alg_values_supported": ["HS256"]}), "signs by no", id="only secrets"
        ),
        pytest.param(wrong("id_token", lambda given: "no.token.atall"), "", id="no token at all"),
    ],
)
def test_a_token_that_is_not_to_be_trusted_lets_nobody_in(
    client: Client, provider: Provider, caplog: Any, misbehave: Any, why: str
) -> None:
    misbehave(provider)
    assert come_in(client)["Location"] == "/login"
    assert not is_in(client)
    assert not get_user_model().objects.exists()
    assert "Single sign-on did not work" in client.get("/login").content.decode()
    (line,) = [record.getMessage() for record in caplog.records if record.name == "omniroute_admin.security"]
    assert line.startswith("single sign-on refused: ")
    assert why in line
    assert "eyJ" not in caplog.text
    assert SECRET not in caplog.text


def back_from(client: Client) -> str:
    there = client.get("/login/sso")["Location"]
    address = urlsplit(requests.get(there, allow_redirects=False, timeout=10).headers["Location"])
    return f"{address.path}?{address.query}"


def test_an_answer_counts_in_the_browser_that_asked_and_once(client: Client, provider: Provider) -> None:
    """No state of another browser, none that was used, none that is missing: nobody is signed in by a link."""
    way_back = back_from(client)
    stranger = Client()
    assert stranger.get(way_back)["Location"] == "/login"
    assert not is_in(stranger)
    assert client.get("/login/sso/callback?code=x")["Location"] == "/login"
    assert client.get("/login/sso/callback?code=x&state=y")["Location"] == "/login"
    assert client.get("/login/sso/callback")["Location"] == "/login"
    assert not is_in(client)
    assert client.get(way_back)["Location"] == "/"
    assert is_in(client)
    used = Client()
    used.cookies = client.cookies
    used.post("/logout")
    assert used.get(way_back)["Location"] == "/login"
    assert not is_in(used)


def test_the_state_of_an_earlier_start_is_not_taken(client: Client, provider: Provider) -> None:
    old = back_from(client)
    back_from(client)
    assert client.get(old)["Location"] == "/login"
    assert not is_in(client)


def test_a_refusal_by_the_provider_is_told_without_its_words(client: Client, provider: Provider, caplog: Any) -> None:
    client.get("/login/sso")
    client.get("/login/sso/callback?error=access_denied&error_description=<script>alert(1)</script>&state=x")
    text = client.get("/login").content.decode()
    assert "Single sign-on did not work" in text
    assert "alert(1)" not in text + caplog.text
    assert "access_denied" in caplog.text


@pytest.mark.parametrize(
    "wanted", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)", "http:evil.example"]
)
def test_nobody_is_led_to_another_site(client: Client, provider: Provider, wanted: str) -> None:
    assert come_in(client, wanted=wanted)["Location"] == "/"


def test_the_session_gets_a_new_key_and_its_end_is_fixed(client: Client, provider: Provider) -> None:
    way_back = back_from(client)
    before = client.cookies["sessionid"].value
    client.get(way_back)
    after = client.cookies["sessionid"].value
    assert before != after
    assert not Session.objects.filter(pk=stored_name(before)).exists()
    row = Session.objects.get(pk=stored_name(after))
    assert row.signed_in_at is not None
    assert (row.expire_date - row.signed_in_at).total_seconds() == pytest.approx(7 * 24 * 3600, abs=1)
    assert (row.way, row.user) == ("single sign-on", get_user_model().objects.get())


def test_keys_that_the_provider_renews_are_read_again(client: Client, provider: Provider) -> None:
    come_in(client)
    from joserfc import jwt
    from joserfc.jwk import RSAKey

    provider.key = RSAKey.generate_key(2048, {"kid": "second", "use": "sig", "alg": "RS256"})
    provider.sign = lambda claims: jwt.encode({"alg": "RS256", "kid": "second"}, claims, provider.key)
    assert come_in(Client())["Location"] == "/"


def test_a_provider_that_does_not_answer_leaves_local_accounts_their_way(
    client: Client, provider: Provider, settings: Any, account: Any
) -> None:
    account("local", "viewer")
    settings.OIDC_ISSUER = "http://127.0.0.1:9/realm"
    assert client.get("/login/sso")["Location"] == "/login"
    client.post("/login", {"username": "local", "password": PASSWORD})
    assert is_in(client)


def test_a_wrong_client_secret_is_told_to_the_log_and_to_nobody_else(
    client: Client, provider: Provider, settings: Any, caplog: Any
) -> None:
    settings.OIDC_CLIENT_SECRET = "mistyped-secret"
    assert come_in(client)["Location"] == "/login"
    assert "invalid_client" in caplog.text
    assert "mistyped-secret" not in caplog.text


def test_without_a_provider_nothing_is_shown_and_no_address_answers(client: Client, db: None) -> None:
    assert "Sign in with" not in client.get("/login").content.decode()
    for address in ("/login/sso", "/login/sso/callback", "/accounts/login/", "/accounts/signup/", "/signup", "/oidc/"):
        assert client.get(address).status_code == 404, address


def test_the_page_offers_the_provider_by_its_name_and_keeps_where_one_wanted_to_go(
    client: Client, provider: Provider
) -> None:
    text = client.get("/login?next=/timeline").content.decode()
    assert "Sign in with Example" in text
    assert 'href="/login/sso?next=/timeline"' in text


def test_no_secret_is_logged_at_any_level(client: Client, provider: Provider, caplog: Any) -> None:
    logging.getLogger("authlib").setLevel(logging.WARNING)
    with caplog.at_level(logging.DEBUG):
        come_in(client)
    verifier = provider.sent[0]["code_verifier"]
    assert verifier
    for secret in (verifier, SECRET, "eyJ", client.cookies["sessionid"].value):
        assert secret not in caplog.text


def test_a_local_second_factor_is_not_asked_where_the_provider_answers_for_it(
    client: Client, provider: Provider, settings: Any
) -> None:
    settings.REQUIRE_TOTP = True
    come_in(client)
    assert is_in(client)
    end_sessions(user_id=get_user_model().objects.get().pk)
    assert not is_in(client)
