"""T: the economic tier of (provider, model)."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from billing_catalog.core.tiers import (
    TierCause,
    classify_tier,
    current_price,
    explain_tier,
    index_tiers,
    price_boundaries,
)
from billing_catalog.core.values import Price, Thresholds, Tier, TierRule

NOW = datetime(2026, 8, 22, 12, 0, tzinfo=UTC)
TICK = timedelta(microseconds=1)
FREE, CHEAP, PREMIUM = Tier.FREE, Tier.CHEAP, Tier.PREMIUM


def tier(price, *rules, free=(), seats=(), thresholds=None, model="opus-4"):
    index = index_tiers(
        rules=rules,
        free_providers=frozenset(free),
        seat_sellers=frozenset(seats),
        thresholds=thresholds or Thresholds(),
    )
    cost = None if price is None else Decimal(price)
    return classify_tier(index=index, provider="acme", model=model, input_usd_per_million=cost)


@pytest.mark.parametrize(
    ("price", "expected"),
    [
        ("-1", FREE),
        ("0", FREE),
        ("0.0000000001", CHEAP),
        ("1.00", CHEAP),
        ("1.0000000001", PREMIUM),
        ("75", PREMIUM),
        (None, PREMIUM),
    ],
)
def test_a_price_is_free_up_to_0_cheap_up_to_1_and_premium_above_and_without_one_premium(price, expected):
    assert tier(price) is expected


@pytest.mark.parametrize(
    ("price", "expected"), [("0.5", FREE), ("0.500001", CHEAP), ("3", CHEAP), ("3.000001", PREMIUM)]
)
def test_both_thresholds_are_settings(price, expected):
    assert tier(price, thresholds=Thresholds(Decimal("0.5"), Decimal(3))) is expected


def test_a_price_of_0_from_a_provider_that_sells_seats_is_no_price():
    assert tier("0", seats=["acme"]) is PREMIUM
    assert tier("0", seats=["other"]) is FREE
    assert tier("0.01", seats=["acme"]) is CHEAP


def test_a_seat_seller_on_the_list_of_free_providers_is_free():
    assert tier("0", seats=["acme"], free=["acme"]) is FREE


def test_overrides_come_before_the_list_and_the_list_before_the_price():
    wide, named = TierRule("acme", PREMIUM), TierRule("acme", CHEAP, "opus-*")
    assert tier("0", named, wide, free=["acme"]) is PREMIUM
    assert tier("0", named, free=["acme"]) is CHEAP
    assert tier("75", free=["acme"]) is FREE
    assert tier("75", free=["other"]) is PREMIUM


def test_an_override_of_another_provider_says_nothing():
    assert tier("1", TierRule("other", FREE), TierRule("other", FREE, "*")) is CHEAP


@pytest.mark.parametrize("patterns", [("*", "opus-4"), ("opus-4", "*"), ("OPUS-*", "*-4")])
def test_of_several_patterns_that_match_the_one_made_first_wins(patterns):
    first, second = patterns
    assert tier("15", TierRule("acme", FREE, first), TierRule("acme", CHEAP, second)) is FREE


def test_a_pattern_speaks_of_the_whole_name_in_any_case():
    assert tier("15", TierRule("acme", FREE, "OPUS-*")) is FREE
    assert tier("15", TierRule("acme", FREE, "opus")) is PREMIUM
    assert tier("15", TierRule("acme", FREE, "*opus"), model="big-opus") is FREE


def price(start, end=None):
    return Price("acme", "opus-4", start, end)


def test_a_price_holds_from_its_start_to_just_before_its_end():
    row = price(NOW, NOW + TICK)
    assert current_price(prices=[row], at=NOW) == row
    assert current_price(prices=[row], at=NOW - TICK) is None
    assert current_price(prices=[row], at=NOW + TICK) is None


def test_of_several_prices_that_hold_the_latest_start_wins():
    old, new = price(NOW - TICK), price(NOW)
    assert current_price(prices=[new, old], at=NOW) == new
    assert current_price(prices=[new, old], at=NOW - TICK) == old


def test_p9_prices_change_at_their_starts_and_ends():
    rows = [price(NOW - TICK, NOW), price(NOW, NOW + 2 * TICK), price(NOW + 2 * TICK)]
    assert price_boundaries(prices=rows, after=NOW - TICK) == [NOW, NOW + 2 * TICK]
    assert price_boundaries(prices=rows, after=NOW) == [NOW + 2 * TICK]


@pytest.mark.parametrize(
    ("provider", "model", "price", "cause"),
    [
        ("wide", "m", "9", TierCause.PROVIDER_OVERRIDE),
        ("some", "m:free", "9", TierCause.MODEL_OVERRIDE),
        ("gift", "m", "9", TierCause.FREE_PROVIDER),
        ("seat", "m", "0", TierCause.SEATS),
        ("other", "m", None, TierCause.NO_PRICE),
        ("other", "m", "0.5", TierCause.PRICE),
    ],
)
def test_a_tier_is_told_with_the_part_of_the_rule_that_said_it(provider, model, price, cause) -> None:
    """T."""
    index = index_tiers(
        rules=[TierRule("wide", Tier.CHEAP), TierRule("some", Tier.FREE, "*:free")],
        free_providers=frozenset({"gift"}),
        seat_sellers=frozenset({"seat"}),
        thresholds=Thresholds(),
    )
    asked = {"provider": provider, "model": model, "input_usd_per_million": None if price is None else Decimal(price)}
    found = explain_tier(index=index, **asked)
    assert found.cause is cause
    assert found.tier is classify_tier(index=index, **asked)
