"""M6: the catalogue as it stood at an instant, worked out from what its rows said when."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing_catalog.core.past import Past, Records
from billing_catalog.core.values import Billing, CatalogRow, Overage, Price, Thresholds, Tier, TierRule
from billing_catalog.core.versions import ALWAYS, FOREVER, Span, Version, spans_of, standing_at

T0 = datetime(2026, 8, 1, tzinfo=UTC)
DAY = timedelta(days=1)
TICK = timedelta(microseconds=1)


def day(number):
    return T0 + number * DAY


def spans(*versions):
    """Return (row, first day, last day, value), ALWAYS and FOREVER as None; the key is the value's first letter."""
    found = spans_of(versions=[Version(row, day(at), value) for row, at, value in versions], key=lambda value: value[0])
    return [
        (
            span.row,
            None if span.start == ALWAYS else (span.start - T0) // DAY,
            None if span.end == FOREVER else (span.end - T0) // DAY,
            span.value,
        )
        for span in found
    ]


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        ([], []),
        ([(1, 3, "a1")], [(1, None, None, "a1")]),
        ([(1, 3, "a1"), (1, 5, "a2")], [(1, None, 5, "a1"), (1, 5, None, "a2")]),
        ([(1, 3, "a1"), (1, 5, None)], [(1, None, 5, "a1")]),
        # Made again after a deletion: it says nothing of the time between.
        ([(1, 3, "a1"), (1, 5, None), (2, 7, "a2")], [(1, None, 5, "a1"), (2, 7, None, "a2")]),
        # Two things: each one's first holds for all time before.
        ([(1, 3, "a1"), (2, 7, "b1")], [(1, None, None, "a1"), (2, None, None, "b1")]),
        # A row that came to speak of something else says nothing of that before.
        ([(1, 3, "a1"), (1, 5, "b1")], [(1, None, 5, "a1"), (1, 5, None, "b1")]),
        # Two versions of one instant: the last counts, and holds for the time before too.
        ([(1, 3, "a1"), (1, 3, "a2")], [(1, None, None, "a2")]),
        # A clock that went back cannot reach behind what was written before.
        ([(1, 5, "a1"), (1, 3, "a2"), (1, 7, "a3")], [(1, None, 7, "a2"), (1, 7, None, "a3")]),
        # In order of the rows' ids, whenever they were written.
        ([(2, 3, "b1"), (1, 4, "a1")], [(1, None, None, "a1"), (2, None, None, "b1")]),
    ],
)
def test_each_version_holds_till_the_next_and_the_first_for_all_time_before_m6(versions, expected):
    assert spans(*versions) == expected


@given(
    later=st.lists(st.tuples(st.integers(1, 20), st.one_of(st.none(), st.sampled_from("abc"))), max_size=6),
    at=st.integers(-5, 30),
)
def test_a_row_says_what_was_written_last_and_before_all_of_it_what_was_written_first_m6(later, at):
    edits = [(0, "a"), *sorted(later, key=lambda edit: edit[0])]
    versions = [Version(1, day(when), value) for when, value in edits]
    found = standing_at(spans=spans_of(versions=versions, key=lambda _: "one"), at=day(at))
    wanted = [value for when, value in edits if when <= max(at, 0)][-1]
    assert found == ([] if wanted is None else [wanted])


def always(*values):
    return tuple(Span(number, ALWAYS, FOREVER, value) for number, value in enumerate(values))


def price(start, price_in, *, model="m", provider="acme", end=None):
    return Price(provider, model, day(start), None if end is None else day(end), Decimal(price_in), Decimal(price_in))


def past(*prices, known_at=T0 + 100 * DAY, **records):
    return Past(records=Records(prices=prices, **records), known_at=known_at)


def cost(book, at, model="m"):
    found = book.price_of(provider="acme", model=model, at=at)
    return None if found is None else found.input_usd_per_million


def test_the_first_price_holds_for_all_time_before_it_and_the_others_for_theirs_m6():
    book = past(price(10, 2, end=20), price(0, 1, end=10))
    assert [cost(book, day(at)) for at in (-999, 5, 10, 19, 20)] == [1, 1, 2, 2, None]
    assert cost(book, day(10) - TICK) == 1


def test_a_price_that_has_not_begun_is_not_known_before_m6():
    book = past(price(10, 2), known_at=day(10) - TICK)
    assert (cost(book, day(5)), cost(book, day(10))) == (None, 2)
    assert cost(past(price(10, 2), known_at=day(10)), day(5)) == 2


def test_tiers_follow_override_free_provider_price_and_thresholds_of_the_instant_t():
    book = past(
        price(0, 5),
        rules=(Span(1, day(10), day(20), TierRule("acme", Tier.CHEAP, "M*")),),
        free_providers=(Span(1, day(15), FOREVER, "acme"),),
        thresholds=(Span(1, ALWAYS, day(-1), Thresholds(cheap=Decimal(9))), Span(1, day(-1), FOREVER, Thresholds())),
    )
    tiers = [book.tier_of(provider="acme", model="m", at=day(at)) for at in (-2, 0, 10, 15, 20)]
    assert tiers == [Tier.CHEAP, Tier.PREMIUM, Tier.CHEAP, Tier.CHEAP, Tier.FREE]


@pytest.mark.parametrize(
    "records",
    [
        {"price_sources": always(("acme", True))},
        {"entries": always(CatalogRow("acme", Billing.SUBSCRIPTION, Overage.HARD_STOP, "oauth"))},
    ],
)
def test_a_price_of_zero_from_a_seller_of_seats_is_no_price_t(records):
    book = past(price(0, 0), price(0, 3, model="other"), **records)
    assert (cost(book, T0), book.tier_of(provider="acme", model="m", at=T0)) == (None, Tier.PREMIUM)
    assert [(found.model, tier) for found, tier in book.prices_at(T0)] == [("other", Tier.PREMIUM)]
    assert cost(past(price(0, 0), price_sources=always(("acme", False))), T0) == 0


def test_billing_follows_the_entries_of_the_instant_b2():
    wide = CatalogRow("acme", Billing.METERED, Overage.UNKNOWN)
    plan = CatalogRow("acme", Billing.SUBSCRIPTION, Overage.HARD_STOP, "oauth")
    book = past(entries=(Span(1, ALWAYS, FOREVER, wide), Span(2, day(5), day(10), plan)))

    def billing(at, auth_type="oauth", connection_id="c1"):
        return book.billing_of(provider="acme", connection_id=connection_id, auth_type=auth_type, at=at).billing

    assert [billing(day(at)) for at in (0, 5, 10)] == [Billing.METERED, Billing.SUBSCRIPTION, Billing.METERED]
    assert (billing(day(5), None), billing(day(5), "none", "noauth")) == (Billing.METERED, Billing.KEYLESS)
    assert book.providers_billing(Billing.SUBSCRIPTION, at=day(5)) == {"acme"}
    assert book.providers_billing(Billing.SUBSCRIPTION, at=day(0)) == frozenset()


def test_an_epoch_is_a_span_in_which_the_catalogue_says_the_same():
    book = past(price(0, 1, end=10), price(10, 2), free_providers=(Span(1, day(5), FOREVER, "acme"),))
    names = [book.epoch(day(at)) for at in (-9, 0, 5, 9, 10, 99)]
    assert names[0] == names[1] != names[2] == names[3] != names[4] == names[5]
