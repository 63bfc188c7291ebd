from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection as database
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ladder.core.values import Combine, ReadingStatus
from ladder.models import Connection, Cooldown, QuotaReading, QuotaWindow
from ladder.services.reading_items import UnreadableItem, reading_item
from ladder.services.reading_store import MOST_WINDOWS
from ladder.services.readings import BY_HAND, record_readings
from ladder.services.windows import mark_exhausted
from omniroute_admin.common.selectors.revision import current_revision
from omniroute_admin.common.services.revision import deciding_write
from tests.factories import ConnectionFactory, CooldownFactory, ProviderAliasFactory, QuotaWindowFactory
from tests.factories_ladder import NOW, REPORTER

pytestmark = pytest.mark.django_db

SECOND = timedelta(seconds=1)


def reading(connection_id="c1", window="5h", percent=None, at=0, **fields):
    """Make an item observed `at` seconds after NOW."""
    remaining = None if percent is None else Decimal(str(percent))
    return reading_item(
        connection_id=connection_id, window=window, observed_at=NOW + at * SECOND, remaining_percent=remaining, **fields
    )


def record(*items, complete_for=(), now=NOW + 60 * SECOND):
    return record_readings(items=items, complete_for=complete_for, actor=REPORTER, now=now)


def counts(answer):
    return answer.accepted, answer.duplicates, answer.superseded, len(answer.rejected)


@pytest.fixture
def connection():
    return ConnectionFactory(connection_id="c1")


def current(window="5h", connection_id="c1"):
    return QuotaWindow.objects.get(connection__connection_id=connection_id, window=window)


def test_a_first_reading_makes_the_window_and_its_history(connection):
    answer = record(reading(percent=41.5, reset_at=NOW + timedelta(hours=5), combine=Combine.POOL, model="*opus*"))
    window = current()
    assert counts(answer) == (1, 0, 0, 0)
    assert (window.remaining_percent, window.combine, window.model) == (Decimal("41.5"), "pool", "*opus*")
    assert (window.observed_at, window.received_at) == (NOW, NOW + 60 * SECOND)
    assert window.reset_at == NOW + timedelta(hours=5)
    kept = window.readings.get()
    assert (kept.remaining_percent, kept.raw, kept.status) == (Decimal("41.5"), "41.5", "safe")


def test_the_newest_observed_is_current_not_the_last_to_arrive_spec_4(connection):
    record(reading(percent=40, at=10))
    answer = record(reading(percent=90, at=5))
    assert counts(answer) == (0, 0, 1, 0)
    assert current().remaining_percent == 40
    assert QuotaReading.objects.count() == 2


def test_the_same_reading_twice_has_one_effect_and_leaves_the_revision_spec_4(connection):
    record(reading(percent=40))
    before = current_revision()
    answer = record(reading(percent=40), now=NOW + 61 * SECOND)
    assert counts(answer) == (0, 1, 0, 0)
    assert current_revision() == before
    assert current().received_at == NOW + 60 * SECOND


def test_the_same_reading_twice_in_one_body_has_one_effect_spec_4(connection):
    assert counts(record(reading(percent=40), reading(percent="40.000000001"))) == (1, 1, 0, 0)
    assert QuotaReading.objects.count() == 1


@pytest.mark.parametrize("in_one_body", [True, False])
@pytest.mark.parametrize("lower_first", [True, False])
def test_of_one_instant_with_different_values_the_lower_counts_spec_4(connection, in_one_body, lower_first):
    items = [reading(percent=3), reading(percent=70)]
    ordered = items if lower_first else items[::-1]
    answers = [record(*ordered)] if in_one_body else [record(one) for one in ordered]
    total = [sum(column) for column in zip(*map(counts, answers), strict=True)]
    assert total == ([1, 0, 1, 0] if lower_first else [2, 0, 0, 0])
    assert current().remaining_percent == 3
    assert QuotaReading.objects.get().remaining_percent == 3


def test_a_lower_value_for_an_older_instant_changes_the_history_only(connection):
    record(reading(percent=50, at=1), reading(percent=60, at=0))
    answer = record(reading(percent=1, at=0))
    assert counts(answer) == (0, 0, 1, 0)
    assert current().remaining_percent == 50
    assert set(QuotaReading.objects.values_list("remaining_percent", flat=True)) == {1, 50}


def test_a_late_reading_moves_the_revision_since_it_may_decide_what_is_held_q5(connection):
    record(reading(percent=3, at=10))
    before = current_revision()
    record(reading(percent=1, at=5))
    assert current_revision() > before


def test_a_new_reading_without_a_reset_clears_the_old_one_q1(connection):
    record(reading(percent=50, at=0, reset_at=NOW + timedelta(hours=5)))
    record(reading(percent=49, at=1))
    assert current().reset_at is None


def test_what_a_reading_does_not_say_of_combine_and_model_stays_and_null_clears_the_model(connection):
    record(reading(percent=50, at=0, combine=Combine.POOL, model="*opus*"))
    record(reading(percent=49, at=1))
    assert (current().combine, current().model) == ("pool", "*opus*")
    record(reading(percent=48, at=2, combine=Combine.LIMIT, model=None))
    assert (current().combine, current().model) == ("limit", None)


def test_an_unlimited_reading_replaces_the_number(connection):
    record(reading(percent=50, at=0))
    record(reading(unlimited=True, at=1))
    assert (current().unlimited, current().remaining_percent) == (True, None)
    record(reading(status=ReadingStatus.EXHAUSTED, at=2))
    assert (current().unlimited, current().status) == (False, "exhausted")


def test_telemetry_never_touches_what_belongs_to_the_operator_q6_q7(connection):
    QuotaWindowFactory(connection=connection, window="5h", is_muted=True, exit_cutoff_percent=Decimal(20))
    record(reading(percent=50, at=1))
    assert (current().is_muted, current().exit_cutoff_percent) == (True, 20)
    assert not QuotaWindow.history.filter(history_type="~").exists()


def test_one_bad_item_never_costs_the_good_ones_spec_4(connection):
    answer = record(
        reading(percent=50),
        reading(connection_id="nobody", percent=50),
        reading(percent=50, provider="codex"),
        UnreadableItem(detail="`remaining_percent` is a text"),
        reading(percent=50, at=200),
        reading(window="weekly", percent=50, provider=" CLAUDE "),
    )
    assert answer.accepted == 2
    assert [(one.index, one.code) for one in answer.rejected] == [
        (1, "unknown_connection"),
        (2, "provider_mismatch"),
        (3, "invalid_item"),
        (4, "observed_in_future"),
    ]


def test_where_noauth_is_named_its_provider_is_named_too_spec_1():
    ConnectionFactory(noauth=True, provider="pollinations")
    answer = record(reading("noauth", percent=5), reading("noauth", percent=7, provider="pollinations"))
    assert [one.code for one in answer.rejected] == ["provider_required"]
    assert QuotaWindow.objects.get().remaining_percent == 7


def test_the_keyless_path_is_always_known_but_its_row_is_in_no_stored_pool_spec_1():
    ProviderAliasFactory(alias="pol", provider="pollinations")
    answer = record(reading("noauth", percent=7, provider=" Pol "), reading("noauth", "weekly", 7, provider="pol"))
    connection = Connection.objects.get()
    assert (answer.accepted, connection.provider, connection.auth_type) == (2, "pollinations", "none")
    assert connection.is_implied
    assert connection.history.get().history_actor == REPORTER.name


@pytest.mark.parametrize(
    ("provider", "code"),
    [(" ", "provider_required"), *((bad, "unknown_connection") for bad in ("a b", "x" * 129, "a\x00"))],
)
def test_what_can_be_no_provider_has_no_keyless_path(provider, code):
    assert [one.code for one in record(reading("noauth", percent=7, provider=provider)).rejected] == [code]
    assert not Connection.objects.exists()


def test_a_blank_provider_is_told_as_what_it_is(connection):
    (rejected,) = record(reading(percent=7, provider=" ")).rejected
    assert (rejected.code, rejected.detail) == ("invalid_item", "provider: give a provider's id, or leave it out")


def test_noauth_in_complete_for_is_that_of_the_one_provider_that_the_readings_name_spec_4():
    ProviderAliasFactory(alias="pol", provider="pollinations")
    both = [reading("noauth", window, 7, provider="pollinations") for window in ("5h", "weekly")]
    record(*both)
    again = reading("noauth", "5h", 7, at=1, provider="Pol")
    assert record(again, complete_for=["noauth"]).rejected == ()
    assert not current("weekly", "noauth").is_reported
    other = reading("noauth", "5h", 7, provider="groq")
    for body in ([again, other], []):
        (rejected,) = record(*body, complete_for=["noauth"]).rejected
        assert (rejected.index, rejected.code) == (len(body), "provider_required")
        assert "exactly one provider" in rejected.detail


def test_a_window_marked_by_hand_ends_with_any_newer_reading_of_its_connection_q6(connection):
    def mark(seconds):
        (row,) = mark_exhausted(
            connection=connection, window=None, reset_at=None, actor=REPORTER, reason="", now=NOW + seconds * SECOND
        )
        return row

    assert (mark(0).window, current(BY_HAND).is_reported) == (BY_HAND, True)
    record(reading(percent=50, at=-1), reading(connection_id="stranger", percent=50, at=5))
    record(reading(window="weekly", percent=50, at=0))
    assert current(BY_HAND).is_reported
    record(reading(percent=50, at=1))
    assert not current(BY_HAND).is_reported
    QuotaWindow.objects.exclude(window=BY_HAND).update(is_muted=True)
    mark(1)
    assert current(BY_HAND).is_reported
    record(reading(percent=50, at=2))
    assert not current(BY_HAND).is_reported


def test_a_65th_window_of_a_connection_is_rejected_until_another_is_no_longer_reported(connection):
    record(*(reading(window=f"w{number}", percent=50) for number in range(MOST_WINDOWS)))
    answer = record(reading(window="more", percent=50), reading(window="w0", percent=40, at=1))
    assert [(one.index, one.code) for one in answer.rejected] == [(0, "too_many_windows")]
    assert (counts(answer), QuotaWindow.objects.count()) == ((1, 0, 0, 1), MOST_WINDOWS)
    record(reading(window="w0", percent=40, at=2), complete_for=["c1"])
    assert counts(record(reading(window="more", percent=50, at=2))) == (1, 0, 0, 0)


def test_a_rejected_item_makes_no_keyless_path():
    record(reading("noauth", percent=7, provider="groq", at=500))
    assert not Connection.objects.exists()


@pytest.mark.parametrize("connection_id", ["", "a\x00b", "x" * 129, "-c1"])
def test_what_can_be_no_connection_id_is_an_unknown_connection(connection, connection_id):
    assert [one.code for one in record(reading(connection_id=connection_id, percent=5)).rejected] == [
        "unknown_connection"
    ]


def test_a_deleted_connection_is_unknown_and_a_new_one_of_its_id_inherits_nothing_spec_3(connection):
    record(reading(percent=1))
    connection.deleted_at = NOW
    connection.save()
    assert [one.code for one in record(reading(percent=50, at=1)).rejected] == ["unknown_connection"]
    ConnectionFactory(connection_id="c1", provider="codex")
    record(reading(percent=50, at=1))
    assert list(QuotaWindow.objects.order_by("id").values_list("connection__provider", "remaining_percent")) == [
        ("claude", 1),
        ("codex", 50),
    ]


def reported(connection_id="c1"):
    rows = QuotaWindow.objects.filter(connection__connection_id=connection_id, is_reported=True)
    return set(rows.values_list("window", flat=True))


def test_windows_that_a_complete_list_does_not_name_stop_counting_q6(connection):
    ConnectionFactory(connection_id="c2")
    record(reading(percent=50), reading(window="weekly", percent=50), reading("c2", "weekly", 50))
    before = current_revision()
    record(reading(percent=50, at=1), complete_for=["c1"])
    assert reported() == {"5h"}
    assert reported("c2") == {"weekly"}
    assert current_revision() > before


def test_a_window_with_a_newer_reading_than_the_complete_list_goes_on_counting_spec_4(connection):
    record(reading(window="weekly", percent=50, at=2))
    record(reading(percent=50, at=1), complete_for=["c1"])
    assert reported() == {"5h", "weekly"}


def test_a_rejected_item_is_part_of_the_complete_list_too_spec_4(connection):
    record(reading(percent=50), reading(window="weekly", percent=50), reading(window="daily", percent=50))
    unreadable = UnreadableItem(detail="no", connection_id="c1", window="weekly", observed_at=NOW + SECOND)
    answer = record(unreadable, reading(percent=50, at=500), complete_for=["c1"])
    assert len(answer.rejected) == 2
    assert reported() == {"5h", "weekly"}


def test_an_empty_complete_list_is_as_new_as_its_arrival(connection):
    record(reading(percent=50, at=0), reading(window="weekly", percent=50, at=100), now=NOW + 60 * SECOND)
    record(complete_for=["c1"], now=NOW + 61 * SECOND)
    assert reported() == {"weekly"}


def test_a_window_reported_again_counts_again_q6(connection):
    record(reading(percent=50), reading(window="weekly", percent=50))
    record(reading(percent=50, at=1), complete_for=["c1"])
    record(reading(window="weekly", percent=50, at=2))
    assert reported() == {"5h", "weekly"}


def test_a_window_named_again_by_a_complete_list_counts_again_though_its_reading_is_the_old_one(connection):
    record(reading(percent=50), reading(window="weekly", percent=50))
    record(reading(percent=50, at=1), complete_for=["c1"])
    record(reading(percent=50, at=2), reading(window="weekly", percent=50), complete_for=["c1"])
    assert reported() == {"5h", "weekly"}


def test_an_unknown_connection_in_complete_for_is_rejected_under_the_index_after_the_readings(connection):
    answer = record(reading(percent=50), complete_for=["c1", "nobody", "noauth"])
    assert answer.accepted == 1
    assert [(one.index, one.code) for one in answer.rejected] == [(2, "unknown_connection"), (3, "provider_required")]


def test_a_complete_list_said_twice_leaves_the_revision(connection):
    body = [reading(percent=50, at=1)]
    record(reading(window="weekly", percent=50))
    record(*body, complete_for=["c1"])
    before = current_revision()
    record(*body, complete_for=["c1"])
    assert current_revision() == before


def test_a_nested_call_that_changes_nothing_does_not_hold_the_outer_revision_back(connection):
    record(reading(percent=50))
    before = current_revision()
    with deciding_write():
        record(reading(percent=50))
    assert current_revision() == before + 1


def test_a_usable_reading_newer_than_the_report_lifts_the_quota_cooldown_and_no_other_c3(connection):
    for cause in ("quota", "rate_limit", "auth", "ban", "operator"):
        CooldownFactory(connection=connection, cause=cause, reported_at=NOW)
    record(reading(percent=50, at=1))
    assert not Cooldown.objects.filter(cause="quota").exists()
    assert Cooldown.objects.count() == 4
    lifted = Cooldown.history.get(history_type="-")
    assert (lifted.cause, lifted.history_actor) == ("quota", REPORTER.name)


@pytest.mark.parametrize(("percent", "at"), [(50, 0), (50, -1), (2, 1)])
def test_a_reading_as_old_as_the_report_or_not_usable_lifts_nothing_c3(connection, percent, at):
    CooldownFactory(connection=connection, reported_at=NOW)
    record(reading(percent=percent, at=at))
    assert Cooldown.objects.exists()


def test_every_counting_limit_must_be_seen_after_the_report_c3(connection):
    CooldownFactory(connection=connection, reported_at=NOW)
    record(reading("c1", "weekly", 50, at=-5), reading("c1", "5h", 50, at=1))
    assert Cooldown.objects.exists()
    record(reading("c1", "weekly", 50, at=2))
    assert not Cooldown.objects.exists()


def test_a_window_of_one_model_keeps_only_that_models_cooldown_c3(connection):
    for model in (None, "claude-opus-4", "claude-sonnet-4"):
        CooldownFactory(connection=connection, reported_at=NOW, model=model)
    record(reading("c1", "5h", 50, at=1), reading("c1", "weekly:opus", 1, at=1, model="*opus*"))
    assert Cooldown.objects.get().model == "claude-opus-4"


def test_one_pack_of_a_pool_seen_after_the_report_is_enough_c3(connection):
    CooldownFactory(connection=connection, reported_at=NOW)
    record(
        reading("c1", "bonus", 50, at=-1, combine=Combine.POOL), reading("c1", "plan", 9, at=1, combine=Combine.POOL)
    )
    assert not Cooldown.objects.exists()


def queries_of(items, complete_for):
    with CaptureQueriesContext(database) as queries:
        record(*items, complete_for=complete_for)
    return len(queries)


@pytest.mark.parametrize("instants", [1, 2])
def test_a_large_body_takes_no_more_queries_than_a_small_one(instants):
    for number in range(1, 41):
        ConnectionFactory(connection_id=f"c{number}")
        record(reading(f"c{number}", "old", 50, at=-1))
    small = queries_of([reading("c1", "a", 50)], ["c1"])
    items = [
        reading(f"c{1 + number % 40}", f"w{number // 40 % 25}", number % 100, at=number // 1000 % instants)
        for number in range(2000)
    ]
    assert queries_of(items, [f"c{number}" for number in range(1, 41)]) == small


bodies = st.lists(
    st.tuples(
        st.lists(
            st.tuples(st.sampled_from(["5h", "weekly", "bonus"]), st.integers(0, 4), st.sampled_from([None, 1, 4, 90])),
            max_size=4,
        ),
        st.booleans(),
    ),
    min_size=1,
    max_size=5,
)


def state_after(told):
    QuotaReading.objects.all().delete()
    QuotaWindow.objects.all().delete()
    for window in ["5h", "weekly", "bonus"]:
        record(reading(window=window, percent=50, at=-10))
    for items, is_complete in told:
        record(
            *(
                reading(window=window, at=at, percent=percent, status=None if percent else ReadingStatus.EXHAUSTED)
                for window, at, percent in items
            ),
            complete_for=["c1"] if is_complete else [],
        )
    columns = ["window", "remaining_percent", "status", "observed_at", "is_reported"]
    readings = ["window__window", "observed_at", "remaining_percent", "status"]
    return (
        sorted(QuotaWindow.objects.values_list(*columns), key=str),
        sorted(QuotaReading.objects.values_list(*readings), key=str),
    )


@given(told=bodies, data=st.data())
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_bodies_in_any_order_leave_the_same_state_spec_4(connection, told, data):
    assert state_after(told) == state_after(data.draw(st.permutations(told)))
