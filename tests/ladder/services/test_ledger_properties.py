"""Totals equal the sum of what happened after any order of arrival, duplicates, corrections and restarts (M4, M5)."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ladder.core.values import Rung
from ladder.models import UsageEvent
from ladder.selectors.ledger import read_spend
from ladder.selectors.ledger_faults import check_ledger
from ladder.selectors.state import forget_snapshot
from tests.factories_ladder import NOW
from tests.ladder.core.strategies import PROPERTY, examples
from tests.ladder.services.booking import event, make_ladder, record

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)
PAIRS = {"cheap": ("paid", "small"), "premium": ("paid", "big"), "subscription": ("plan", "opus")}
NAMES = ["e1", "e2", "e3", "e4", "e5"]


originals = st.fixed_dictionaries(
    {
        name: st.tuples(st.sampled_from(sorted(PAIRS)), st.integers(-3, 0), st.integers(0, 2_000_000), st.booleans())
        for name in NAMES
    }
)
FIXES = 8
# Of which event, at which of two instants, the new cost; of the event itself (0) or of one of its corrections before.
corrections = st.tuples(
    st.lists(
        st.tuples(st.sampled_from(NAMES), st.integers(0, 1), st.integers(0, 2_000_000), st.integers(0, FIXES)),
        max_size=FIXES,
    ),
    st.permutations([f"c{number}" for number in range(FIXES)]),
)


def micro(number):
    return Decimal(number).scaleb(-6)


def as_items(story):
    """Return the items of a story: five events, and corrections of them or of corrections."""
    events, fixes = story
    items = {}
    for name, (rung, hours, cost, is_overage) in events.items():
        connection_id, model = PAIRS[rung]
        items[name] = event(
            name, str(micro(cost)), at=NOW + hours * HOUR, connection_id=connection_id, model=model,
            is_overage=is_overage,
        )  # fmt: skip
    for fix, (_, base, seconds, _, cost) in chained(fixes).items():
        of = items[base]
        items[fix] = event(
            fix, str(micro(cost)), at=NOW + timedelta(seconds=seconds), connection_id=of.connection_id,
            model=of.model, corrects_event_id=base,
        )  # fmt: skip
    return items


def chained(fixes):
    """Return by the name of a correction: its event, what it corrects, when, how deep it stands, the new cost."""
    said, names = fixes
    chains = {name: [(name, 0)] for name in NAMES}
    found = {}
    for fix, (name, seconds, cost, which) in zip(names, said, strict=False):
        base, depth = chains[name][which % len(chains[name])]
        chains[name].append((fix, depth + 1))
        found[fix] = name, base, seconds, depth + 1, cost
    return found


def expected(story):
    """Say what is spent, by (rung, money, hour): the plain reading of the rules."""
    events, fixes = story
    totals = {}
    for name, (rung, hours, cost, is_overage) in events.items():
        said = [
            (seconds, depth, fix, paid) for fix, (of, _, seconds, depth, paid) in chained(fixes).items() if of == name
        ]
        full = max(said)[-1] if said else cost
        kind = "budget" if rung in {"cheap", "premium"} else "overage" if is_overage else "plan"
        # A plan's request that is reported to cost nothing has no tokens here, so its value is unknown: 0.
        key = (rung, kind, hours)
        totals[key] = totals.get(key, Decimal(0)) + micro(full)
    return totals


def told():
    found = {}
    for rung, kind, at, usd in UsageEvent.objects.values_list("rung", "money_kind", "booked_at", "booked_usd"):
        key = (rung, kind, (at - NOW) // HOUR)
        found[key] = found.get(key, Decimal(0)) + usd
    return found


@pytest.fixture(autouse=True)
def ladder(db):
    make_ladder()


@settings(
    PROPERTY,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=examples(otherwise=60),
)
@given(story=st.tuples(originals, corrections), data=st.data())
def test_totals_are_the_sum_of_what_happened_after_any_history(story, data):
    with transaction.atomic():
        _play(story, data)
        transaction.set_rollback(True)


def _play(story, data):
    items = as_items(story)
    order = data.draw(st.permutations([*items, *data.draw(st.lists(st.sampled_from(sorted(items)), max_size=6))]))
    left = list(order)
    while left:
        size = data.draw(st.integers(1, len(left)))
        body, left = [items[name] for name in left[:size]], left[size:]
        answer = record(*body, now=NOW + 10 * HOUR)
        # What speaks of an event that has not arrived yet is refused, and sent again as any client would.
        refused = {one.index: one.code for one in answer.rejected}
        assert set(refused.values()) <= {"unknown_event"}
        again = [body[index].event_id for index in refused]
        assert len(again) < len(body) or left
        left += again
        forget_snapshot()  # a restart: nothing but the rows is left
    assert told() == expected(story)
    assert check_ledger().faults == ()
    assert UsageEvent.objects.count() == len(items)
    for rung in (Rung.CHEAP, Rung.PREMIUM):
        window = read_spend(rung=rung, start=NOW - 2 * HOUR, end=NOW)
        wanted = [usd for (word, _, hours), usd in expected(story).items() if word == rung.word and -2 <= hours < 0]
        assert window.usd == sum(wanted, Decimal(0))
