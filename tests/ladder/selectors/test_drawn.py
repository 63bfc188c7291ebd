"""M2, M4: what a process remembers of the ledger's sums is never another answer than adding up all rows."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connections, transaction
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ladder.core.values import PAID_RUNGS, Rung
from ladder.models import LedgerSum, UsageEvent
from ladder.selectors import drawn
from ladder.selectors.drawn import Stand, forget_drawn, read_drawn
from ladder.services.folding import fold_ledger
from ladder.services.pruning import Run
from omniroute_admin.common.selectors.revision import read_view
from tests.factories_ladder import NOW
from tests.ladder.core.strategies import PROPERTY, examples
from tests.ladder.services.booking import SECOND, correct, event, make_ladder, record, usd

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)
SPANS = [(NOW - DAY, NOW), (NOW - 3 * DAY, NOW - DAY), (NOW - 9 * DAY, NOW + DAY)]
MODELS = {Rung.CHEAP: "small", Rung.PREMIUM: "big"}


@pytest.fixture(autouse=True)
def remembers_all(monkeypatch):
    """Remember sums of few rows too."""
    monkeypatch.setattr(drawn, "KEPT_FROM", 1)


@pytest.fixture
def ladder(db):
    make_ladder()


def tell(span, stand):
    return read_drawn(spans=dict.fromkeys(PAID_RUNGS, span), stand=stand)


def book(name, number, *, model="small"):
    record(event(f"{name}-{number}", f"0.00{number % 9 + 1}", at=NOW - (number + 1) * SECOND, model=model))


class Story:
    """What happens to a ledger; nothing but acts, each with a number that says of what or where."""

    def __init__(self):
        self.count, self.kept, self.sums = 0, [], []

    def book(self, number):
        self.count += 1
        at = NOW - (number % 10) * DAY + SECOND * number
        rung = PAID_RUNGS[number % 2]
        record(event(f"e{self.count}", f"0.{number:03}", at=min(at, NOW), model=MODELS[rung]))

    def correct(self, number):
        self.count += 1
        known = list(UsageEvent.objects.filter(original=None).order_by("pk"))
        if known:
            of = known[number % len(known)]
            record(correct(f"e{self.count}", of.event_id, f"0.{number:03}", at=NOW + number * SECOND, model=of.model))

    def undo(self, number):
        """Book in a transaction that is undone, and read in it as a write does."""
        with transaction.atomic():
            self.book(number)
            for span in SPANS:
                assert tell(span, Stand.WITH_MINE) == tell(span, Stand.MOVING)
            transaction.set_rollback(True)

    def fold(self, number):
        fold_ledger(before=NOW - (2 + number % 8) * DAY, run=Run(now=NOW))

    def keep(self, _):
        self.kept, self.sums = list(UsageEvent.objects.order_by("pk")), list(LedgerSum.objects.all())

    def put_back(self, number):
        """Put back what was kept, and let another event take a key that one had meanwhile."""
        last = UsageEvent.objects.order_by("-pk").first()
        rows = UsageEvent.objects.all()
        rows._raw_delete(rows.db)
        UsageEvent.objects.bulk_create(self.kept)
        LedgerSum.objects.all().delete()
        LedgerSum.objects.bulk_create(self.sums)
        if self.kept and last and all(one.pk != last.pk for one in self.kept):
            of = self.kept[-1]
            other = {
                **{name: getattr(last, name) for name in NAMES},
                "received_at": NOW + DAY + number * SECOND,
                "occurred_at": last.booked_at,
            }
            money = {"booked_usd": usd("0.5"), "booked_cost": usd("0.5"), "original": None, "connection": of.connection}
            UsageEvent.objects.bulk_create([UsageEvent(pk=last.pk, **{**other, **money, "corrects_event_id": ""})])


NAMES = ("event_id", "model", "rung", "billing", "money_kind", "booked_at")
ACTS = st.tuples(st.sampled_from(["book"] * 4 + ["correct", "undo", "fold", "keep", "put_back"]), st.integers(0, 40))


@settings(
    PROPERTY,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=examples(otherwise=60),
)
@given(acts=st.lists(ACTS, min_size=2, max_size=14))
def test_what_is_remembered_is_what_all_rows_add_up_to(ladder, acts):
    forget_drawn()
    with transaction.atomic():
        story = Story()
        for name, number in acts:
            getattr(story, name)(number)
            for span in SPANS[number % 2 :]:
                assert tell(span, Stand.STILL) == tell(span, Stand.MOVING), (name, number)
        transaction.set_rollback(True)


def test_what_is_taken_out_of_the_ledger_is_not_counted_twice(ladder):
    for number in range(3):
        record(event(f"old-{number}", "0.1", at=NOW - 5 * DAY + number * SECOND))
    book("new", 0)
    assert tell(SPANS[2], Stand.STILL)[Rung.CHEAP].usd == usd("0.301")
    fold_ledger(before=NOW - 4 * DAY, run=Run(now=NOW))
    assert UsageEvent.objects.count() == 1
    assert tell(SPANS[2], Stand.STILL)[Rung.CHEAP].usd == usd("0.301")


def test_of_rows_that_are_undone_nothing_is_remembered(ladder):
    book("e", 0)
    tell(SPANS[0], Stand.STILL)
    for cost in ("0.1", "0.2"):
        with transaction.atomic():
            # Undone, keys and instants are what they were: on SQLite those of the next rows too.
            record(event("first", cost, at=NOW - SECOND))
            record(event("last", "0.5", at=NOW - SECOND))
            told = tell(SPANS[0], Stand.WITH_MINE)
            assert told[Rung.CHEAP].usd == usd("0.501") + usd(cost)
            transaction.set_rollback(True)


def test_rows_that_were_added_up_are_not_read_again(ladder, django_assert_num_queries):
    span = SPANS[0]
    for number in range(3):
        book("e", number)
    assert tell(span, Stand.STILL)[Rung.CHEAP].usd == usd("0.006")
    book("late", 5)
    record(correct("fix", "e-1", "0.5", at=NOW))
    with CaptureQueriesContext(connections["default"]) as asked:
        assert tell(span, Stand.STILL)[Rung.CHEAP].usd == usd("0.51")
    parts = [part for one in asked for part in one["sql"].split(" UNION ALL ")]
    assert not [part for part in parts if all(word in part for word in ("SUM", "ladder_usageevent", "'cheap'"))]
    assert [part for part in parts if all(word in part for word in ("SUM", "ladder_usageevent", "'premium'"))]
    with django_assert_num_queries(2):
        tell(span, Stand.STILL)


def test_few_rows_are_added_up_in_one_query(ladder, monkeypatch, django_assert_num_queries):
    monkeypatch.setattr(drawn, "KEPT_FROM", 3)
    for number in range(2):
        book("e", number)
    for _ in range(2):
        with django_assert_num_queries(1):
            assert tell(SPANS[0], Stand.STILL)[Rung.CHEAP].rows == 2


def test_behind_many_new_rows_all_are_added_up_again(ladder, monkeypatch):
    monkeypatch.setattr(drawn, "NEW_AT_MOST", 2)
    book("e", 0)
    tell(SPANS[0], Stand.STILL)
    for number in range(1, 5):
        book("e", number)
    assert tell(SPANS[0], Stand.STILL)[Rung.CHEAP].rows == 5


@pytest.mark.django_db(transaction=True)
def test_a_view_that_began_earlier_is_told_what_was_so_then(ladder):
    def meanwhile():
        try:
            book("e", 1)
            with read_view():
                return tell(SPANS[0], None)[Rung.CHEAP].rows
        finally:
            connections.close_all()

    book("e", 0)
    with ThreadPoolExecutor(1) as pool:
        with read_view():
            assert tell(SPANS[0], None)[Rung.CHEAP].rows == 1
            assert pool.submit(meanwhile).result(timeout=60) == 2
            assert tell(SPANS[0], None)[Rung.CHEAP].rows == 1
        with read_view():
            assert tell(SPANS[0], None)[Rung.CHEAP].rows == 2


@pytest.mark.django_db(transaction=True)
def test_whoever_books_at_the_same_time_each_view_adds_up(ladder):
    def booker(name):
        try:
            for number in range(12):
                book(name, number, model="big" if number % 3 == 0 else "small")
        finally:
            connections.close_all()

    def reader(_):
        try:
            for _ in range(40):
                with read_view():
                    for span in SPANS:
                        assert tell(span, Stand.STILL) == tell(span, Stand.MOVING)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(5) as pool:
        booked = [pool.submit(booker, name) for name in ("a", "b", "c")]
        read = [pool.submit(reader, number) for number in range(2)]
        for one in (*booked, *read):
            one.result(timeout=120)
    with read_view():
        told = tell(SPANS[0], Stand.STILL)
    assert (told[Rung.CHEAP].rows, told[Rung.PREMIUM].rows) == (24, 12)
