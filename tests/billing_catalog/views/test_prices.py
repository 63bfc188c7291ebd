"""The pages of prices, without a browser (SPEC 3: append-only; SPEC 5, 4; T)."""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from html import unescape
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from billing_catalog.models import ModelPrice
from billing_catalog.services.prices import update_price
from omniroute_admin.common import clock
from omniroute_admin.common.history import Actor
from omniroute_admin.common.selectors.revision import current_revision
from tests.billing_catalog.acting import overlapping_prices
from tests.billing_catalog.views.filling import form_in
from tests.factories import FreeProviderFactory, ModelPriceFactory, PriceSourceFactory, TierOverrideFactory

pytestmark = pytest.mark.django_db
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
URL = "/catalogue/prices/model?provider=openai&model=gpt%2Fx"


def text_in(response: Any) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", response.content.decode())).split())


def make(**fields: Any) -> ModelPrice:
    price: ModelPrice = ModelPriceFactory(
        **{"provider": "openai", "model": "gpt/x", "effective_from": LONG_AGO} | fields
    )
    return price


def opened(client: Client) -> dict[str, str]:
    return form_in(client.get(URL))


def ending(client: Client, price: ModelPrice) -> dict[str, str]:
    return form_in(client.get(URL), marks=lambda given: f"/{price.pk}/end" in (given.get("action") or ""))


def local(at: datetime) -> str:
    return at.replace(tzinfo=None, microsecond=0).isoformat()


def test_each_price_is_shown_with_the_tier_it_means_and_why(curator: Client) -> None:
    """T: override, pattern, free provider, seats, price, none."""
    make(provider="wide", model="a", input_usd_per_million=Decimal(9))
    make(provider="some", model="b:free", input_usd_per_million=Decimal(9))
    make(provider="gift", model="c", input_usd_per_million=Decimal(9))
    make(provider="seat", model="d", input_usd_per_million=Decimal(0))
    make(provider="none", model="e", input_usd_per_million=None)
    make(provider="paid", model="f", input_usd_per_million=Decimal("0.50"))
    make(provider="dear", model="g", input_usd_per_million=Decimal("1.01"))
    TierOverrideFactory(provider="wide", tier="cheap")
    TierOverrideFactory(provider="some", model_pattern="*:free", tier="free")
    FreeProviderFactory(provider="gift")
    PriceSourceFactory(provider="seat", sells_seats=True)
    words = text_in(curator.get("/catalogue/prices?sort=model"))
    for told in (
        "3 cheap provider override",
        "2 free model override *:free",
        "2 free free provider",
        "4 premium 0 from a provider that sells seats is no price",
        "4 premium no known price",
        "3 cheap input up to $1.00",
        "4 premium input above $1.00",
    ):
        assert told in words


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["a", "b", "c"]),
        ("?q=Z", ["c"]),
        ("?provider=z", ["c"]),
        ("?source=genai-prices", ["b"]),
        ("?known=no", ["c"]),
        ("?known=zero", ["b"]),
        ("?known=yes&sort=dearest", ["a", "b"]),
        ("?sort=cheapest", ["b", "a", "c"]),
        ("?sort=x&known=x&page=x&provider=", ["a", "b", "c"]),
    ],
)
def test_prices_are_filtered_and_ordered_by_the_address(curator: Client, query: str, found: list[str]) -> None:
    make(model="a", rank=1, input_usd_per_million=Decimal(2))
    make(model="b", rank=2, input_usd_per_million=Decimal(0), source="genai-prices")
    make(model="c", rank=None, input_usd_per_million=None, provider="z")
    make(model="past", effective_to=LONG_AGO + timedelta(days=1))
    html = curator.get(f"/catalogue/prices{query}").content.decode()
    assert re.findall(r'model=(\w+)">', html) == found


def test_thousands_of_prices_cost_the_same_queries_as_few(curator: Client) -> None:
    make()
    curator.get("/catalogue/prices")
    with CaptureQueriesContext(connection) as few:
        curator.get("/catalogue/prices")
    ModelPrice.objects.bulk_create(
        ModelPrice(provider=f"p{number % 40}", model=f"m{number}", input_usd_per_million=number % 7, rank=number,
                   effective_from=LONG_AGO)
        for number in range(4000)
    )  # fmt: skip
    with CaptureQueriesContext(connection) as many:
        answer = curator.get("/catalogue/prices?page=40&sort=dearest")
    assert len(many) == len(few) < 15
    assert len(answer.content) < 200_000
    assert "1951 to 2000 of 4001" in text_in(answer)


def test_a_new_price_acts_from_now_and_the_old_one_stays_in_the_books(curator: Client) -> None:
    old = make()
    before = current_revision()
    sent = opened(curator) | {"input_usd_per_million": "2.50", "capabilities": "vision, Reasoning", "reason": "cheaper"}
    assert curator.post(URL, sent)["Location"] == URL
    old.refresh_from_db()
    new = ModelPrice.objects.get(effective_to=None)
    assert old.effective_to == new.effective_from
    assert (new.input_usd_per_million, new.output_usd_per_million) == (Decimal("2.5"), Decimal(15))
    assert new.capabilities == ["reasoning", "vision"]
    assert current_revision() == before + 1
    assert new.history.first().history_change_reason == "cheaper"


def test_a_price_sent_twice_is_set_once(curator: Client) -> None:
    make()
    sent = opened(curator) | {"input_usd_per_million": "2.50", "reason": "r"}
    curator.post(URL, sent)
    answer = curator.post(URL, sent)
    assert ModelPrice.objects.count() == 2
    assert "Saved already" in text_in(curator.get(answer["Location"]))


def test_the_first_price_of_a_model_is_set(curator: Client) -> None:
    sent = opened(curator) | {"input_usd_per_million": "0.10", "reason": "r"}
    assert curator.post(URL, sent).status_code == 302
    assert ModelPrice.objects.get().model == "gpt/x"


def test_a_price_from_an_instant_to_come_is_set_once_and_taken_back(curator: Client) -> None:
    old = make()
    at = clock.now() + timedelta(days=3)
    sent = opened(curator) | {"input_usd_per_million": "2", "starts": "at", "starts_at": local(at), "reason": "r"}
    assert curator.post(URL, sent).status_code == 302
    curator.post(URL, sent)
    old.refresh_from_db()
    planned = ModelPrice.objects.exclude(pk=old.pk).get()
    assert planned.effective_from == at.replace(microsecond=0) == old.effective_to
    assert overlapping_prices(provider="openai") == []
    curator.post(f"/catalogue/prices/{planned.pk}/end", ending(curator, planned) | {"reason": "not yet"})
    old.refresh_from_db()
    assert ModelPrice.objects.get() == old
    assert old.effective_to is None


@pytest.mark.parametrize("starts_at", ["", "soon", "2020-01-01T00:00", "9999999-01-01", "0001-01-01T00:00"])
def test_an_instant_that_is_past_or_none_is_refused_beside_its_field(curator: Client, starts_at: str) -> None:
    make()
    sent = opened(curator) | {"input_usd_per_million": "2", "starts": "at", "starts_at": starts_at, "reason": "r"}
    answer = curator.post(URL, sent)
    assert "starts_at" in answer.context["form"].errors
    assert ModelPrice.objects.count() == 1


def test_a_time_that_summer_time_skips_is_refused(curator: Client, settings: Any) -> None:
    settings.TIME_ZONE_DISPLAY = "Europe/Berlin"
    sent = opened(curator) | {"starts": "at", "starts_at": "2099-03-29T02:30", "reason": "r"}
    assert "summer time skips it" in text_in(curator.post(URL, sent))


def test_an_instant_is_told_in_the_zone_of_the_screen(curator: Client, settings: Any) -> None:
    settings.TIME_ZONE_DISPLAY = "Europe/Berlin"
    sent = opened(curator) | {"starts": "at", "starts_at": "2099-07-01T02:00", "reason": "r"}
    assert curator.post(URL, sent).status_code == 302
    assert ModelPrice.objects.get().effective_from == datetime(2099, 7, 1, 0, 0, tzinfo=UTC)


def test_every_bad_number_is_named_beside_its_field(curator: Client) -> None:
    make()
    bad = {"input_usd_per_million": "1,5", "output_usd_per_million": "-1", "cached_input_usd_per_million": "NaN",
           "capabilities": "a, a", "rank": "-1", "reason": ""}  # fmt: skip
    answer = curator.post(URL, opened(curator) | bad)
    assert set(answer.context["form"].errors) == set(bad)
    assert ModelPrice.objects.count() == 1


def test_a_price_that_somebody_changed_meanwhile_is_refused(curator: Client) -> None:
    old = make()
    sent = opened(curator) | {"input_usd_per_million": "2", "reason": "mine"}
    update_price(price=old, changes={"output_usd_per_million": Decimal(99)}, actor=Actor(name="jonas"), reason="up",
                 now=clock.now())  # fmt: skip
    answer = curator.post(URL, sent)
    assert answer.status_code == 409
    assert "jonas changed this price" in text_in(answer)
    assert ModelPrice.objects.count() == 2
    again = form_in(answer)
    assert again["input_usd_per_million"] == "2"
    assert curator.post(URL, again | {"reason": "still mine"}).status_code == 302


def test_a_price_is_ended_now_or_later_and_never_twice(curator: Client) -> None:
    price = make()
    url = f"/catalogue/prices/{price.pk}/end"
    at = (clock.now() + timedelta(days=1)).replace(microsecond=0)
    curator.post(url, ending(curator, price) | {"ends": "at", "ends_at": local(at), "reason": "r"})
    price.refresh_from_db()
    assert price.effective_to == at
    form = ending(curator, price) | {"ends": "now", "reason": "gone"}
    curator.post(url, form)
    price.refresh_from_db()
    assert price.effective_to is not None
    assert price.effective_to < at
    versions = price.history.count()
    assert curator.post(url, form).status_code in {302, 409}
    assert price.history.count() == versions


def test_the_end_of_a_price_asks_why(curator: Client) -> None:
    price = make()
    answer = curator.post(f"/catalogue/prices/{price.pk}/end", ending(curator, price) | {"reason": ""})
    assert "Say why" in text_in(answer)
    price.refresh_from_db()
    assert price.effective_to is None


def test_who_may_only_look_sees_no_form_and_is_refused(as_role: Any) -> None:
    """SPEC 5: Roles."""
    price = make()
    viewer = as_role("viewer")
    assert b"row-form" not in viewer.get(URL).content
    assert viewer.post(URL, {}).status_code == 403
    assert viewer.post(f"/catalogue/prices/{price.pk}/end", {}).status_code == 403


@pytest.mark.parametrize("query", ["", "?provider=openai", "?provider=a%20b&model=x", "?model=%00"])
def test_an_address_without_a_model_leads_to_the_list(curator: Client, query: str) -> None:
    assert curator.get(f"/catalogue/prices/model{query}")["Location"] == "/catalogue/prices"


def undo_of(client: Client, response: Any) -> str:
    found = re.search(r'href="([^"]+)">Undo<', client.get(response["Location"]).content.decode())
    assert found
    return unescape(found[1])


def test_a_price_is_undone_at_the_version_before_and_a_planned_one_is_taken_back(curator: Client) -> None:
    old = make()
    answer = curator.post(URL, opened(curator) | {"input_usd_per_million": "2.50", "reason": "r"})
    version = undo_of(curator, answer)
    assert version == f"/audit/price/{old.history.first().history_id}"
    back = form_in(curator.get(version), marks=lambda given: given.get("method") == "post")
    curator.post(version, back | {"reason": "too cheap"})
    assert ModelPrice.objects.get(effective_to=None).input_usd_per_million == Decimal(3)
    at = clock.now() + timedelta(days=3)
    sent = {"input_usd_per_million": "9", "starts": "at", "starts_at": local(at), "reason": "r"}
    assert "#end-" in undo_of(curator, curator.post(URL, opened(curator) | sent))
