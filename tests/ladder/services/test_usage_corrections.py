"""SPEC 4, Usage: a correction is a new event with the full cost, booked at the original's instant."""

from datetime import timedelta
from itertools import permutations

import pytest

from billing_catalog.models import BillingEntry
from billing_catalog.services.entries import update_entry
from ladder.core.values import Rung
from ladder.models import UsageEvent
from ladder.selectors.ledger_faults import check_ledger
from ladder.services.connections import delete_connection
from tests.factories_ladder import NOW, OPERATOR
from tests.ladder.services.booking import (
    SECOND,
    codes,
    correct,
    counts,
    event,
    make_ladder,
    record,
    row,
    spent,
    usd,
)

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def ladder(db):
    make_ladder()


def test_a_correction_adds_the_difference_at_the_instant_of_its_original_m4():
    record(event("e1", "1.00", at=NOW - DAY))
    assert counts(record(correct("c1", "e1", "0.40"))) == (1, 0, 0, 0)
    assert (row("c1").booked_usd, row("c1").booked_cost, row("c1").booked_at) == (usd("-0.60"), usd("0.40"), NOW - DAY)
    assert (spent(now=NOW - DAY), spent()) == (usd("0.40"), 0)


def test_the_original_stays_as_it_was_written_spec_3():
    record(event("e1", "1.00"))
    before = UsageEvent.objects.values().get(event_id="e1")
    record(correct("c1", "e1", "2.00"))
    assert UsageEvent.objects.values().get(event_id="e1") == before


def test_of_several_corrections_the_latest_counts_in_whatever_order_they_arrive():
    record(event("e1", "1.00"))
    record(correct("c3", "e1", "0.30", at=NOW + 3 * SECOND))
    assert counts(record(correct("c2", "e1", "0.20", at=NOW + 2 * SECOND))) == (0, 0, 1, 0)
    assert spent() == usd("0.30")
    record(correct("c4", "e1", "0.40", at=NOW + 4 * SECOND))
    assert spent() == usd("0.40")


def test_of_two_corrections_of_one_instant_the_greater_id_counts():
    record(event("e1", "1.00"), correct("b", "e1", "0.20"), correct("a", "e1", "0.10"))
    assert spent() == usd("0.20")
    record(correct("c", "e1", "0.30"))
    assert spent() == usd("0.30")


CHAIN = [event("e1", "1.00"), correct("c", "e1", "0.50"), correct("b", "c", "0.20"), correct("a", "b", "0.10")]


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_at_one_instant_a_correction_of_a_correction_counts_in_whatever_order_they_arrive(order):
    record(*(CHAIN[place] for place in order))
    assert (spent(), check_ledger().faults) == (usd("0.10"), ())


def test_at_one_instant_a_chain_that_arrives_in_pieces_ends_at_its_deepest_correction():
    first, second, third = record(CHAIN[0], CHAIN[3]), record(CHAIN[1]), record(CHAIN[3], CHAIN[2])
    assert (codes(first), counts(second), counts(third)) == ([(1, "unknown_event")], (1, 0, 0, 0), (2, 0, 0, 0))
    assert spent() == usd("0.10")
    assert counts(record(correct("z", "e1", "0.90"))) == (0, 0, 1, 0)
    assert counts(record(correct("y", "z", "0.80"))) == (0, 0, 1, 0)
    assert counts(record(correct("x", "y", "0.70"))) == (1, 0, 0, 0)
    assert (spent(), check_ledger().faults) == (usd("0.70"), ())


def test_a_later_instant_counts_before_a_deeper_correction():
    record(*CHAIN, correct("a2", "e1", "0.30", at=NOW + 2 * SECOND))
    assert spent() == usd("0.30")


def test_a_correction_may_stand_before_its_original_in_the_body():
    answer = record(correct("c2", "c1", "0.20", at=NOW + 2 * SECOND), correct("c1", "e1", "0.10"), event("e1", "1.00"))
    assert counts(answer) == (3, 0, 0, 0)
    assert spent() == usd("0.20")


def test_a_correction_of_a_correction_corrects_the_first_original():
    record(event("e1", "1.00"), correct("c1", "e1", "0.50"))
    record(correct("c2", "c1", "0.25", at=NOW + 2 * SECOND))
    assert (row("c2").original, row("c2").corrects_event_id, spent()) == (row("e1"), "c1", usd("0.25"))
    assert counts(record(correct("c2", "c1", "0.25", at=NOW + 2 * SECOND)))[1] == 1
    assert codes(record(correct("c2", "e1", "0.25", at=NOW + 2 * SECOND))) == [(0, "conflict")]


@pytest.mark.parametrize("corrected", ["nothing", "c1"])
def test_a_correction_of_nothing_is_rejected(corrected):
    assert codes(record(correct("c1", corrected, "0.10"))) == [(0, "unknown_event")]
    assert not UsageEvent.objects.exists()


def test_corrections_of_each_other_are_rejected():
    answer = record(correct("a", "b", "0.10"), correct("b", "a", "0.10"))
    assert codes(answer) == [(0, "unknown_event"), (1, "unknown_event")]


def test_a_correction_of_a_rejected_event_is_rejected():
    assert codes(record(event("e1", "-1"), correct("c1", "e1", "0.10"))) == [(0, "invalid_item"), (1, "unknown_event")]


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"connection_id": "plan"}, "connection_id"),
        ({"model": "big"}, "model"),
        ({"provider": "claude"}, "provider"),
        ({"is_overage": True}, "is_overage"),
    ],
)
def test_a_correction_says_what_it_cost_not_who_did_what(fields, word):
    record(event("e1", "1.00"))
    answer = record(correct("c1", "e1", "0.10", **fields))
    assert codes(answer) == [(0, "correction_mismatch")]
    assert answer.rejected[0].detail.startswith(f"{word}:")


def test_a_correction_twice_has_one_effect():
    record(event("e1", "1.00"))
    assert counts(record(correct("c1", "e1", "0.10"), correct("c1", "e1", "0.10"))) == (1, 1, 0, 0)
    assert codes(record(correct("c1", "e1", "0.20"))) == [(0, "conflict")]
    assert spent() == usd("0.10")


def test_a_correction_stays_on_the_rung_of_its_original_m6():
    record(event("e1", "1.00"))
    entry = BillingEntry.objects.get(provider="openrouter")
    update_entry(entry=entry, changes={"billing": "subscription"}, actor=OPERATOR, reason="a test", now=NOW + SECOND)
    record(correct("c1", "e1", "0.10", at=NOW + 2 * SECOND))
    assert (row("c1").rung, row("c1").billing, row("c1").money_kind) == ("cheap", "metered", "budget")


def test_a_correction_with_tokens_is_priced_as_the_original_would_have_been_m7():
    record(event("e1", "1.00"))
    record(correct("c1", "e1", None, input_tokens=1_000_000))
    assert (row("c1").booked_cost, row("c1").is_estimated, spent()) == (usd("0.50"), False, usd("0.50"))


def test_the_correction_of_an_overage_is_an_overage_m5():
    record(event("e1", "1.00", connection_id="plan", model="opus", is_overage=True))
    record(correct("c1", "e1", "0.10", connection_id="plan", model="opus"))
    assert (row("c1").money_kind, row("c1").booked_usd, row("c1").is_overage) == ("overage", usd("-0.90"), True)
    assert counts(record(correct("c1", "e1", "0.10", connection_id="plan", model="opus")))[1] == 1
    assert spent(Rung.PREMIUM) == 0


def test_a_correction_finds_its_original_although_the_connection_was_deleted_spec_4():
    record(event("e1", "1.00"))
    connection = row("e1").connection
    delete_connection(connection=connection, actor=OPERATOR, reason="a test", now=NOW + SECOND)
    assert counts(record(correct("c1", "e1", "0.10", at=NOW + 2 * SECOND))) == (1, 0, 0, 0)
    assert row("c1").connection_id == connection.pk
