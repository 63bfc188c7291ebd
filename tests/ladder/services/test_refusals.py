"""C1 to C5, from a report to the cooldown that acts."""

from datetime import timedelta
from decimal import Decimal

import msgspec
import pytest
from django.db import connection as database
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ladder.core.cooldown import acting_cooldown
from ladder.models import Connection, Cooldown, RefusalReport
from ladder.selectors.state import get_snapshot, read_connections, read_facts
from ladder.services.cooldowns import clear_cooldowns
from ladder.services.reading_items import reading_item
from ladder.services.readings import record_readings
from ladder.services.refusal_items import RateLimitItem
from ladder.services.refusals import record_rate_limits
from omniroute_admin.common.selectors.revision import current_revision
from tests.factories import BillingEntryFactory, ConnectionFactory, QuotaWindowFactory, UsageEventFactory
from tests.factories_ladder import NOW, OPERATOR, REPORTER

pytestmark = pytest.mark.django_db

SECOND, MINUTE, HOUR, DAY = (timedelta(**{unit: 1}) for unit in ("seconds", "minutes", "hours", "days"))


def refusal(at=0, **fields):
    """Return an item; `at` is seconds after NOW, `reset_in` seconds after NOW too."""
    raw = {name: fields.pop(name) for name in ("retry_after", "reset_at") if name in fields}
    if "reset_in" in fields:
        raw["reset_at"] = NOW + fields.pop("reset_in") * SECOND
    wire = {name: msgspec.Raw(msgspec.json.encode(value)) for name, value in raw.items()}
    return RateLimitItem(
        **{"connection_id": "c1", "cause": "rate_limit"} | fields | wire, occurred_at=NOW + at * SECOND
    )


def report(*items, now=NOW, actor=REPORTER):
    return record_rate_limits(items=items, actor=actor, now=now)


def counts(answer):
    return answer.accepted, answer.duplicates, answer.superseded, len(answer.rejected)


def read(window="5h", percent=50, at=0, now=NOW, **fields):
    item = reading_item(
        connection_id="c1",
        window=window,
        observed_at=NOW + at * SECOND,
        remaining_percent=None if percent is None else Decimal(percent),
        **fields,
    )
    return record_readings(items=[item], complete_for=[], actor=REPORTER, now=now)


def ends(told):
    return [(one.asked_until, one.effective_until, one.clamped) for one in told.cooldowns]


@pytest.fixture(autouse=True)
def plan(db):
    BillingEntryFactory(provider="plan-seller", auth_type="oauth", billing="subscription", overage="meters-to-paid")
    return ConnectionFactory(connection_id="c1", provider="plan-seller")


def test_c1_a_quota_cooldown_of_a_plan_ends_at_the_reset_the_report_names_and_both_ends_are_told_c2():
    told = report(refusal(cause="quota", retry_after=7200, reset_in=3600, status_code=429))
    assert counts(told) == (1, 0, 0, 0)
    assert ends(told) == [(NOW + 2 * HOUR, NOW + HOUR, True)]
    row = Cooldown.objects.get()
    assert (row.asked_until, row.effective_until) == (NOW + 2 * HOUR, NOW + HOUR)
    assert (row.cause, row.set_by, row.reported_at) == ("quota", REPORTER.name, NOW)
    assert "status 429" in row.origin
    assert row.history.get().history_actor == REPORTER.name


def test_c1_a_later_reset_never_makes_it_longer():
    assert ends(report(refusal(cause="quota", retry_after=60, reset_in=3600))) == [(NOW + MINUTE, NOW + MINUTE, False)]


def test_c1_a_reset_that_is_past_or_not_readable_leaves_it_as_it_is():
    QuotaWindowFactory(
        connection=Connection.objects.get(), window="5h", remaining_percent=Decimal(0), reset_at=NOW + MINUTE
    )
    for place, reset_at in enumerate([NOW, NOW - HOUR, "nonsense"]):
        told = report(refusal(at=-place, cause="quota", retry_after=7200, reset_at=reset_at, model=f"m{place}"))
        assert [one.clamped for one in told.cooldowns] == [False]


@pytest.mark.parametrize(
    ("billing", "cause", "clamped"),
    [
        ("subscription", "quota", True),
        ("subscription", "rate_limit", False),
        ("keyless", "quota", True),
        ("metered", "quota", False),
        ("unknown", "quota", False),
    ],
)
def test_c1_only_cause_quota_of_what_a_plan_includes_is_clamped(billing, cause, clamped):
    BillingEntryFactory(provider="other", auth_type="oauth", billing=billing, overage="unknown")
    ConnectionFactory(connection_id="c2", provider="other", overage_override="meters-to-paid")
    told = report(refusal(connection_id="c2", cause=cause, retry_after=7200, reset_in=3600))
    assert [one.clamped for one in told.cooldowns] == [clamped]


def test_c1_the_keyless_path_is_clamped_though_nobody_stored_it_b1():
    told = report(refusal(connection_id="noauth", provider="Other", cause="quota", retry_after=7200, reset_in=60))
    assert (counts(told), [one.clamped for one in told.cooldowns]) == ((1, 0, 0, 0), [True])
    assert Connection.objects.get(connection_id="noauth").is_implied


def test_c1_the_named_window_is_asked_next_then_the_used_up_ones(plan):
    QuotaWindowFactory(connection=plan, window="5h", remaining_percent=Decimal(40), reset_at=NOW + MINUTE)
    QuotaWindowFactory(connection=plan, window="weekly", remaining_percent=Decimal(2), reset_at=NOW + HOUR)
    named = report(refusal(cause="quota", retry_after=DAY.total_seconds(), window="5h", model="a"))
    unnamed = report(refusal(cause="quota", retry_after=DAY.total_seconds(), model="b"))
    assert [one.effective_until for one in named.cooldowns] == [NOW + MINUTE]
    assert [one.effective_until for one in unnamed.cooldowns] == [NOW + HOUR]


def test_c3_one_is_kept_per_connection_model_and_cause():
    fields = [{"model": model, "cause": cause} for model in (None, "a") for cause in ("quota", "rate_limit", "auth")]
    told = report(*(refusal(at=at, retry_after=60, **one) for one in fields for at in (0, -1)))
    assert (Cooldown.objects.count(), len(told.cooldowns), counts(told)) == (6, 6, (6, 0, 6, 0))


def test_c3_a_cooldown_of_a_model_touches_only_that_model():
    report(refusal(model="opus", retry_after=60))
    cooldowns = read_connections(settings=get_snapshot(now=NOW).facts.settings)[0].cooldowns
    assert acting_cooldown(cooldowns=cooldowns, model="opus", now=NOW).until == NOW + MINUTE
    assert acting_cooldown(cooldowns=cooldowns, model="sonnet", now=NOW) is None


@pytest.mark.parametrize("cause", ["auth", "ban"])
def test_c4_auth_and_ban_last_until_cleared(cause):
    told = report(refusal(cause=cause, retry_after=60, reset_in=30))
    assert ends(told) == [(None, None, False)]
    assert counts(report(refusal(cause=cause))) == (0, 1, 0, 0)


@pytest.mark.parametrize(("auth_type", "seconds"), [("oauth", [5, 10, 20]), ("apikey", [3, 6, 12]), (None, [3, 6, 12])])
def test_c4_reports_in_a_row_are_counted_where_the_router_gives_no_length(auth_type, seconds):
    Connection.objects.update(auth_type=auth_type)
    for place, length in enumerate(seconds):
        at = place * 100
        told = report(refusal(at=at), now=NOW + at * SECOND)
        assert [one.effective_until for one in told.cooldowns] == [NOW + (at + length) * SECOND]
        assert Cooldown.objects.get().failure_count == place + 1


def test_c4_the_routers_own_count_and_its_length_are_preferred():
    assert ends(report(refusal(failure_count=4, model="a")))[0][0] == NOW + 40 * SECOND
    assert ends(report(refusal(failure_count=0, model="b")))[0][0] == NOW + 5 * SECOND
    assert ends(report(refusal(failure_count=10**9, model="c")))[0][0] == NOW + 1280 * SECOND
    assert ends(report(refusal(failure_count=4, retry_after=3600 * 24 * 40, model="d")))[0][0] == NOW + 30 * DAY


def test_c4_a_row_is_counted_on_over_more_than_the_half_hour_that_a_back_off_can_last():
    for place in range(12):
        report(refusal(at=place * 3600), now=NOW + place * HOUR)
    assert Cooldown.objects.get().asked_until == NOW + 11 * HOUR + 1280 * SECOND


def test_c4_what_an_operator_cleared_is_counted_from_the_start_again(plan):
    for at in (-30, -20, -10):
        report(refusal(at=at))
    clear_cooldowns(connection=plan, causes=None, actor=OPERATOR, reason="", now=NOW)
    assert ends(report(refusal(at=1)))[0][0] == NOW + 6 * SECOND


def test_c5_a_longer_one_extends_and_a_shorter_one_does_not_shorten():
    report(refusal(at=-3, retry_after=60))
    longer = report(refusal(at=-2, retry_after=120))
    shorter = report(refusal(at=-1, retry_after=10))
    assert (counts(longer), counts(shorter)) == ((1, 0, 0, 0), (1, 0, 0, 0))
    assert ends(shorter) == ends(longer) == [(NOW + 118 * SECOND, NOW + 118 * SECOND, False)]
    assert Cooldown.objects.get().reported_at == NOW - SECOND


def test_c5_an_older_report_is_superseded_unless_it_asks_for_longer():
    report(refusal(at=0, retry_after=60))
    assert counts(report(refusal(at=-10, retry_after=60))) == (0, 0, 1, 0)
    assert counts(report(refusal(at=-20, retry_after=600))) == (1, 0, 0, 0)
    row = Cooldown.objects.get()
    assert (row.effective_until, row.reported_at) == (NOW + 580 * SECOND, NOW)


def test_the_same_report_twice_has_one_effect_and_the_same_answer_spec_4():
    items = [refusal(at=-2), refusal(at=-1), refusal(cause="quota", retry_after=90, reset_in=30)]
    first, before = report(*items), current_revision()
    again = report(*items, *items, now=NOW + SECOND)
    assert (counts(first), counts(again)) == ((3, 0, 0, 0), (0, 6, 0, 0))
    assert again.cooldowns == first.cooldowns
    assert (current_revision(), Cooldown.history.count()) == (before, 2)


def test_the_same_report_again_past_the_reset_that_cut_it_is_not_let_go_by_the_clamp_c1():
    item = refusal(cause="quota", retry_after=7200, reset_in=60)
    report(item)
    told = report(item, now=NOW + HOUR)
    assert (counts(told), ends(told)) == ((0, 1, 0, 0), [(NOW + 2 * HOUR, NOW + MINUTE, True)])


def test_a_cleared_cooldown_is_not_set_again_by_what_was_reported_before_c3(plan):
    item = refusal(at=-10, cause="auth")
    report(item)
    clear_cooldowns(connection=plan, causes=None, actor=OPERATOR, reason="signed in again", now=NOW)
    assert counts(report(item, now=NOW + SECOND)) == (0, 1, 0, 0)
    assert counts(report(refusal(at=-5, cause="auth"), now=NOW + SECOND)) == (0, 0, 1, 0)
    assert not Cooldown.objects.exists()
    assert counts(report(refusal(at=1, cause="auth"), now=NOW + SECOND)) == (1, 0, 0, 0)
    assert Cooldown.objects.exists()


def test_a_report_whose_end_is_past_is_accepted_and_sets_nothing_active():
    before = current_revision()
    told = report(refusal(at=-3600, retry_after=60))
    assert (counts(told), ends(told)[0][1]) == ((1, 0, 0, 0), NOW - 59 * MINUTE)
    assert current_revision() == before
    told = report(refusal(at=-4000, retry_after=4030))
    assert (counts(told), ends(told)[0][1], current_revision()) == ((1, 0, 0, 0), NOW + 30 * SECOND, before + 1)


def test_c3_readings_newer_than_the_report_lift_quota_and_nothing_else():
    for cause in ("quota", "rate_limit", "auth", "ban"):
        report(refusal(at=-60, cause=cause, retry_after=7200))
    read(at=-61, now=NOW)
    assert Cooldown.objects.count() == 4
    read(at=-60, now=NOW)
    assert Cooldown.objects.count() == 4
    before = current_revision()
    read(at=-59)
    assert set(Cooldown.objects.values_list("cause", flat=True)) == {"rate_limit", "auth", "ban"}
    assert current_revision() == before + 1


def test_c3_a_late_report_that_newer_readings_overtake_sets_nothing():
    read(at=-30)
    assert counts(report(refusal(at=-60, cause="quota", retry_after=7200))) == (1, 0, 0, 0)
    assert not Cooldown.objects.exists()
    assert counts(report(refusal(at=-60, cause="rate_limit", retry_after=7200))) == (1, 0, 0, 0)
    assert counts(report(refusal(at=-20, cause="quota", retry_after=7200))) == (1, 0, 0, 0)
    assert Cooldown.objects.count() == 2


def test_c3_what_was_lifted_does_not_come_back_when_its_report_does():
    item = refusal(at=-60, cause="quota", retry_after=7200)
    report(item)
    read(at=-30)
    # The reading is stale by now, so nothing but the report's own past keeps it out.
    assert counts(report(item, now=NOW + HOUR)) == (0, 1, 0, 0)
    assert not Cooldown.objects.exists()


@pytest.mark.parametrize("percent", [2, 1, 0, None])
def test_c3_readings_that_do_not_say_usable_lift_nothing(percent):
    report(refusal(at=-60, cause="quota", retry_after=7200))
    read(percent=percent, at=-1, **({"unlimited": False, "status": "unknown"} if percent is None else {}))
    assert Cooldown.objects.exists()


def test_bad_items_are_told_by_index_and_cost_the_good_ones_nothing_spec_4():
    ConnectionFactory(connection_id="gone", deleted_at=NOW)
    told = report(
        refusal(connection_id="nobody"),
        refusal(retry_after=60),
        refusal(connection_id="gone"),
        refusal(connection_id="c1", provider="other"),
        refusal(connection_id="noauth"),
        refusal(at=61),
        refusal(reset_at=10**15),
    )
    assert [(one.index, one.code) for one in told.rejected] == [
        (0, "unknown_connection"),
        (2, "unknown_connection"),
        (3, "provider_mismatch"),
        (4, "provider_required"),
        (5, "occurred_in_future"),
        (6, "invalid_reset_at"),
    ]
    assert (counts(told), Cooldown.objects.count()) == ((1, 0, 0, 6), 1)


def test_a_body_of_nothing_good_moves_no_revision():
    before = current_revision()
    report()
    report(refusal(connection_id="nobody"))
    assert current_revision() == before


def queries_of(number):
    items = [
        refusal(connection_id=f"n{place % number}", at=-(place % 7), cause="quota", model=str(place), reset_in=60)
        for place in range(number)
    ]
    with CaptureQueriesContext(database) as queries:
        report(*items)
        report(*(msgspec.structs.replace(item, retry_after=msgspec.Raw(b"600")) for item in items))
    return len(queries)


def test_as_many_queries_for_5000_reports_as_for_two_spec_4():
    Connection.objects.bulk_create(
        ConnectionFactory.build(connection_id=f"n{place}", provider="plan-seller") for place in range(5000)
    )
    assert queries_of(2) == queries_of(5000)
    assert Cooldown.objects.count() >= 5000


def test_lifting_many_takes_as_many_queries_as_lifting_one_c3(plan):
    QuotaWindowFactory(connection=plan, window="5h", unread=True)

    def lift(number, at):
        report(*(refusal(at=at, cause="quota", retry_after=7200, model=str(place)) for place in range(number)))
        with CaptureQueriesContext(database) as queries:
            read(at=at + 1)
        assert not Cooldown.objects.exists()
        return len(queries)

    assert lift(1, -50) == lift(300, -40)
    assert Cooldown.history.filter(history_type="-").count() == 301


a_report = st.fixed_dictionaries(
    {"at": st.integers(-40, 0), "cause": st.sampled_from(["quota", "rate_limit"])},
    optional={
        "retry_after": st.integers(0, 120),
        "failure_count": st.integers(0, 9),
        "reset_in": st.integers(-20, 90),
        "model": st.sampled_from(["opus", None]),
    },
)


def identity(fields):
    return fields["at"], fields["cause"], fields.get("model")


def acting_now():
    rows = Cooldown.objects.order_by("model", "cause").values_list(
        "model", "cause", "asked_until", "effective_until", "reported_at"
    )
    return list(rows)


@given(reports=st.lists(a_report, max_size=7, unique_by=identity), data=st.data())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_in_whatever_order_reports_come_the_same_cooldown_acts_and_none_is_lengthened_by_the_clamp_c1_c5(reports, data):
    results = []
    for order in (reports, data.draw(st.permutations(reports)), data.draw(st.permutations(reports))):
        Cooldown.objects.all().delete()
        RefusalReport.objects.all().delete()
        Cooldown.history.all().delete()
        cut = data.draw(st.integers(0, len(order)))
        items = [refusal(**one) for one in order]
        for body in (items[:cut], items[cut:], items):
            report(*body)
        results.append(acting_now())
    assert results[0] == results[1] == results[2]
    assert all(effective <= asked for _, _, asked, effective, _ in results[0])


def test_the_decision_sees_a_cooldown_with_the_next_revision_spec_3():
    before = get_snapshot(now=NOW)
    report(refusal(retry_after=60))
    after = get_snapshot(now=NOW)
    assert int(after.facts.revision) == int(before.facts.revision) + 1
    assert read_facts(revision=1, now=NOW).connections[0].cooldowns


def lengths(**fields):
    """Return how many seconds past its own instant each stored key's cooldown lasts."""
    return report(refusal(**fields)).cooldowns[0].effective_until - (NOW + fields["at"] * SECOND)


def test_c4_a_success_between_begins_the_row_anew(plan):
    for at in (-300, -290, -280):
        report(refusal(at=at))
    UsageEventFactory(connection=plan, occurred_at=NOW - 200 * SECOND)
    assert lengths(at=-100) == 5 * SECOND
    assert lengths(at=-90) == 10 * SECOND
    # It came late: of the row before the success, and no part of the one after it.
    report(refusal(at=-250))
    assert lengths(at=-80) == 20 * SECOND


def test_c4_a_success_of_another_connection_or_of_another_model_is_none_for_this_one(plan):
    UsageEventFactory(connection=ConnectionFactory(), occurred_at=NOW - 50 * SECOND)
    UsageEventFactory(connection=plan, model="sonnet", occurred_at=NOW - 50 * SECOND)
    report(refusal(at=-60, model="opus"))
    assert lengths(at=-40, model="opus") == 10 * SECOND
    report(refusal(at=-60, cause="quota"))
    assert lengths(at=-40, cause="quota") == 5 * SECOND
    UsageEventFactory(connection=plan, model="opus", occurred_at=NOW - 30 * SECOND)
    assert lengths(at=-20, model="opus") == 5 * SECOND
