"""M5 to M7: what an event is booked as, and what corrections add."""

from datetime import timedelta
from decimal import Decimal
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing_catalog.core.past import Past, Records
from billing_catalog.core.values import Billing, CatalogRow, Overage, Price
from billing_catalog.core.versions import ALWAYS, FOREVER, Span
from ladder.core.instants import NEVER
from ladder.core.money import closed_spans
from ladder.core.spend.ledger import (
    Claim,
    Cost,
    Spend,
    Tokens,
    book,
    correction_depths,
    counting_claim,
    dearest_of_rung,
    estimated_cost,
    known_cost,
    money_kind,
    stood,
)
from ladder.core.values import Accounting, Budget, Hold, MoneyKind, Rung
from tests.ladder.core.asking import NOW
from tests.ladder.core.strategies import PROPERTY

SECOND = timedelta(seconds=1)
BUDGET, OVERAGE, PLAN = MoneyKind.BUDGET, MoneyKind.OVERAGE, MoneyKind.PLAN
PRICE = Price("acme", "m", ALWAYS, None, Decimal(2), Decimal(10), Decimal("0.2"))
MILLION = Tokens(1_000_000, 1_000_000, 0)


@pytest.mark.parametrize(
    ("rung", "is_overage", "kind"),
    [
        *((rung, True, OVERAGE) for rung in (Rung.SUBSCRIPTION, Rung.KEYLESS, Rung.FREE)),
        *((rung, False, PLAN) for rung in (Rung.SUBSCRIPTION, Rung.KEYLESS, Rung.FREE)),
        *((rung, said, BUDGET) for rung in (Rung.CHEAP, Rung.PREMIUM) for said in (True, False)),
    ],
)
def test_only_paid_rungs_draw_on_a_budget_m5(rung, is_overage, kind):
    assert money_kind(rung=rung, is_overage=is_overage) is kind


@pytest.mark.parametrize(
    ("given_usd", "tokens", "price", "kind", "expected"),
    [
        ("3", MILLION, PRICE, BUDGET, "3"),
        ("0", MILLION, PRICE, BUDGET, "0"),
        ("0", MILLION, PRICE, OVERAGE, "0"),
        ("3", MILLION, PRICE, PLAN, "3"),
        ("0", MILLION, PRICE, PLAN, "12"),
        ("0", Tokens(), PRICE, PLAN, "0"),
        (None, MILLION, PRICE, BUDGET, "12"),
        (None, Tokens(1_000_000, None, 500_000), PRICE, BUDGET, "1.1"),
        (None, Tokens(None, 1), PRICE, BUDGET, "0.000010"),
        (None, Tokens(), PRICE, BUDGET, None),
        (None, MILLION, None, BUDGET, None),
        (None, MILLION, Price("acme", "m", ALWAYS, None, Decimal(2)), BUDGET, None),
    ],
)
def test_a_cost_is_given_or_priced_or_unknown_m7(given_usd, tokens, price, kind, expected):
    usd = None if given_usd is None else Decimal(given_usd)
    cost = known_cost(given=usd, tokens=tokens, price=price, kind=kind)
    assert cost == (None if expected is None else Cost(Decimal(expected)))


def test_an_estimate_is_marked_m7():
    assert estimated_cost(tokens=MILLION, price=PRICE) == Cost(Decimal(12), is_estimated=True)
    assert estimated_cost(tokens=MILLION, price=None) == Cost(Decimal(0), is_estimated=True)


def catalogue():
    entries = [
        CatalogRow("plans", Billing.SUBSCRIPTION, Overage.HARD_STOP, "oauth"),
        CatalogRow("open", Billing.KEYLESS, Overage.HARD_STOP),
    ]
    prices = [
        ("plans", "p", "7", "70"),
        ("open", "o", "0.2", "0.2"),
        ("acme", "free", "0", "0"),
        ("acme", "cheap", "1", "2"),
        ("acme", "half", "0.5", "3"),
        ("acme", "dear", "20", "30"),
    ]
    rows = tuple(Price(name, model, ALWAYS, None, Decimal(low), Decimal(high)) for name, model, low, high in prices)
    spans = tuple(Span(number, ALWAYS, FOREVER, entry) for number, entry in enumerate(entries))
    return Past(records=Records(entries=spans, prices=rows), known_at=NOW)


@pytest.mark.parametrize(
    ("rung", "dearest"),
    [
        (Rung.SUBSCRIPTION, ("7", "70")),
        (Rung.KEYLESS, ("0.2", "0.2")),
        (Rung.FREE, ("0", "0")),
        (Rung.CHEAP, ("1", "3")),
        (Rung.PREMIUM, ("20", "70")),
    ],
)
def test_the_dearest_input_and_output_of_a_rung_may_be_of_two_models_m7(rung, dearest):
    found = dearest_of_rung(past=catalogue(), rung=rung, at=NOW)
    assert found is not None
    assert (found.input_usd_per_million, found.output_usd_per_million) == tuple(map(Decimal, dearest))


@pytest.mark.parametrize(
    ("provider", "connection_id", "auth_type", "model", "rung", "billing"),
    [
        ("plans", "c1", "oauth", "p", Rung.SUBSCRIPTION, Billing.SUBSCRIPTION),
        ("plans", "c1", "apikey", "p", Rung.PREMIUM, Billing.UNKNOWN),
        ("open", "c1", None, "o", Rung.KEYLESS, Billing.KEYLESS),
        ("acme", "noauth", "none", "dear", Rung.KEYLESS, Billing.KEYLESS),
        ("acme", "c1", "apikey", "half", Rung.CHEAP, Billing.UNKNOWN),
        ("acme", "c1", "apikey", "none such", Rung.PREMIUM, Billing.UNKNOWN),
    ],
)
def test_an_event_stands_where_its_pair_stood_m6(provider, connection_id, auth_type, model, rung, billing):
    place = stood(
        past=catalogue(), provider=provider, connection_id=connection_id, auth_type=auth_type, model=model, at=NOW
    )
    assert (place.rung, place.billing) == (rung, billing)


claims = st.lists(
    st.tuples(st.integers(0, 1), st.integers(1, 3), st.integers(0, 9), st.booleans()), min_size=1, max_size=5
)


@PROPERTY
@given(said=claims)
def test_rows_add_up_to_the_claim_that_counts_in_any_order_of_arrival(said):
    original = Claim(0, NOW + 9 * SECOND, "z", Cost(Decimal(100)))
    fixes = [
        Claim(depth, NOW + seconds * SECOND, f"c{number}", Cost(Decimal(usd), estimated))
        for number, (seconds, depth, usd, estimated) in enumerate(said)
    ]
    for order in list(permutations(fixes))[:24]:
        counting, total, estimated = original, book(claim=original, counting=None).usd, 0
        for claim in order:
            booking = book(claim=claim, counting=counting)
            total, estimated = total + booking.usd, estimated + booking.estimated_change
            counting = claim if booking.counts else counting
        last = max(fixes, key=lambda claim: (claim.occurred_at, claim.depth, claim.event_id))
        assert counting == last == counting_claim([original, *fixes])
        assert (total, estimated) == (last.cost.usd, int(last.cost.is_estimated))


def test_a_correction_is_as_deep_as_the_chain_below_it_is_long():
    bases = {"c": "b", "e": "", "b": "a", "a": "e", "d": "e", "x": "y", "y": "x", "lost": "nobody", "after": "lost"}
    assert correction_depths(bases=bases) == {"e": 0, "a": 1, "d": 1, "b": 2, "c": 3}
    long = {f"{number}": f"{number - 1}" for number in range(1, 5000)} | {"0": ""}
    assert correction_depths(bases=long)["4999"] == 4999


def test_spend_tells_how_well_it_is_known():
    assert Spend().accounting is Accounting.NONE
    assert Spend(Decimal(1), rows=2).accounting is Accounting.COMPLETE
    assert Spend(Decimal(1), rows=2, estimated=1).accounting is Accounting.PARTIAL


def test_a_gate_is_all_that_decisions_take_from_spend_and_holds_m2():
    hold = Hold(Decimal(1), NOW + SECOND)
    end = NOW + 9 * SECOND

    def told(spent, *holds):
        return closed_spans(budget=Budget(Decimal(2), Decimal(spent), holds, window_end=end), now=NOW)

    assert told(1) == ()
    assert told(1, hold) == ((NOW, NOW + SECOND),)
    assert told(2, hold) == ((NOW, end),)


def test_refunds_make_room_for_holds_that_close_the_rung_when_the_window_turns_m2():
    lasting = Hold(Decimal(2), NOW + 20 * SECOND)
    budget = Budget(Decimal(2), Decimal(-1), (lasting,), window_end=NOW + 9 * SECOND)
    assert closed_spans(budget=budget, now=NOW) == ((NOW + 9 * SECOND, NOW + 20 * SECOND),)
    assert closed_spans(budget=Budget(Decimal(2), Decimal(2)), now=NOW) == ((NOW, NEVER),)
