"""C: a provider's breaker is open up to its own end."""

from datetime import timedelta
from itertools import permutations

import msgspec
import pytest
from django.db import connection as database
from django.test.utils import CaptureQueriesContext

from ladder.models import Breaker
from ladder.selectors.state import read_breakers
from ladder.services.breakers import OPEN_WITHOUT_END, BreakerItem, record_breakers
from omniroute_admin.common.selectors.revision import current_revision
from tests.factories import ProviderAliasFactory
from tests.factories_ladder import NOW, REPORTER

pytestmark = pytest.mark.django_db

MINUTE = timedelta(minutes=1)


def event(state="open", at=0, until=None, provider="claude"):
    """Return an item; `at` and `until` are minutes after NOW."""
    raw = b"null" if until is None else msgspec.json.encode(NOW + until * MINUTE)
    return BreakerItem(provider=provider, state=state, occurred_at=NOW + at * MINUTE, open_until=msgspec.Raw(raw))


def report(*items, now=NOW):
    answer = record_breakers(items=items, actor=REPORTER, now=now)
    return answer.accepted, answer.duplicates, answer.superseded, len(answer.rejected)


def test_it_is_open_up_to_the_end_that_is_reported_with_history():
    before = current_revision()
    assert report(event(until=10)) == (1, 0, 0, 0)
    assert read_breakers() == {"claude": NOW + 10 * MINUTE}
    act = Breaker.objects.get().history.get()
    assert (act.history_type, act.history_actor, act.open_until) == ("+", REPORTER.name, NOW + 10 * MINUTE)
    assert current_revision() == before + 1


def test_without_an_end_it_is_open_for_a_while_and_not_for_ever():
    report(event(at=-0.5))
    assert read_breakers() == {"claude": NOW - MINUTE / 2 + OPEN_WITHOUT_END}


def test_closed_clears_it_and_a_newer_report_may_shorten_it():
    report(event(at=-3, until=30))
    report(event(at=-2, until=5))
    assert read_breakers() == {"claude": NOW + 5 * MINUTE}
    report(event("closed", at=-1))
    assert read_breakers() == {}
    assert [act.history_type for act in Breaker.history.order_by("history_id")] == ["+", "~", "~"]


def test_an_older_report_is_superseded_and_the_same_one_a_duplicate():
    report(event("closed"))
    before = current_revision()
    assert report(event(at=-1, until=30), event("closed")) == (0, 1, 1, 0)
    assert (read_breakers(), current_revision(), Breaker.history.count()) == ({}, before, 1)


def test_one_whose_end_is_past_is_accepted_and_opens_nothing():
    before = current_revision()
    assert report(event(at=-10, until=-5)) == (1, 0, 0, 0)
    assert current_revision() == before


def test_each_provider_has_its_own_and_names_are_canonical_spec_1():
    ProviderAliasFactory(alias="cc", provider="claude")
    assert report(event(until=5, provider=" CC "), event(until=6, provider="Nobody-Knows-Me")) == (2, 0, 0, 0)
    assert read_breakers() == {"claude": NOW + 5 * MINUTE, "nobody-knows-me": NOW + 6 * MINUTE}


REPORTS = [(-3, "open", 9), (-2, "closed", None), (0, "open", 7), (0, "open", 3)]


@pytest.mark.parametrize("order", list(permutations(REPORTS)))
def test_in_whatever_order_reports_come_the_newest_stands(order):
    for at, state, until in order:
        report(event(state, at, until))
    assert read_breakers() == {"claude": NOW + 7 * MINUTE}


def test_of_one_instant_open_goes_before_closed():
    report(event("closed"), event(until=3))
    report(event("closed"))
    assert read_breakers() == {"claude": NOW + 3 * MINUTE}


def test_bad_items_cost_the_good_ones_nothing_spec_4():
    answer = record_breakers(
        items=[event(provider="what is this"), event(until=5), event(at=1.1), event("closed", until=5)],
        actor=REPORTER,
        now=NOW,
    )
    assert [(one.index, one.code) for one in answer.rejected] == [
        (0, "invalid_item"),
        (2, "occurred_in_future"),
        (3, "conflicting_values"),
    ]
    assert (answer.accepted, Breaker.objects.count()) == (1, 1)


def test_as_many_queries_for_5000_as_for_two():
    def queries_of(number, at):
        items = [event(at=at, provider=f"p{place % 3000}") for place in range(number)]
        with CaptureQueriesContext(database) as queries:
            report(*items)
        return len(queries)

    queries_of(1, -3)
    assert queries_of(2, -2) == queries_of(5000, -1)
    assert Breaker.objects.count() == 3000
