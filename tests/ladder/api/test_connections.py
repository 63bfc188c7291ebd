import pytest

from ladder.models import Connection, Cooldown, QuotaWindow
from omniroute_admin.common.selectors.revision import current_revision
from tests.factories import (
    BillingEntryFactory,
    ConnectionFactory,
    CooldownFactory,
    ProviderAliasFactory,
    QuotaWindowFactory,
)
from tests.factories_ladder import NOW
from tests.router import make_router

pytestmark = pytest.mark.django_db

ADDRESS = "/api/v1/connections"
ONE = f"{ADDRESS}/c1"


def pointers(response, status=400):
    assert response.status_code == status, response.content
    return {error["pointer"] for error in response.json()["errors"]}


def test_a_connection_has_just_the_fields_of_spec_4_and_no_credential(router):
    response = router.post(ADDRESS, {"connection_id": "c1", "provider": " Claude ", "auth_type": "OAuth"})
    assert response.status_code == 201
    assert response.json() == {
        "connection_id": "c1",
        "provider": "claude",
        "auth_type": "oauth",
        "label": "",
        "is_enabled": True,
        "overage_override": None,
        "overage_override_reason": "",
        "excluded_models": [],
    }
    assert router.get(ONE).json() == response.json()
    assert response["ETag"] == router.get(ONE)["ETag"]
    assert response["Location"].endswith(ONE)


def test_an_alias_is_resolved_on_the_way_in_spec_1(router):
    ProviderAliasFactory(alias="cc", provider="claude")
    assert router.post(ADDRESS, {"connection_id": "c1", "provider": "CC"}).json()["provider"] == "claude"


def test_a_credential_or_any_other_unknown_field_is_refused_and_not_echoed_spec_1(router):
    response = router.post(ADDRESS, {"connection_id": "c1", "provider": "claude", "api_key": "sk-secret"})
    assert pointers(response) == {"/api_key"}
    assert b"sk-secret" not in response.content


def test_every_bad_field_is_named_at_once_spec_4(router):
    body = {
        "connection_id": "",
        "provider": "a b",
        "auth_type": 3,
        "label": "x" * 201,
        "is_enabled": "yes",
        "overage_override": "never",
        "excluded_models": ["a", ""],
        "token": "x",
    }
    found = pointers(router.post(ADDRESS, body))
    assert {pointer.split("/")[1] for pointer in found} == set(body)


def test_a_second_connection_of_an_id_is_in_conflict_spec_1(router):
    ConnectionFactory(connection_id="c1")
    response = router.post(ADDRESS, {"connection_id": "c1", "provider": "codex"})
    assert (pointers(response, 409), response.json()["code"]) == ({"/connection_id"}, "conflict")


def test_a_second_noauth_of_a_provider_is_in_conflict_over_both_names_spec_1(router):
    ConnectionFactory(noauth=True, provider="groq")
    response = router.post(ADDRESS, {"connection_id": "noauth", "provider": "groq"})
    assert pointers(response, 409) == {"/connection_id", "/provider"}


@pytest.mark.parametrize("connection_id", [" c2 ", "c2\n", "\tc2", " "])
def test_an_id_is_not_trimmed_into_another_one_spec_1(router, connection_id):
    assert pointers(router.post(ADDRESS, {"connection_id": connection_id, "provider": " Claude "})) == {
        "/connection_id"
    }
    assert not Connection.objects.exists()


@pytest.mark.parametrize("number", ["1_0", "\u0663", " 10 ", ""])
def test_a_cutoff_is_a_number_in_plain_decimal_notation_spec_4(router, number):
    window = QuotaWindowFactory(connection=ConnectionFactory(connection_id="c1"), window="5h")
    response = router.send("patch", f"{ONE}/windows/5h", {"exit_cutoff_percent": number})
    assert pointers(response) == {"/exit_cutoff_percent"}
    window.refresh_from_db()
    assert window.exit_cutoff_percent is None


def test_patch_changes_what_is_given_and_keeps_the_reason_in_the_history(router):
    ConnectionFactory(connection_id="c1", label="mine")
    before = current_revision()
    response = router.send("patch", ONE, {"is_enabled": False, "excluded_models": ["*opus*"], "reason": "paused"})
    assert (response.json()["is_enabled"], response.json()["label"]) == (False, "mine")
    act = Connection.history.latest("history_id")
    assert (act.history_change_reason, act.history_actor[:12]) == ("paused", "key a router")
    assert current_revision() > before


def test_put_resets_what_is_left_out_noauth_included(router):
    ConnectionFactory(noauth=True, provider="groq", label="mine")
    body = {"connection_id": "noauth", "provider": "groq"}
    response = router.send("put", f"{ADDRESS}/noauth?provider=groq", body)
    assert (response.status_code, response.json()["label"], response.json()["auth_type"]) == (200, "", "none")


def test_a_connection_keeps_its_id_and_provider(router):
    ConnectionFactory(connection_id="c1")
    assert pointers(router.send("patch", ONE, {"provider": "codex"})) == {"/provider"}
    assert router.send("patch", ONE, {"provider": "claude"}).status_code == 200


def test_hard_stop_against_the_catalogue_needs_a_written_reason_b4(router):
    BillingEntryFactory(provider="claude", overage="unknown")
    ConnectionFactory(connection_id="c1")
    body = {"overage_override": "hard-stop"}
    assert pointers(router.send("patch", ONE, body)) == {"/overage_override_reason"}
    assert router.send("patch", ONE, body | {"reason": "switched off"}).status_code == 200
    assert router.send("patch", ONE, {"overage_override": "meters-to-paid"}).status_code == 200


def test_delete_takes_it_out_of_routing_with_a_reason_and_out_of_the_list_spec_3(router):
    ConnectionFactory(connection_id="c1")
    assert router.send("delete", f"{ONE}?reason=left").status_code == 204
    assert router.get(ONE).status_code == 404
    assert router.get(ADDRESS).json()["count"] == 0
    assert Connection.history.latest("history_id").history_change_reason == "left"
    assert Connection.objects.get().deleted_at is not None


def test_a_lost_update_is_refused_spec_4(router):
    ConnectionFactory(connection_id="c1")
    etag = router.get(ONE)["ETag"]
    assert router.send("patch", ONE, {"label": "a"}, **{"If-Match": etag}).status_code == 200
    assert router.send("patch", ONE, {"label": "b"}, **{"If-Match": etag}).status_code == 412
    assert router.send("delete", ONE, **{"If-Match": etag}).status_code == 412


def test_noauth_is_named_with_its_provider_spec_1(router):
    for provider in ("groq", "pollinations"):
        made = router.post(ADDRESS, {"connection_id": "noauth", "provider": provider})
        assert made["Location"].endswith(f"/noauth?provider={provider}")
        assert made.json()["auth_type"] == "none"
    assert pointers(router.get(f"{ADDRESS}/noauth")) == {"/provider"}
    assert router.get(f"{ADDRESS}/noauth?provider=Groq").json()["provider"] == "groq"
    assert router.get(f"{ADDRESS}/noauth?provider=claude").status_code == 404


def test_marking_makes_a_keyless_path_known_as_telemetry_does_spec_1(router):
    address = f"{ADDRESS}/noauth/mark-exhausted"
    (marked,) = router.post(f"{address}?provider=Groq", {"reason": "dry"}).json()["windows"]
    assert (marked["window"], marked["status"]) == ("by hand", "exhausted")
    row = Connection.objects.get()
    assert (row.provider, row.is_implied) == ("groq", True)
    assert router.post(f"{address}?provider=pol", {"window": "5h"}).status_code == 404
    assert router.post(f"{ADDRESS}/nobody/mark-exhausted?provider=groq", {}).status_code == 404
    assert pointers(router.post(f"{address}?provider=a b", {})) == {"/provider"}
    assert Connection.objects.count() == 1


def test_another_providers_name_beside_a_known_id_finds_nothing(router):
    ConnectionFactory(connection_id="c1", provider="claude")
    assert router.get(f"{ONE}?provider=codex").status_code == 404


def test_a_keyless_path_that_nobody_stored_is_not_listed(router):
    ConnectionFactory(noauth=True, provider="groq", is_implied=True)
    assert router.get(ADDRESS).json()["results"] == []
    assert router.get(f"{ADDRESS}/noauth?provider=groq").status_code == 404
    assert router.post(ADDRESS, {"connection_id": "noauth", "provider": "groq"}).status_code == 201


def test_the_list_is_paged_filtered_and_ordered_by_its_fields_spec_4(router):
    for number in range(3):
        ConnectionFactory(connection_id=f"c{number}", label=f"l{number}", is_enabled=number != 1)
    page = router.get(f"{ADDRESS}?is_enabled=true&ordering=-label&page_size=1").json()
    assert (page["count"], [row["connection_id"] for row in page["results"]]) == (2, ["c2"])
    assert page["next"] is not None
    assert router.get(f"{ADDRESS}?colour=red").status_code == 400


@pytest.mark.parametrize("method", ["post", "put", "patch"])
def test_an_empty_body_is_no_json_and_changes_nothing_spec_4(router, method):
    ConnectionFactory(connection_id="c1", label="mine")
    for body in ("", " \n"):
        response = router.send(method, ADDRESS if method == "post" else ONE, body)
        assert (response.status_code, response.json()["code"]) == (400, "malformed_json")
    assert Connection.objects.get().label == "mine"


@pytest.mark.parametrize(
    ("method", "address", "name"),
    [
        ("get", f"{ADDRESS}?is_enabled=maybe", "is_enabled"),
        ("get", f"{ADDRESS}?is_enabled=", "is_enabled"),
        ("get", f"{ADDRESS}?auth_type__isnull=2", "auth_type__isnull"),
        ("get", f"{ADDRESS}?label=a&label=b", "label"),
        ("get", f"{ADDRESS}?format=xml", "format"),
        ("get", f"{ONE}/windows?is_muted=maybe", "is_muted"),
        ("get", f"{ONE}?foo=1", "foo"),
        ("get", f"{ONE}?provider=", "provider"),
        ("get", f"{ONE}/windows/5h?foo=1", "foo"),
        ("get", f"{ONE}/explain?foo=1", "foo"),
        ("get", f"{ONE}/explain?page=0", "page"),
        ("get", f"{ADDRESS}/noauth/explain", "provider"),
        ("post", f"{ADDRESS}?foo=1", "foo"),
        ("patch", f"{ONE}?reason=mine", "reason"),
        ("delete", f"{ONE}?foo=1", "foo"),
        ("delete", f"{ONE}/cooldown?foo=1", "foo"),
        ("get", "/api/v1/settings?foo=1", "foo"),
        ("patch", "/api/v1/settings?foo=1", "foo"),
        ("put", "/api/v1/settings/omniroute.json?foo=1", "foo"),
        ("post", "/api/v1/telemetry/readings?foo=1", "foo"),
        ("post", "/api/v1/evaluate?foo=1", "foo"),
        ("get", "/v1/models?pairs=perhaps", "pairs"),
        ("get", "/api/v1/occupancy?foo=1", "foo"),
        ("get", "/api/v1/catalog/prices/1?foo=1", "foo"),
    ],
)
def test_a_bad_parameter_is_refused_in_one_style_everywhere_spec_4(router, method, address, name):
    ConnectionFactory(connection_id="c1")
    response = router.get(address) if method == "get" else router.send(method, address, {})
    assert pointers(response) == {f"/{name}"}
    assert response.json()["code"] == "invalid_query"
    assert Connection.objects.live().count() == 1


def test_the_words_for_true_and_false_filter(router):
    for number in range(3):
        ConnectionFactory(connection_id=f"c{number}", is_enabled=number != 1)
    counts = [router.get(f"{ADDRESS}?is_enabled={word}").json()["count"] for word in ("True", "1", "false", "0")]
    assert counts == [2, 2, 1, 1]
    assert router.get(f"{ADDRESS}?overage_override__isnull=true").json()["count"] == 3


def test_each_method_needs_its_scope_spec_4(db):
    ConnectionFactory(connection_id="c1")
    reader, writer = make_router("connections:read"), make_router("connections:write")
    for router, statuses in ((reader, (200, 403)), (writer, (403, 200))):
        assert (router.get(ONE).status_code, router.send("patch", ONE, {"label": "a"}).status_code) == statuses
    assert reader.send("delete", f"{ONE}/cooldown").status_code == 403


def test_clearing_cooldowns_is_one_call_and_history_c3(router):
    connection = ConnectionFactory(connection_id="c1")
    for cause in ("quota", "auth"):
        CooldownFactory(connection=connection, cause=cause)
    assert router.send("delete", f"{ONE}/cooldown?cause=auth&reason=paid").status_code == 204
    assert Cooldown.objects.get().cause == "quota"
    assert Cooldown.history.latest("history_id").history_change_reason == "paid"
    assert router.send("delete", f"{ONE}/cooldown").status_code == 204
    assert router.send("delete", f"{ONE}/cooldown").status_code == 204
    assert not Cooldown.objects.exists()
    assert router.send("delete", f"{ADDRESS}/nobody/cooldown").status_code == 404
    assert pointers(router.send("delete", f"{ONE}/cooldown?cause=boredom")) == {"/cause"}


@pytest.fixture
def window(db, time_machine_at_now):
    connection = ConnectionFactory(connection_id="c1")
    return QuotaWindowFactory(connection=connection, window="session (5h)/a", remaining_percent="4.50")


@pytest.fixture
def time_machine_at_now():
    import time_machine

    with time_machine.travel(NOW, tick=False):
        yield


def test_a_window_has_just_the_fields_of_spec_4(router, window):
    page = router.get(f"{ONE}/windows").json()
    assert page["count"] == 1
    assert page["results"] == [
        {
            "window": "session (5h)/a",
            "remaining_percent": 4.5,
            "unlimited": False,
            "status": "safe",
            "reset_at": None,
            "observed_at": "2026-08-22T12:00:00Z",
            "combine": "limit",
            "model": None,
            "is_muted": False,
            "exit_cutoff_percent": None,
            "is_held": False,
            "is_reported": True,
            "verdict": "usable",
        }
    ]
    assert router.get(f"{ONE}/windows/session (5h)/a").json() == page["results"][0]


def test_a_windows_verdict_and_held_state_are_those_of_the_decision_q4_q5(router, window):
    window.readings.create(observed_at=NOW, received_at=NOW, remaining_percent=1)
    shown = router.get(f"{ONE}/windows").json()["results"][0]
    assert (shown["is_held"], shown["verdict"]) == (True, "held")


def test_an_operator_mutes_a_window_and_gives_it_a_cutoff_q6_q7(router, window):
    address = f"{ONE}/windows/session (5h)/a"
    body = {"is_muted": True, "exit_cutoff_percent": "20.5", "reason": "keep some"}
    response = router.send("patch", address, body)
    assert (response.json()["is_muted"], response.json()["exit_cutoff_percent"]) == (True, 20.5)
    assert response.json()["verdict"] == "exhausted"
    assert QuotaWindow.history.latest("history_id").history_change_reason == "keep some"
    assert router.send("patch", address, {"exit_cutoff_percent": None}).json()["exit_cutoff_percent"] is None


def test_a_bad_cutoff_and_what_telemetry_owns_are_refused_by_name(router, window):
    body = {"exit_cutoff_percent": 101, "is_muted": 1, "remaining_percent": 90, "colour": "red"}
    assert pointers(router.send("patch", f"{ONE}/windows/session (5h)/a", body)) == {f"/{name}" for name in body}


def test_a_reading_that_came_meanwhile_is_no_lost_update_but_an_operators_change_is(router, window):
    address = f"{ONE}/windows/session (5h)/a"
    etag = router.get(address)["ETag"]
    QuotaWindow.objects.update(remaining_percent=1)
    assert router.send("patch", address, {"is_muted": True}, **{"If-Match": etag}).status_code == 200
    assert router.send("patch", address, {"is_muted": False}, **{"If-Match": etag}).status_code == 412


def test_unknown_windows_and_connections_are_not_found(router, window):
    assert router.get(f"{ONE}/windows/weekly").status_code == 404
    assert router.get(f"{ADDRESS}/nobody/windows").status_code == 404


def test_the_windows_of_a_keyless_path_that_only_telemetry_spoke_of_can_be_seen(router):
    QuotaWindowFactory(connection=ConnectionFactory(noauth=True, provider="groq", is_implied=True))
    assert router.get(f"{ADDRESS}/noauth/windows?provider=groq").json()["count"] == 1
    assert pointers(router.get(f"{ADDRESS}/noauth/windows")) == {"/provider"}


def test_marking_exhausted_is_one_call_with_or_without_a_body_q2(router, window):
    address = f"{ONE}/mark-exhausted"
    marked = router.post(address, {"window": "session (5h)/a", "reset_at": "2026-08-22T17:00:00Z", "reason": "seen"})
    assert [(row["verdict"], row["reset_at"]) for row in marked.json()["windows"]] == [
        ("exhausted", "2026-08-22T17:00:00Z")
    ]
    assert QuotaWindow.history.latest("history_id").history_change_reason == "seen"
    assert router.post(address, "").status_code == 200
    bad = {"window": "", "colour": 1, "reset_at": "x"}
    assert pointers(router.post(address, bad)) == {f"/{name}" for name in bad}
    unknown = router.post(address, {"window": "weekly"})
    assert (unknown.status_code, unknown.json()["windows"]) == (404, ["session (5h)/a"])
    assert pointers(router.post(f"{address}?colour=red", {})) == {"/colour"}
    assert router.post(f"{ADDRESS}/nobody/mark-exhausted", {}).status_code == 404
    assert make_router("connections:read").post(address, {}).status_code == 403
