"""What is in use that nobody curated (B5; SPEC 5, 4), without a browser."""

import re
from datetime import timedelta
from decimal import Decimal
from html import unescape
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from ladder.selectors.catalogue_use import count_by_entry, find_uncurated
from ladder.services.connections import delete_connection
from omniroute_admin.common import clock
from tests.factories import BillingEntryFactory, ConnectionFactory, ModelPriceFactory
from tests.factories_ladder import NOW, OPERATOR
from tests.ladder.services.booking import event, record

pytestmark = pytest.mark.django_db
URL = "/catalogue/uncurated"


@pytest.fixture
def reader(client: Client, django_user_model: Any) -> Client:
    client.force_login(django_user_model.objects.create_superuser("mira", "mira@example.com", "x"))
    return client


def text_in(response: Any) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", response.content.decode())).split())


def prices() -> None:
    for model, price in (("small", "0.5"), ("big", "3")):
        ModelPriceFactory(provider="router", model=model, input_usd_per_million=Decimal(price))


def pairs() -> list[tuple[str, str | None, int, Decimal]]:
    return [(one.provider, one.auth_type, one.connections, one.spent_usd) for one in find_uncurated(now=NOW)]


def test_only_what_the_catalogue_answers_unknown_for_is_listed() -> None:
    """B1 to B3, B5."""
    BillingEntryFactory(provider="claude", auth_type="oauth")
    BillingEntryFactory(provider="wide", auth_type=None, billing="metered", overage="meters-to-paid")
    BillingEntryFactory(provider="dark", auth_type=None, billing="unknown", overage="unknown")
    for number, (provider, auth_type) in enumerate(
        [("claude", "oauth"), ("claude", "apikey"), ("claude", None), ("wide", "apikey"), ("dark", "oauth")]
    ):
        ConnectionFactory(connection_id=f"c{number}", provider=provider, auth_type=auth_type)
    ConnectionFactory(noauth=True, provider="keyless")
    assert [(provider, auth_type) for provider, auth_type, _, _ in pairs()] == [
        ("claude", None),
        ("claude", "apikey"),
        ("dark", "oauth"),
    ]
    entries = {(one.provider, one.auth_type): one.entry for one in find_uncurated(now=NOW)}
    assert entries["dark", "oauth"] == ("dark", None)
    assert entries["claude", "apikey"] is None


def test_the_money_of_thirty_days_is_told_by_the_rung_it_was_consumed_on() -> None:
    """B5, G: unknown goes to the rung of the model's tier; M6: it stays there."""
    prices()
    ConnectionFactory(connection_id="a", provider="router", auth_type="apikey")
    ConnectionFactory(connection_id="b", provider="router", auth_type="apikey")
    old = NOW - timedelta(days=30, seconds=1)
    record(
        event("e1", "1.25", connection_id="a", model="small"),
        event("e2", "2", connection_id="b", model="big"),
        event("e3", "7", connection_id="b", model="big", at=old),
        event("e4", "0.50", connection_id="b", model="big", at=NOW - timedelta(days=30)),
    )
    [found] = find_uncurated(now=NOW)
    assert {one.rung: one.usd for one in found.spent} == {"cheap": Decimal("1.25"), "premium": Decimal("2.5")}
    assert (found.connections, found.last_used) == (2, NOW)


def test_what_was_spent_through_a_deleted_connection_still_counts() -> None:
    prices()
    row = ConnectionFactory(connection_id="a", provider="router", auth_type="apikey")
    record(event("e1", "1.25", connection_id="a", model="small"))
    delete_connection(connection=row, actor=OPERATOR, reason="r", now=NOW + timedelta(minutes=1))
    assert pairs() == [("router", "apikey", 0, Decimal("1.25"))]


def test_the_list_value_of_a_plan_is_no_money_at_stake() -> None:
    """M5."""
    prices()
    entry = BillingEntryFactory(provider="router", auth_type="oauth")
    ConnectionFactory(connection_id="a", provider="router", auth_type="oauth")
    record(event("e1", "9", connection_id="a", model="big"))
    entry.delete()
    assert pairs() == [("router", "oauth", 1, Decimal(0))]


def test_the_most_money_stands_first() -> None:
    prices()
    for name, cost in (("a", "1"), ("b", "3"), ("c", None)):
        ConnectionFactory(connection_id=name, provider="router", auth_type=f"kind-{name}")
        if cost:
            record(event(f"e-{name}", cost, connection_id=name, model="big"))
    assert [auth_type for _, auth_type, _, _ in pairs()] == ["kind-b", "kind-a", "kind-c"]


def test_each_connection_is_counted_at_the_entry_that_decides_it() -> None:
    """B2, B3."""
    BillingEntryFactory(provider="claude", auth_type="oauth")
    BillingEntryFactory(provider="claude", auth_type=None)
    for number, auth_type in enumerate(["oauth", "apikey", None]):
        ConnectionFactory(connection_id=f"c{number}", provider="claude", auth_type=auth_type)
    ConnectionFactory(connection_id="z", provider="other")
    assert count_by_entry() == {("claude", "oauth"): 1, ("claude", None): 2}


def test_the_page_leads_to_the_form_that_curates_it(reader: Client) -> None:
    BillingEntryFactory(provider="dark", auth_type=None, billing="unknown", overage="unknown")
    ConnectionFactory(connection_id="a", provider="x-y+z", auth_type="apikey")
    ConnectionFactory(connection_id="b", provider="dark", auth_type="oauth")
    html = unescape(reader.get(URL).content.decode())
    assert 'href="/catalogue/billing/new?provider=x-y%2Bz&auth_type=apikey"' in html
    assert re.search(r'href="/catalogue/billing/\d+"', html)


def test_a_fleet_that_is_curated_is_told_so(reader: Client) -> None:
    assert "is curated" in text_in(reader.get(URL))


@pytest.mark.parametrize("page", ["0", "-1", "99", "x", "٣", "9" * 40])
def test_a_strange_page_shows_one_that_there_is(reader: Client, page: str) -> None:
    ConnectionFactory(connection_id="a", provider="x", auth_type="apikey")
    assert "1 to 1 of 1" in text_in(reader.get(URL, {"page": page}))


def test_the_page_costs_the_same_queries_for_many_as_for_few(reader: Client) -> None:
    ConnectionFactory(connection_id="a", provider="router", auth_type="apikey")
    reader.get(URL)
    with CaptureQueriesContext(connection) as few:
        reader.get(URL)
    prices()
    for number in range(70):
        ConnectionFactory(connection_id=f"c{number}", provider="router", auth_type=f"kind-{number}")
    record(*(event(f"e{number}", "1", connection_id=f"c{number}", model="big") for number in range(70)),
           now=clock.now())  # fmt: skip
    with CaptureQueriesContext(connection) as many:
        answer = reader.get(f"{URL}?page=2")
    assert len(many) == len(few) < 15
    assert len(answer.content) < 200_000
