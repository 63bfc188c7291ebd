"""M2, M4, M5: what is taken out of the ledger leaves sums that say the same of every total, and never comes back."""

from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest
from django.db import connection as database
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ladder.core.spend.curve import spend_curve
from ladder.core.values import PAID_RUNGS, Rung
from ladder.models import LedgerSum, RungBudget, SpendHold, UsageEvent
from ladder.selectors.catalogue_use import find_uncurated
from ladder.selectors.ledger import read_budgets, read_spend
from ladder.selectors.ledger_faults import check_ledger
from ladder.selectors.spend import SpendBy, SpendFilter, happened_in, read_spend_lines
from ladder.selectors.spend_chart import read_booked
from ladder.selectors.spend_events import count_events, each_ledger_row, find_folded
from ladder.selectors.spend_windows import read_present_spend, read_window_spend
from ladder.selectors.state import forget_snapshot
from ladder.services.folding import fold_ledger
from ladder.services.pruning import Run
from omniroute_admin.common.core.axis import days_range
from omniroute_admin.common.selectors.revision import current_token
from omniroute_admin.common.services.horizons import move_horizon
from tests.factories import BillingEntryFactory, ConnectionFactory, SpendHoldFactory
from tests.factories_ladder import NOW
from tests.ladder.core.strategies import PROPERTY, examples
from tests.ladder.services.booking import HOUR, SECOND, codes, correct, counts, event, make_ladder, record, usd
from tests.ladder.verdicts import verdicts

pytestmark = pytest.mark.django_db

DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)
BEFORE = NOW - DAY


@pytest.fixture(autouse=True)
def ladder(db):
    make_ladder()
    BillingEntryFactory(provider="odd", auth_type=None, billing="unknown")
    ConnectionFactory(connection_id="odd", provider="odd", auth_type="apikey")


def fold(before=BEFORE, now=NOW, **options):
    return {one.table: one.rows for one in fold_ledger(before=before, run=Run(now=now, **options)).removed}


def sums():
    fields = ("booked_at", "booked_usd", "estimated_usd", "folded_rows", "folded_events", "folded_estimates", "last_at")
    return list(LedgerSum.objects.order_by("booked_at", "id").values_list(*fields))


TOKENS = {"input_tokens": 1_000_000}


def test_events_of_one_quarter_are_one_sum_and_what_is_younger_stays():
    at = NOW - 3 * DAY
    record(
        event("e1", "0.10", at=at),
        event("e2", "0.20", at=at + 14 * MINUTE),
        event("e3", "0.40", at=at + 15 * MINUTE),
        event("e4", "0.80", at=BEFORE),
        event("e5", "1.60", at=at, model="big"),
    )
    assert fold() == {"ladder_usageevent": 4, "ladder_spendhold": 0}
    assert sorted(sums()) == sorted(
        [
            (at, usd("0.30"), usd(0), 2, 2, 0, at + 14 * MINUTE),
            (at, usd("1.60"), usd(0), 1, 1, 0, at),
            (at + 15 * MINUTE, usd("0.40"), usd(0), 1, 1, 0, at + 15 * MINUTE),
        ]
    )
    assert list(UsageEvent.objects.values_list("event_id", flat=True)) == ["e4"]


def test_a_sum_grows_by_what_is_folded_later():
    at = NOW - 3 * DAY
    record(event("e1", "0.10", at=at), event("e2", None, at=at + MINUTE, model="nobody-knows", **TOKENS))
    assert fold(before=at + SECOND) == {"ladder_usageevent": 1, "ladder_spendhold": 0}
    record(event("e3", "0.20", at=at + 2 * MINUTE), event("e4", None, at=at + MINUTE, model="nobody-knows", **TOKENS))
    assert fold() == {"ladder_usageevent": 3, "ladder_spendhold": 0}
    assert sums() == [
        (at, usd("0.30"), usd(0), 2, 2, 0, at + 2 * MINUTE),
        (at, usd("10.00"), usd("10.00"), 2, 2, 2, at + MINUTE),
    ]
    assert fold() == {"ladder_usageevent": 0, "ladder_spendhold": 0}


def test_an_event_stays_as_long_as_anything_of_it_is_younger():
    at = NOW - 3 * DAY
    record(event("e1", "1", at=at), event("e2", "2", at=at), event("e3", "4", at=at, hold_id="h"))
    record(correct("c1", "e1", "0.5", at=at + SECOND), correct("c2", "e2", "1.5", at=BEFORE))
    paid = UsageEvent.objects.get(event_id="e3").connection
    SpendHoldFactory(
        hold_id="h", connection=paid, created_at=BEFORE, expires_at=BEFORE + HOUR,
        settled_by=UsageEvent.objects.get(event_id="e3"),
    )  # fmt: skip
    assert fold() == {"ladder_usageevent": 2, "ladder_spendhold": 0}
    assert sorted(UsageEvent.objects.values_list("event_id", flat=True)) == ["c2", "e2", "e3"]
    # What is there is known as before, and corrected as before.
    answer = record(
        event("e2", "2", at=at), correct("c2", "e2", "1.5", at=BEFORE), event("e3", "4", at=at, hold_id="h")
    )
    assert counts(answer) == (0, 3, 0, 0)
    assert counts(record(correct("c3", "e3", "3", at=at + SECOND))) == (1, 0, 0, 0)
    assert fold(before=BEFORE + 2 * HOUR) == {"ladder_usageevent": 4, "ladder_spendhold": 1}
    assert UsageEvent.objects.count() == SpendHold.objects.count() == 0


def test_holds_that_ended_before_go_and_one_that_ended_later_stays():
    connection = UsageEvent(connection=ConnectionFactory()).connection
    for name, ends in (("old", BEFORE - SECOND), ("young", BEFORE), ("open", NOW + HOUR)):
        SpendHoldFactory(hold_id=name, connection=connection, created_at=ends - HOUR, expires_at=ends)
    assert fold()["ladder_spendhold"] == 1
    assert set(SpendHold.objects.values_list("hold_id", flat=True)) == {"young", "open"}


def test_what_was_taken_out_is_never_booked_again():
    at = NOW - 3 * DAY
    sent = [event("e1", "1", at=at), correct("c1", "e1", "0.5", at=at + SECOND)]
    record(*sent)
    fold()
    answer = record(*sent, event("e2", "1", at=BEFORE - SECOND), event("e3", "1", at=BEFORE))
    assert codes(answer) == [(0, "too_old"), (1, "too_old"), (2, "too_old")]
    assert answer.rejected[0].detail == (
        "occurred_at: before 2026-08-21T12:00:00Z; what happened earlier is kept as sums only"
    )
    # A correction of later speaks of an event that is not there.
    assert codes(record(correct("c2", "e1", "0.1", at=NOW))) == [(0, "unknown_event")]
    assert read_spend(rung=Rung.CHEAP, start=at, end=NOW).usd == usd("1.50")


def test_the_horizon_only_moves_forward_whatever_period_or_clock_says():
    record(event("e1", "1", at=NOW - 3 * DAY))
    fold()
    fold(before=NOW - 30 * DAY, now=NOW - 20 * DAY)
    answer = record(event("e1", "1", at=NOW - 3 * DAY), now=NOW)
    assert codes(answer) == [(0, "too_old")]
    assert move_horizon(name="ledger", before=NOW - 30 * DAY, now=NOW) == BEFORE


def test_an_event_whose_rows_do_not_add_up_stays_and_is_named():
    record(event("e1", "1", at=NOW - 3 * DAY), event("e2", "2", at=NOW - 3 * DAY))
    with database.cursor() as cursor:
        cursor.execute("UPDATE ladder_usageevent SET estimated_change = 1 WHERE event_id = 'e1'")
    before = check_ledger()
    report = fold_ledger(before=BEFORE, run=Run(now=NOW))
    assert (report.kept_faulty, UsageEvent.objects.get().event_id) == (("e1",), "e1")
    assert check_ledger() == before


def test_no_decision_changes_so_the_revision_stays_and_what_screens_show_has_a_new_token():
    record(event("e1", "1", at=NOW - 3 * DAY))
    revision, shown = current_token()
    fold()
    assert current_token()[0] == revision
    assert current_token()[1] > shown
    shown = current_token()
    fold()
    assert current_token() == shown


PLACES = [("paid", "small"), ("paid", "big"), ("paid", "nobody-knows"), ("plan", "opus"), ("odd", "small")]
seconds = st.integers(-5 * 86_400, 0)
happened = st.tuples(
    st.sampled_from(PLACES),
    st.one_of(seconds, st.integers(-190_000, -188_000)),
    st.sampled_from([None, "0", "0.000001", "1.25"]),
    st.sampled_from([None, 1_000_000]),  # tokens
    st.booleans(),  # overage
)
fixed = st.tuples(
    st.integers(0, 20),  # what it corrects
    seconds,
    st.sampled_from([None, "0", "0.5"]),
    st.integers(1, 2_000_000),  # tokens
)
held = st.tuples(seconds, st.integers(1, 3600), st.sampled_from([None, 0, 1, 2, 3]), st.booleans())
budgets = st.tuples(
    st.sampled_from(["0.5", "3", None]),
    st.sampled_from(["daily", "weekly", "monthly"]),
    st.sampled_from(["UTC", "Asia/Kathmandu", "America/St_Johns"]),
    st.one_of(st.none(), st.one_of(seconds, st.integers(-190_000, -188_000))),  # the last reset
)


def story(events, fixes):
    """Return items in an order in which all can be booked."""
    items = []
    for number, ((connection_id, model), offset, cost, tokens, is_overage) in enumerate(events):
        items.append(
            event(
                f"e{number}", cost, at=NOW + offset * SECOND, connection_id=connection_id, model=model,
                input_tokens=tokens, is_overage=is_overage, hold_id=f"h{number}",
            )
        )  # fmt: skip
    for number, (which, offset, cost, tokens) in enumerate(fixes):
        of = items[which % len(items)]
        items.append(
            event(
                f"c{number}", cost, at=NOW + offset * SECOND, connection_id=of.connection_id, model=of.model,
                input_tokens=tokens, corrects_event_id=of.event_id,
            )
        )  # fmt: skip
    return items


def make_holds(holds):
    """Make holds; where one is settled it is so by the event that names it."""
    events = {row.hold_id: row for row in UsageEvent.objects.exclude(hold_id="")}
    for number, (offset, length, settled_by, is_released) in enumerate(holds):
        made = NOW + offset * SECOND
        settled = events.pop(f"h{settled_by}", None)
        SpendHoldFactory(
            hold_id=settled.hold_id if settled else f"other{number}",
            connection=settled.connection if settled else ConnectionFactory(), rung="cheap", amount_usd=usd("0.25"),
            created_at=made, expires_at=made + length * SECOND, settled_by=settled,
            released_at=made if is_released else None,
        )  # fmt: skip


ZONES = [ZoneInfo(name) for name in ("Asia/Kathmandu", "America/St_Johns")]
ASKED = [
    ((), SpendFilter()),
    ((SpendBy.PROVIDER,), SpendFilter(rungs=[Rung.CHEAP])),
    (tuple(SpendBy), SpendFilter()),
    ((SpendBy.MODEL,), SpendFilter(providers=["openrouter"], models=["small"])),
]


def stretches():
    today = NOW.date()
    for zone in ZONES:
        for first, last in ((6, 0), (2, 2), (3, 2)):
            yield days_range(first=today - first * DAY, last=today - last * DAY, zone=zone)


def totals():
    """Return every total that a screen, a file, a decision or a command can tell."""
    forget_snapshot()
    found = {"budgets": read_budgets(now=NOW), "present": read_present_spend(now=NOW), "pools": verdicts(NOW)}
    found["windows"] = read_window_spend(start=NOW - 40 * DAY, end=NOW + DAY, now=NOW)
    found["check"] = check_ledger()
    found["uncurated"] = find_uncurated(now=NOW)
    for start, end in stretches():
        asked = {"start": start, "end": end, "now": NOW}
        found["lines", start, end] = [read_spend_lines(by=by, among=one, **asked) for by, one in ASKED]
        found["spend", start, end] = [read_spend(rung=rung, start=start, end=end) for rung in Rung]
        inside = happened_in(start=start, end=end)
        found["file", start, end] = file_totals(inside)
        folded = find_folded(happened=inside)
        found["events", start, end] = count_events(happened=inside) + (folded.count if folded else 0)
    found["curves"] = list(curve_edges())
    return found


def file_totals(inside):
    """Return what the rows of a file of events add up to."""
    added = {}
    for one in each_ledger_row(happened=inside):
        key = one.rung, one.provider, one.connection_id, one.model, one.money_kind
        events = one.sum_of or (0 if one.corrects_event_id else 1)
        usd_so_far, count = added.get(key, (usd(0), 0))
        added[key] = usd_so_far + one.booked_usd, count + events
    return added


def curve_edges():
    """Yield what the line of a chart says where a window ends and where a budget was reset."""
    resets = dict(RungBudget.objects.values_list("rung", "counted_from"))
    for start, end in stretches():
        booked = read_booked(spans=dict.fromkeys(PAID_RUNGS, (start, end)))
        for rung in PAID_RUNGS:
            reset = resets[rung.word]
            edges = [reset] if reset is not None and start < reset < end else []
            points = spend_curve(booked=booked.get(rung, []), counts_from=edges, start=start, end=end)
            yield [point for point in points if point.at in {start, end, *edges}][-1]
            yield [point for point in points if point.at in edges]


@settings(
    PROPERTY,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=examples(otherwise=25),
)
@given(
    events=st.lists(happened, min_size=1, max_size=8),
    fixes=st.lists(fixed, max_size=5),
    holds=st.lists(held, max_size=3),
    limits=st.tuples(budgets, budgets),
    horizons=st.lists(seconds, min_size=1, max_size=2),
    batch=st.integers(1, 4),
)
def test_no_total_and_no_verdict_changes_and_nothing_is_booked_twice(events, fixes, holds, limits, horizons, batch):
    with transaction.atomic():
        for rung, (amount, period, zone, reset) in zip(PAID_RUNGS, limits, strict=True):
            RungBudget.objects.filter(rung=rung.word).update(
                amount_usd=amount and usd(amount), period=period, zone=zone,
                counted_from=None if reset is None else NOW + reset * SECOND,
            )  # fmt: skip
        items = story(events, fixes)
        record(*items, now=NOW)
        make_holds(holds)
        before = totals()
        would = fold(before=NOW + horizons[0] * SECOND, batch=batch, dry_run=True)
        assert totals() == before
        for offset in horizons:
            did = fold(before=NOW + offset * SECOND, batch=batch)
            assert totals() == before
            assert did == would or offset != horizons[0]
        answer = record(*items, now=NOW)
        assert answer.accepted == answer.superseded == 0
        assert {one.code for one in answer.rejected} <= {"too_old"}
        assert answer.duplicates == UsageEvent.objects.count()
        assert totals() == before
        assert sum(fold(before=NOW + max(horizons) * SECOND).values()) == 0
        transaction.set_rollback(True)
