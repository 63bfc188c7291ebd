"""SPEC 4: what the catalogue's API refuses names every field, in words that a caller can act upon."""

from typing import Any

import pytest

from billing_catalog.models import ModelPrice, ProviderAlias
from tests.billing_catalog.calling import Send, pointers
from tests.billing_catalog.test_api import RESOURCES
from tests.factories import ModelPriceFactory

pytestmark = pytest.mark.django_db

SAME: dict[str, set[str]] = {
    "/billing": {"/provider", "/auth_type"},
    "/tier-overrides": {"/provider", "/model_pattern"},
    "/free-providers": {"/provider"},
    "/aliases": {"/alias"},
    "/price-sources": {"/provider"},
}


@pytest.mark.parametrize(("path", "body"), [(row[0], row[3]) for row in RESOURCES], ids=[row[0] for row in RESOURCES])
def test_what_is_there_already_is_a_conflict_that_names_its_fields(path: str, body: Any, send: Send) -> None:
    assert send("post", path, body).status_code == 201
    again = send("post", path, body)
    assert (pointers(again, 409), again.json()["code"]) == (SAME[path], "conflict")
    assert {error["code"] for error in again.json()["errors"]} == {"conflict"}
    other = send("post", path, body | dict.fromkeys(("alias",) if "alias" in body else ("provider",), "other"))
    address = other["Location"].removeprefix("http://testserver/api/v1/catalog")
    assert pointers(send("patch", address, body), 409) == SAME[path]


def test_a_second_provider_wide_row_is_a_conflict_over_what_makes_it_that(send: Send) -> None:
    entry = {"provider": "claude", "billing": "metered", "overage": "unknown"}
    override = {"provider": "claude", "tier": "free"}
    for path, body, name in (("/billing", entry, "/auth_type"), ("/tier-overrides", override, "/model_pattern")):
        send("post", path, body)
        assert pointers(send("post", path, body), 409) == {"/provider", name}


def test_a_second_row_that_is_bad_otherwise_too_is_a_bad_body(send: Send) -> None:
    entry = {"provider": "claude", "billing": "metered", "overage": "unknown"}
    send("post", "/billing", entry)
    assert pointers(send("post", "/billing", entry | {"billing": "prepaid"})) == {"/billing"}


@pytest.mark.parametrize(
    "body",
    [{"alias": "x y", "provider": ""}, {"alias": "", "provider": "a b"}, {"alias": "a/b", "provider": "-"}, {}],
    ids=str,
)
def test_both_bad_names_of_an_alias_are_named_at_once(body: Any, send: Send) -> None:
    assert pointers(send("post", "/aliases", body)) == {"/alias", "/provider"}
    assert not ProviderAlias.objects.exists()


def test_an_alias_of_itself_is_refused_in_words(send: Send) -> None:
    refused = send("post", "/aliases", {"alias": "claude", "provider": " Claude"})
    assert pointers(refused) == {"/alias", "/provider"}
    assert {error["detail"] for error in refused.json()["errors"]} == {"A name is no alias of itself."}


def test_a_period_that_is_none_is_refused_at_its_end(send: Send) -> None:
    body = {"provider": "a", "model": "m", "effective_from": "2027-01-02T00:00:00Z"}
    assert pointers(send("post", "/prices", body | {"effective_to": "2027-01-01T00:00:00Z"})) == {"/effective_to"}


@pytest.mark.parametrize(
    "number", ["1_0", "\u0663", " 10 ", "", "10\n", "1e3", "+1", ".5", "5.", "NaN", "Infinity", "0x1", "\uff11"]
)
def test_a_price_in_a_text_is_a_number_in_plain_decimal_notation(number: str, send: Send) -> None:
    names = ("input_usd_per_million", "output_usd_per_million", "cached_input_usd_per_million")
    body = {"provider": "a", "model": "m"} | dict.fromkeys(names, number)
    assert pointers(send("post", "/prices", body)) == {f"/{name}" for name in names}
    row = ModelPriceFactory()
    assert pointers(send("patch", f"/prices/{row.pk}", {names[0]: number})) == {f"/{names[0]}"}
    assert ModelPrice.objects.get() == row


@pytest.mark.parametrize(
    ("number", "shown"), [("0", "0"), ("1.250000", "1.25"), ("007", "7"), (3, "3"), (0.5, "0.5"), (None, None)]
)
def test_a_number_is_taken_as_number_or_text(number: Any, shown: str | None, send: Send) -> None:
    made = send("post", "/prices", {"provider": "a", "model": "m", "input_usd_per_million": number})
    assert (made.status_code, made.json()["input_usd_per_million"]) == (201, shown)
