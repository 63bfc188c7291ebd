"""SPEC 5, Spend: the ledger by rung, provider, connection, model and window, in columns that never mix (M4, M5)."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection as database
from django.db import transaction
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ladder.core.spend.columns import SpendTotals, total_of
from ladder.core.spend.ledger import correction_depths
from ladder.core.values import PAID_RUNGS, Accounting, Rung
from ladder.models import Connection, RungBudget, SpendHold, UsageEvent
from ladder.selectors.ledger import read_budgets, read_spend
from ladder.selectors.spend import SPEND_ORDERS, SpendBy, SpendFilter, read_spend_lines
from ladder.selectors.spend_windows import read_present_spend, read_window_spend
from ladder.services.budgets import reset_budget
from ladder.services.connections import delete_connection
from tests.factories import BillingEntryFactory, ConnectionFactory, SpendHoldFactory, UsageEventFactory
from tests.factories_ladder import NOW, OPERATOR
from tests.ladder.core.strategies import PROPERTY, examples
from tests.ladder.services.booking import HOUR, SECOND, correct, event, make_ladder, record, usd

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)
SINCE, UNTIL = NOW - 30 * DAY, NOW + DAY
RUNG, PROVIDER, CONNECTION, MODEL = SpendBy
ALL_OF_IT = {"start": SINCE, "end": UNTIL, "now": NOW}


@pytest.fixture(autouse=True)
def ladder(db):
    make_ladder()


def lines(*by, **given):
    return read_spend_lines(by=by, **ALL_OF_IT | given).lines


def only(*by, **given):
    (line,) = lines(*by, **given)
    return line.totals


def test_what_a_budget_pays_a_hold_an_overage_and_a_plans_value_stand_apart_m5():
    record(
        event("e1", "1.00"),
        event("e2", model="big"),
        event("e3", "0.30", connection_id="plan", model="opus"),
        event("e4", "0.20", connection_id="plan", model="opus", is_overage=True),
    )
    SpendHoldFactory(connection=Connection.objects.get(connection_id="paid"), rung="cheap", amount_usd=usd("0.05"))
    SpendHoldFactory(connection=Connection.objects.get(connection_id="plan"), rung="subscription")
    found = {line.rung: line.totals for line in lines(RUNG, order="rung")}
    assert found == {
        Rung.SUBSCRIPTION: SpendTotals(overage_usd=usd("0.20"), plan_value_usd=usd("0.30"), events=2),
        Rung.CHEAP: SpendTotals(settled_usd=usd("1.00"), held_usd=usd("0.05"), events=1),
        Rung.PREMIUM: SpendTotals(events=1, estimated_events=1),
    }
    assert list(found) == sorted(found)
    assert only() == total_of(found.values())
    assert [found[rung].accounting for rung in found] == [Accounting.COMPLETE, Accounting.COMPLETE, Accounting.PARTIAL]
    assert only(among=SpendFilter(models=["none"])).accounting is Accounting.NONE


TOKENS = {"input_tokens": 1_000_000, "output_tokens": 0}


def test_what_is_only_estimated_stands_apart_until_it_is_corrected_m7():
    unpriced = {"model": "nobody-knows"}
    estimate = usd("5.00")
    record(event("e1", None, **unpriced, **TOKENS), event("e2", "2.00", **unpriced))
    assert only() == SpendTotals(settled_usd=usd(2), estimated_usd=estimate, events=2, estimated_events=1)
    record(correct("c1", "e2", None, **unpriced, **TOKENS))
    assert only() == SpendTotals(estimated_usd=2 * estimate, events=2, estimated_events=2)
    record(correct("c2", "e1", None, at=NOW + 2 * SECOND, **unpriced, input_tokens=2_000_000))
    assert only() == SpendTotals(estimated_usd=3 * estimate, events=2, estimated_events=2)
    record(correct("c3", "e1", "0.50", at=NOW + 3 * SECOND, **unpriced))
    record(correct("late", "e1", None, at=NOW + SECOND, **unpriced, input_tokens=9_000_000))
    assert only() == SpendTotals(settled_usd=usd("0.5"), estimated_usd=estimate, events=2, estimated_events=1)
    assert only().spent_usd == usd("5.5")


def test_usage_counts_when_it_happened_however_late_it_was_told_and_corrected_m4():
    record(event("e1", "1.00", at=NOW - 9 * DAY))
    record(correct("c1", "e1", "0.40"))
    at = NOW - 9 * DAY
    assert only(start=at, end=at + SECOND).settled_usd == usd("0.40")
    assert only(start=at - SECOND, end=at) == only(start=at + SECOND) == SpendTotals()


def test_holds_are_told_where_the_present_is_m8():
    SpendHoldFactory(expires_at=NOW + SECOND)
    SpendHoldFactory(expires_at=NOW, created_at=NOW - SECOND)
    SpendHoldFactory(released_at=NOW)
    SpendHoldFactory(settled_by=UsageEventFactory(occurred_at=SINCE - SECOND))
    assert only(start=NOW).held_usd == only(end=NOW + SECOND).held_usd == usd("0.10")
    assert only(end=NOW) == only(start=NOW + SECOND, end=UNTIL) == SpendTotals()
    acting = SpendHold.objects.get(expires_at=NOW + SECOND)
    (line,) = lines(CONNECTION, MODEL)
    assert (line.connection.key, line.model, line.totals) == (
        acting.connection_id,
        acting.model,
        SpendTotals(held_usd=usd("0.10")),
    )


def make_many():
    record(
        event("e1", "1.00"),
        event("e2", "3.00", model="big"),
        event("e3", "0.25", model="big"),
        event("e4", "0.50", connection_id="plan", model="opus"),
    )


def test_lines_stand_for_what_was_asked_and_are_ordered_and_paged():
    make_many()
    told = [(line.provider, line.model, line.totals.events) for line in lines(PROVIDER, MODEL)]
    assert told == [("openrouter", "big", 2), ("openrouter", "small", 1), ("claude", "opus", 1)]
    assert [line.model for line in lines(MODEL, order="model")] == ["big", "opus", "small"]
    assert [line.model for line in lines(MODEL, order="-events")] == ["big", "opus", "small"]
    assert [line.model for line in lines(MODEL, order="-plan_value_usd")] == ["opus", "big", "small"]
    page = read_spend_lines(by=[MODEL], **ALL_OF_IT, limit=1, offset=1)
    assert ([line.model for line in page.lines], page.count) == (["small"], 3)
    assert page.totals == total_of(line.totals for line in lines(RUNG))
    for order in SPEND_ORDERS:
        assert len(lines(*SpendBy, order=order)) == 3
    with pytest.raises(ValueError, match="spent_usd"):
        lines(MODEL, order="colour")


@pytest.mark.parametrize(
    ("among", "spent"),
    [
        ({}, "4.25"),
        ({"rungs": [Rung.CHEAP]}, "1.00"),
        ({"rungs": []}, "0"),
        ({"providers": ["claude"]}, "0"),
        ({"connection_ids": ["paid"], "models": ["big"]}, "3.25"),
        ({"models": ["big", "small"]}, "4.25"),
    ],
)
def test_lines_are_filtered(among, spent):
    make_many()
    assert only(among=SpendFilter(**among)).spent_usd == usd(spent)


def test_a_deleted_connection_keeps_its_spend_apart_from_one_of_the_same_id_spec_3():
    record(event("e1", "1.00"))
    old = Connection.objects.get(connection_id="paid")
    delete_connection(connection=old, actor=OPERATOR, reason="a test", now=NOW + SECOND)
    ConnectionFactory(connection_id="paid", provider="openrouter", auth_type="apikey", created_at=NOW + 2 * SECOND)
    record(event("e2", "2.00", at=NOW + 3 * SECOND))
    told = [(one.connection.deleted_at, one.totals.spent_usd) for one in lines(CONNECTION)]
    assert told == [(None, usd("2.00")), (NOW + SECOND, usd("1.00"))]


def test_windows_are_those_of_each_rungs_budget_whole_and_newest_first_m3():
    RungBudget.objects.filter(rung="cheap").update(period="weekly", week_starts_on="sunday", zone="Europe/Berlin")
    record(event("e1", "1.00", at=NOW - 6 * DAY), event("e2", "0.10"), event("e3", "7.00", at=NOW - 7 * DAY))
    among = SpendFilter(rungs=[Rung.CHEAP, Rung.FREE])
    page = read_window_spend(start=NOW - DAY, end=UNTIL, now=NOW, among=among)
    told = [(one.rung.word, one.window.start.isoformat(), one.totals.spent_usd) for one in page.lines]
    assert told == [
        ("free", "2026-08-22T00:00:00+00:00", 0),
        ("free", "2026-08-21T00:00:00+00:00", 0),
        ("cheap", "2026-08-15T22:00:00+00:00", usd("1.10")),
    ]
    assert page.count == 3
    second = read_window_spend(start=NOW - DAY, end=UNTIL, now=NOW, among=among, limit=1, offset=2)
    assert (second.lines, second.count) == (page.lines[2:], 3)
    assert read_window_spend(start=NOW, end=NOW, now=NOW).lines == []


def test_a_reset_starts_the_present_count_again_and_keeps_the_window_whole_m9():
    record(event("e1", "1.00", at=NOW - SECOND))
    reset_budget(rung="cheap", actor=OPERATOR, reason="a test", now=NOW)
    record(event("e2", "0.25", at=NOW + SECOND))
    present = read_present_spend(now=NOW + HOUR)[Rung.CHEAP]
    assert (present.window.counted_from, present.totals.spent_usd) == (NOW, usd("0.25"))
    (window,) = read_window_spend(start=NOW, end=UNTIL, now=NOW, among=SpendFilter(rungs=[Rung.CHEAP])).lines
    assert window.totals.spent_usd == usd("1.25")


def test_an_absurd_stretch_of_time_lists_no_window_that_nothing_can_be_in():
    page = read_window_spend(
        start=NOW.min.replace(tzinfo=NOW.tzinfo), end=NOW.max.replace(tzinfo=NOW.tzinfo), now=NOW, limit=10**9
    )
    assert (len(page.lines), page.lines[0].window.end) == (500, NOW.replace(hour=0) + DAY)
    assert page.count == 5 * ((NOW.replace(hour=0) - NOW.replace(2000, 1, 1, 0)).days + 1)


@pytest.mark.parametrize("many", [1, 40])
def test_the_number_of_queries_is_constant(many, django_assert_num_queries):
    for number in range(many):
        BillingEntryFactory(provider=f"p{number}", auth_type=None, billing="metered")
        ConnectionFactory(connection_id=f"p{number}", provider=f"p{number}", auth_type="apikey")
        SpendHoldFactory(connection__connection_id=f"h{number}", rung="premium", model=f"m{number}")
    record(*(event(f"e{n}", "0.10", connection_id=f"p{n}", at=NOW - n * DAY) for n in range(many)))
    with django_assert_num_queries(3):
        assert len(lines(*SpendBy, end=NOW + SECOND)) == min(many, 31) + many
    with django_assert_num_queries(3):
        read_window_spend(start=SINCE, end=UNTIL, now=NOW)
    with django_assert_num_queries(3):
        read_present_spend(now=NOW)


@pytest.mark.sqlite
def test_the_index_of_totals_finds_the_rows_of_a_stretch_of_time():
    with CaptureQueriesContext(database) as asked:
        lines(RUNG)
        read_window_spend(start=SINCE, end=UNTIL, now=NOW)
    sums = [query["sql"] for query in asked if "estimated_change" in query["sql"]]
    assert len(sums) == 2
    for statement in sums:
        with database.cursor() as cursor:
            cursor.execute(f"EXPLAIN QUERY PLAN {statement}")
            plan = " ".join(row[-1] for row in cursor.fetchall())
        assert "USING INDEX usage_totals (money_kind=? AND rung=? AND booked_at>? AND booked_at<?)" in plan


PLACES = [("paid", "small"), ("paid", "big"), ("paid", "nobody-knows"), ("plan", "opus")]
happened = st.tuples(
    st.sampled_from(PLACES),
    st.integers(-50, 0),  # hours
    st.sampled_from([None, "0", "0.000001", "1.25"]),
    st.sampled_from([None, 1_000_000]),  # tokens
    st.booleans(),  # overage
)
fixed = st.tuples(
    st.integers(0, 20),  # what it corrects
    st.integers(0, 1),  # seconds
    st.sampled_from([None, "0", "0.5"]),
    st.integers(1, 2_000_000),  # tokens
)
windows = st.tuples(
    st.sampled_from(["daily", "weekly", "monthly"]),
    st.sampled_from(["UTC", "Asia/Tokyo", "America/St_Johns"]),
    st.integers(-30, 0),  # hours: the last reset
)


def play(events, fixes, order):
    items = []
    for number, ((connection_id, model), hours, cost, tokens, is_overage) in enumerate(events):
        items.append(
            event(
                f"e{number}", cost, at=NOW + hours * HOUR, connection_id=connection_id, model=model,
                input_tokens=tokens, is_overage=is_overage,
            )
        )  # fmt: skip
    for number, (which, seconds, cost, tokens) in enumerate(fixes):
        of = items[which % len(items)]
        items.append(
            event(
                f"c{number}", cost, at=NOW + seconds * SECOND, connection_id=of.connection_id, model=of.model,
                input_tokens=tokens, corrects_event_id=of.event_id,
            )
        )  # fmt: skip
    order.shuffle(items)
    half = len(items) // 2
    for body in (items[:half], items[half:], items):
        record(*body, now=NOW + HOUR)


def claims():
    """Return the claim that counts of each event with what its original says of it: the plain reading."""
    rows = {row.event_id: row for row in UsageEvent.objects.select_related("connection", "original")}
    depths = correction_depths(bases={name: row.corrects_event_id for name, row in rows.items()})
    counting = {}
    for name, row in rows.items():
        root = (row.original or row).event_id
        rank = (depths[name] > 0, row.occurred_at, depths[name], name)
        counting[root] = max(counting.get(root, (rank, row)), (rank, row), key=lambda one: one[0])
    return [(rows[root], row) for root, (_, row) in counting.items()]


def plain(told):
    """Sum claims by hand."""
    said = [(original.money_kind, row.is_estimated, row.booked_cost) for original, row in told]

    def of(kind, *estimated):
        return sum((cost for one, is_estimated, cost in said if one == kind and is_estimated in estimated), Decimal(0))

    return SpendTotals(
        settled_usd=of("budget", False),
        estimated_usd=of("budget", True),
        overage_usd=of("overage", True, False),
        plan_value_usd=of("plan", True, False),
        events=len(said),
        estimated_events=sum(is_estimated for _, is_estimated, _ in said),
    )


GROUPINGS = [(), (RUNG,), (PROVIDER,), (CONNECTION,), (MODEL,), (RUNG, MODEL), tuple(SpendBy)]


def name_of(line):
    return line.rung, line.provider, line.connection and line.connection.connection_id, line.model


def named(row, by):
    values = {
        RUNG: Rung[row.rung.upper()],
        PROVIDER: row.connection.provider,
        CONNECTION: row.connection.connection_id,
        MODEL: row.model,
    }
    return tuple(values[one] if one in by else None for one in SpendBy)


@settings(
    PROPERTY,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=examples(otherwise=40),
)
@given(
    events=st.lists(happened, min_size=1, max_size=6),
    fixes=st.lists(fixed, max_size=6),
    budgets=st.tuples(windows, windows),
    order=st.randoms(use_true_random=False),
)
def test_every_sum_is_the_ledgers_own_after_any_history_m2_m4_m5(events, fixes, budgets, order):
    with transaction.atomic():
        for rung, (period, zone, hours) in zip(PAID_RUNGS, budgets, strict=True):
            RungBudget.objects.filter(rung=rung.word).update(
                period=period, zone=zone, counted_from=NOW + hours * HOUR, amount_usd=9
            )
        play(events, fixes, order)
        told = claims()
        for by in GROUPINGS:
            groups = {}
            for original, row in told:
                groups.setdefault(named(original, by), []).append((original, row))
            found = {name_of(line): line.totals for line in lines(*by)}
            assert found == {name: plain(part) for name, part in groups.items()}, by
        _check_windows()
        transaction.set_rollback(True)


def _check_windows():
    page = read_window_spend(start=SINCE, end=UNTIL, now=NOW)
    assert page.count == len(page.lines)
    for one in page.lines:
        ledger = read_spend(rung=one.rung, start=one.window.start, end=one.window.end)
        assert one.totals.spent_usd == ledger.usd
        assert one.rung not in PAID_RUNGS or one.totals.accounting is ledger.accounting
    # Every event is in exactly one window of its rung.
    assert total_of(one.totals for one in page.lines) == only()
    present = read_present_spend(now=NOW)
    assert list(present) == list(Rung)
    for rung, budget in read_budgets(now=NOW).items():
        one = present[rung]
        assert (one.totals.spent_usd, one.totals.accounting) == (budget.spent_usd, budget.accounting)
        assert (one.window.counted_from, one.window.end) == (budget.window_start, budget.window_end)
