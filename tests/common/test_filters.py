"""SPEC 4: lists are filtered by their fields; a value that makes no sense is refused, and none fails."""

import pytest
from django.test import Client

from tests.factories import ConnectionFactory, ModelPriceFactory, QuotaWindowFactory
from tests.router import Router, make_router

pytestmark = pytest.mark.django_db
PRICES, WINDOWS = "/api/v1/catalog/prices", "/api/v1/connections/c1/windows"


@pytest.fixture
def router() -> Router:
    ModelPriceFactory(rank=3)
    QuotaWindowFactory(connection=ConnectionFactory(connection_id="c1"), remaining_percent="4.5")
    return make_router()


@pytest.mark.parametrize("lookup", ["", "__gte", "__lte"])
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("rank", "99999999999999999999999"),
        ("rank", "-99999999999999999999999"),
        ("id", "9" * 100),
        ("input_usd_per_million", "1.1754943508222875e-38"),
        ("input_usd_per_million", "-1e49"),
        ("input_usd_per_million", "0.1234567890123456789"),
        ("effective_from", "0001-01-01T00:00:00Z"),
        ("effective_from", "0254-04-10T18:41:31-20:38"),
        ("effective_from", "9999-12-31T23:59:59.999999Z"),
    ],
)
def test_a_number_or_an_instant_far_from_all_there_are_is_compared(
    router: Router, field: str, lookup: str, value: str
) -> None:
    assert router.get(f"{PRICES}?{field}{lookup}={value}").status_code == 200


@pytest.mark.parametrize("value", ["1.1754943508222875e-38", "1e49", "-1e49", "4.5"])
@pytest.mark.parametrize(("lookup", "sign"), [("", 0), ("__gte", 1), ("__lte", -1)])
def test_a_percentage_is_compared_exactly(router: Router, lookup: str, sign: int, value: str) -> None:
    answer = router.get(f"{WINDOWS}?remaining_percent{lookup}={value}")
    number = float(value)
    among = number == 4.5 if not sign else sign * 4.5 >= sign * number
    assert (answer.status_code, answer.json()["count"]) == (200, int(among))


@pytest.mark.parametrize("lookup", ["", "__gte", "__lte"])
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("rank", "0.5"),
        ("id", "1e3"),
        ("id", "9" * 5000),
        ("input_usd_per_million", "1e51"),
        ("input_usd_per_million", "NaN"),
        ("effective_from", "0001-01-01T00:00:00%2B23:00"),
        ("effective_from", "9999-12-31T23:59:59-12:00"),
    ],
)
def test_what_is_no_such_value_is_refused_by_name(router: Router, field: str, lookup: str, value: str) -> None:
    answer = router.get(f"{PRICES}?{field}{lookup}={value}")
    assert answer.status_code == 400
    assert [error["pointer"] for error in answer.json()["errors"]] == [f"/{field}{lookup}"]


@pytest.mark.parametrize("method", ["trace", "post"])
def test_a_method_that_a_list_does_not_have_is_no_question_of_its_query(router: Router, method: str) -> None:
    answer = getattr(Client(), method)(f"{WINDOWS}?status=safe&no=such", headers=router.headers)
    assert answer.status_code == 405


def test_asking_what_there_is_locks_no_row(router: Router) -> None:
    """PostgreSQL refuses to lock outside a transaction; nothing is about to be changed either."""
    answer = Client().options("/api/v1/connections/c1", headers=router.headers)
    assert answer.status_code == 200
    assert "PATCH" in answer["Allow"]
