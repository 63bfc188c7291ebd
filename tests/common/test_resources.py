"""SPEC 4: resources are paged, filterable, strict about their fields, and refuse a lost update."""

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db.models import Model
from django.test import Client
from django.urls import path

from billing_catalog.models import ModelPrice
from ladder.models import Connection
from omniroute_admin.common.core.numbers import decimal_text, usd_text
from omniroute_admin.common.history import Actor, stamp
from omniroute_admin.common.resources import ResourceDetailView, ResourceListView, etag_of
from omniroute_admin.common.selectors.revision import current_revision
from omniroute_admin.common.serializers import StrictModelSerializer
from omniroute_admin.common.services.keys import create_key
from omniroute_admin.common.services.revision import deciding_write

NOW = datetime(2026, 8, 22, 12, tzinfo=UTC)


def save(row: Model, *, actor: Any, reason: str, now: Any) -> Any:
    with deciding_write():
        row.full_clean()
        stamp(instance=row, actor=actor, reason=reason, now=now)
        row.save()
    return row


class ConnectionSerializer(StrictModelSerializer):
    class Meta:
        model = Connection
        fields = [
            "id", "connection_id", "provider", "auth_type", "label", "is_enabled", "overage_override",
            "excluded_models",
        ]  # fmt: skip


class PriceSerializer(StrictModelSerializer):
    reason_field = "change_reason"

    class Meta:
        model = ModelPrice
        fields = ["id", "provider", "model", "input_usd_per_million", "rank", "effective_from"]


class Connections(ResourceListView):
    queryset = Connection.objects.live()
    serializer_class = ConnectionSerializer
    read_scope = "connections:read"
    write_scope = "connections:write"
    lookup_field = "connection_id"

    def create_row(self, *, values: dict[str, Any], actor: Any, reason: str, now: Any) -> Any:
        return save(Connection(**values, created_at=now, updated_at=now), actor=actor, reason=reason, now=now)


class OneConnection(ResourceDetailView):
    queryset = Connection.objects.live()
    serializer_class = ConnectionSerializer
    read_scope = "connections:read"
    write_scope = "connections:write"
    lookup_field = "connection_id"

    def update_row(self, *, row: Any, changes: dict[str, Any], actor: Any, reason: str, now: Any) -> Any:
        for name, value in changes.items():
            setattr(row, name, value)
        return save(row, actor=actor, reason=reason, now=now)

    def delete_row(self, *, row: Any, actor: Any, reason: str, now: Any) -> None:
        with deciding_write():
            stamp(instance=row, actor=actor, reason=reason, now=now)
            row.delete()


class Prices(ResourceListView):
    queryset = ModelPrice.objects.all()
    serializer_class = PriceSerializer
    read_scope = "catalog:read"
    write_scope = "catalog:write"


urlpatterns = [
    path("api/v1/connections", Connections.as_view()),
    path("api/v1/connections/<str:connection_id>", OneConnection.as_view()),
    path("api/v1/prices", Prices.as_view()),
]
pytestmark = [pytest.mark.urls(__name__), pytest.mark.django_db]


@pytest.fixture
def api(db: None) -> Client:
    _, secret = create_key(
        name="tool",
        scopes=["connections:read", "connections:write", "catalog:read", "catalog:write"],
        expires_at=None,
        actor=Actor(name="a test"),
        reason="",
        now=NOW,
    )
    return Client(headers={"authorization": f"Bearer {secret}"})


def connection(name: str, **values: Any) -> Connection:
    return Connection.objects.create(
        connection_id=name,
        **({"provider": "claude", "auth_type": "oauth", "created_at": NOW, "updated_at": NOW} | values),
    )


def send(api: Client, method: str, address: str, body: Any, **headers: str) -> Any:
    raw = body if isinstance(body, str) else json.dumps(body)
    return getattr(api, method)(address, raw, content_type="application/json", headers=headers)


def pointers(response: Any, status: int = 400) -> dict[str, str]:
    assert response.status_code == status, response.content
    assert response["Content-Type"] == "application/problem+json"
    return {error["pointer"]: error["code"] for error in response.json()["errors"]}


def test_a_row_is_made_with_its_reason_and_the_revision_moves(api: Client) -> None:
    before = current_revision()
    response = send(api, "post", "/api/v1/connections", {
        "connection_id": "c1", "provider": " Claude ", "auth_type": "OAuth", "excluded_models": ["a*"], "reason": "new",
    })  # fmt: skip
    assert response.status_code == 201
    assert response["Location"].endswith("/api/v1/connections/c1")
    assert response["ETag"] == etag_of(response.json())
    assert response.json() | {"id": 0} == {
        "id": 0, "connection_id": "c1", "provider": "claude", "auth_type": "oauth", "label": "", "is_enabled": True,
        "overage_override": None, "excluded_models": ["a*"],
    }  # fmt: skip
    assert current_revision() == before + 1
    history = Connection.history.get()
    assert (history.history_change_reason, history.history_actor[:8]) == ("new", "key tool")


def test_every_bad_field_of_a_row_is_named_at_once(api: Client) -> None:
    response = send(api, "post", "/api/v1/connections", {
        "provider": 5, "auth_type": True, "label": ["x"], "is_enabled": "true", "overage_override": "secret-word",
        "excluded_models": ["a", 1, ""], "a/b": 1, "id": 7, "reason": "x" * 10_001,
    })  # fmt: skip
    assert pointers(response) == {
        "/connection_id": "missing", "/provider": "invalid", "/auth_type": "invalid", "/label": "invalid",
        "/is_enabled": "invalid", "/overage_override": "invalid_choice", "/excluded_models/1": "invalid",
        "/a~1b": "unknown_field", "/id": "read_only", "/reason": "max_length",
    }  # fmt: skip
    assert "secret-word" not in response.content.decode()
    assert not Connection.objects.exists()


@pytest.mark.parametrize("body", ["[]", "3", '"x"', "null"])
def test_a_body_that_is_no_object_is_refused(api: Client, body: str) -> None:
    response = send(api, "post", "/api/v1/connections", body)
    assert (response.status_code, response.json()["code"]) == (400, "invalid_body")


@pytest.mark.parametrize("body", ["{", " ", '{"label": NaN}', '{"a": "\\ud800"}', "[" * 5000])
def test_a_body_that_is_no_json_is_refused(api: Client, body: str) -> None:
    response = send(api, "post", "/api/v1/connections", body)
    assert (response.status_code, response.json()["code"]) == (400, "malformed_json")


def test_a_nul_in_a_text_is_refused(api: Client) -> None:
    body = {"connection_id": "c1", "provider": "claude", "label": "a\0", "excluded_models": ["b\0"]}
    assert set(pointers(send(api, "post", "/api/v1/connections", body))) == {"/label", "/excluded_models/0"}


def test_too_large_a_body_is_413(api: Client, settings: Any) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 50
    assert send(api, "post", "/api/v1/connections", {"label": "x" * 60}).status_code == 413


def test_a_form_is_415(api: Client) -> None:
    response = api.post("/api/v1/connections", {"provider": "x"})
    assert (response.status_code, response.json()["code"]) == (415, "unsupported_media_type")


def test_what_a_services_check_finds_has_its_pointer_too(api: Client) -> None:
    connection("c1")
    body = {"connection_id": "c 1", "provider": "cla ude"}
    assert set(pointers(send(api, "post", "/api/v1/connections", body))) == {"/connection_id", "/provider"}
    assert pointers(send(api, "post", "/api/v1/connections", {"connection_id": "c1", "provider": "CLAUDE"})) == {
        "/provider": "invalid",
        "/connection_id": "invalid",
    }
    assert Connection.objects.count() == 1


def test_what_was_read_can_be_sent_back_and_a_read_only_field_cannot_change(api: Client) -> None:
    connection("c1")
    body = api.get("/api/v1/connections/c1").json()
    assert send(api, "put", "/api/v1/connections/c1", body | {"label": "mine"}).json() == body | {"label": "mine"}
    assert pointers(send(api, "patch", "/api/v1/connections/c1", {"id": 0})) == {"/id": "read_only"}


def test_patch_keeps_and_put_resets_what_is_left_out(api: Client) -> None:
    connection("c1", label="mine", is_enabled=False, excluded_models=["a"])
    kept = send(api, "patch", "/api/v1/connections/c1", {"auth_type": None}).json()
    assert (kept["label"], kept["is_enabled"], kept["auth_type"]) == ("mine", False, None)
    reset = send(api, "put", "/api/v1/connections/c1", {"connection_id": "c1", "provider": "claude"}).json()
    assert (reset["label"], reset["is_enabled"], reset["excluded_models"]) == ("", True, [])


def test_a_lost_update_is_412_with_what_it_is_now_and_none_without_the_header(api: Client) -> None:
    connection("c1")
    tag = api.get("/api/v1/connections/c1")["ETag"]
    first = send(api, "patch", "/api/v1/connections/c1", {"label": "a"}, **{"If-Match": tag})
    assert first.status_code == 200
    second = send(api, "patch", "/api/v1/connections/c1", {"label": "b"}, **{"If-Match": tag})
    assert (second.status_code, second.json()["code"]) == (412, "precondition_failed")
    assert second.json()["current"]["label"] == "a"
    assert api.delete("/api/v1/connections/c1", headers={"If-Match": tag}).status_code == 412
    assert Connection.objects.get().label == "a"
    for header in ({}, {"If-Match": "*"}, {"If-Match": f'"x", {first["ETag"]}'}):
        assert send(api, "patch", "/api/v1/connections/c1", {"label": "a"}, **header).status_code == 200


def test_deleting_takes_its_reason_from_the_query(api: Client) -> None:
    connection("c1")
    assert pointers(api.delete(f"/api/v1/connections/c1?reason={'x' * 10_001}")) == {"/reason": "invalid"}
    assert api.delete("/api/v1/connections/c1?reason=gone").status_code == 204
    assert Connection.history.first().history_change_reason == "gone"
    assert api.get("/api/v1/connections/c1").json()["code"] == "not_found"


def test_a_list_is_paged(api: Client) -> None:
    for number in range(5):
        connection(f"c{number}")
    first = api.get("/api/v1/connections?page_size=2&ordering=-connection_id").json()
    assert (first["count"], first["previous"]) == (5, None)
    assert [row["connection_id"] for row in first["results"]] == ["c4", "c3"]
    last = api.get(api.get(first["next"]).json()["next"]).json()
    assert ([row["connection_id"] for row in last["results"]], last["next"]) == (["c0"], None)
    assert api.get("/api/v1/connections?page=9").json()["code"] == "not_found"


def test_a_list_is_filtered_by_its_fields(api: Client) -> None:
    connection("c1")
    connection("c2", provider="codex", auth_type=None, is_enabled=False)

    def found(query: str) -> list[str]:
        return [row["connection_id"] for row in api.get(f"/api/v1/connections?{query}").json()["results"]]

    assert found("provider=CODEX") == ["c2"]
    assert found("is_enabled=true") == ["c1"]
    assert found("auth_type__isnull=true") == ["c2"]
    assert found("provider=claude&is_enabled=false") == []


def test_every_bad_parameter_is_named(api: Client) -> None:
    address = "/api/v1/connections?provder=x&overage_override=maybe&excluded_models=a"
    assert set(pointers(api.get(address))) == {"/provder", "/overage_override", "/excluded_models"}
    assert set(pointers(api.get("/api/v1/connections?page=0&page_size=501"))) == {"/page", "/page_size"}
    assert set(pointers(api.get("/api/v1/connections?page_size=x"))) == {"/page_size"}
    assert set(pointers(api.get("/api/v1/connections?ordering=excluded_models"))) == {"/ordering"}


def test_only_the_methods_with_a_service_are_offered(api: Client) -> None:
    response = send(api, "post", "/api/v1/prices", {})
    assert (response.status_code, response["Allow"]) == (405, "GET, HEAD, OPTIONS")


def test_the_scope_for_reading_is_not_the_one_for_writing(db: None) -> None:
    _, secret = create_key(
        name="r", scopes=["connections:read"], expires_at=None, actor=Actor(name="t"), reason="", now=NOW
    )
    reader = Client(headers={"authorization": f"Bearer {secret}"})
    connection("c1")
    assert reader.get("/api/v1/connections/c1").status_code == 200
    assert send(reader, "patch", "/api/v1/connections/c1", {}).status_code == 403
    assert reader.delete("/api/v1/connections/c1").status_code == 403


def test_money_and_instants_read_as_exact_texts(api: Client) -> None:
    for index, price in enumerate([Decimal("0.1"), None]):
        ModelPrice.objects.create(
            provider="claude",
            model=f"m{index}",
            input_usd_per_million=price,
            effective_from=NOW + timedelta(days=index),
        )
    rows = api.get("/api/v1/prices?ordering=model").json()["results"]
    assert [row["input_usd_per_million"] for row in rows] == ["0.1", None]
    assert rows[0]["effective_from"] == "2026-08-22T12:00:00Z"
    late = api.get("/api/v1/prices?effective_from__gte=2026-08-23T00:00:00Z").json()["results"]
    assert [row["model"] for row in late] == ["m1"]


@pytest.mark.parametrize(
    ("field", "value", "is_taken"),
    [
        ("input_usd_per_million", "0.10", True),
        ("input_usd_per_million", 0.1, True),
        ("input_usd_per_million", "NaN", False),
        ("input_usd_per_million", True, False),
        ("input_usd_per_million", -1, False),
        ("input_usd_per_million", "1e20", False),
        ("input_usd_per_million", 0.0000001, False),
        ("rank", "1", False),
        ("rank", 1.0, False),
        ("rank", True, False),
        ("rank", -1, False),
        ("rank", 10**12, False),
        ("effective_from", "2026-08-22T12:00:00", False),
        ("effective_from", "2026-08-22T12:00:00+02:00", True),
        ("effective_from", "99999-01-01T00:00:00Z", False),
        ("effective_from", 0, False),
        ("provider", "x" * 129, False),
    ],
)
def test_a_value_of_another_type_or_out_of_range_is_refused(field: str, value: Any, is_taken: bool) -> None:
    from omniroute_admin.common.bodies import loads

    good = {"provider": "p", "model": "m", "effective_from": "2026-08-22T12:00:00Z"}
    serializer = PriceSerializer(data=loads(json.dumps(good | {field: value}).encode()))
    assert serializer.is_valid() is is_taken, serializer.errors
    assert set(serializer.errors) == (set() if is_taken else {field})


@pytest.mark.parametrize(
    ("value", "plain", "usd"),
    [
        ("0", "0", "0"), ("0.000000", "0", "0"), ("-0.0", "0", "0"), ("5", "5", "5.00"), ("5.100000", "5.1", "5.10"),
        ("1E+3", "1000", "1000.00"), ("0.000001", "0.000001", "0.000001"), ("-1.5", "-1.5", "-1.50"),
    ],
)  # fmt: skip
def test_numbers_are_written_out_without_idle_zeros(value: str, plain: str, usd: str) -> None:
    assert (decimal_text(Decimal(value)), usd_text(Decimal(value))) == (plain, usd)
