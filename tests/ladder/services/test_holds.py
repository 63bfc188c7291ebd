"""SPEC 4, Holds: no hold is granted that would bring spend and active holds above the budget (M2, M8)."""

from datetime import timedelta

import pytest
from django.db import connection as database
from django.db import transaction
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ladder.core.values import Rung
from ladder.models import SpendHold
from ladder.selectors.ledger import read_active_holds, read_budgets
from ladder.selectors.state import get_snapshot
from ladder.services.holds import HoldRequest, grant_hold, release_hold
from omniroute_admin.common.errors import BadRequest, Conflict, NotFound
from omniroute_admin.common.selectors.revision import current_token
from tests.factories_ladder import NOW, REPORTER
from tests.ladder.core.strategies import PROPERTY
from tests.ladder.services.booking import SECOND, correct, event, make_ladder, record, row, set_budget, spent, usd

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def ladder(db):
    make_ladder()
    set_budget("cheap", "1.00")


def hold(hold_id="h1", cost="0.10", *, now=NOW, ttl=60, connection_id="paid", model="small", provider=None):
    request = HoldRequest(
        hold_id=hold_id,
        connection_id=connection_id,
        provider=provider,
        model=model,
        estimated_cost_usd=usd(cost),
        ttl_seconds=ttl,
    )
    return grant_hold(request=request, actor=REPORTER, now=now)


def held(now=NOW, rung=Rung.CHEAP):
    return sum(one.amount_usd for one in read_active_holds(now=now).get(rung, ()))


def refusal(*args, **kwargs):
    with pytest.raises(Conflict) as refused:
        hold(*args, **kwargs)
    return refused.value.code, refused.value.extra


def test_a_hold_reserves_on_the_rung_that_the_pair_has_now():
    granted = hold()
    assert (granted.rung, granted.left_usd, granted.expires_at, granted.is_new) == (
        "cheap",
        usd("0.90"),
        NOW + 60 * SECOND,
        True,
    )
    assert held() == usd("0.10")


def test_holds_fill_a_budget_to_the_cent_and_no_further_m8():
    for number in range(10):
        hold(f"h{number}")
    assert refusal("h10") == ("budget_spent", {"left_usd": "0"})
    assert refusal("h11", "0") == ("budget_spent", {"left_usd": "0"})
    assert held() == usd("1.00")


def test_a_hold_that_is_larger_than_what_is_left_is_refused_with_what_is_left_m8():
    record(event(cost="0.95"))
    assert refusal(cost="0.06") == ("budget_spent", {"left_usd": "0.05"})
    assert hold(cost="0.05").left_usd == 0


def test_a_rung_that_is_off_grants_nothing_m1():
    set_budget("cheap", "0")
    assert refusal(cost="0") == ("rung_disabled", {"left_usd": "0"})


def test_without_a_budget_every_hold_is_granted_and_nothing_is_left_to_tell_m1():
    set_budget("cheap", None)
    assert hold(cost="999999").left_usd is None
    set_budget("cheap", "1000000")
    assert refusal("h2", "2") == ("budget_spent", {"left_usd": "1.00"})


@pytest.mark.parametrize(
    ("who", "rung"),
    [
        ({"connection_id": "plan", "model": "opus"}, "subscription"),
        ({"connection_id": "noauth", "provider": "pollinations", "model": "m"}, "keyless"),
    ],
)
def test_on_rungs_that_cost_nothing_a_hold_is_granted_and_reserves_nothing(who, rung):
    granted = hold(cost="5.00", **who)
    assert (granted.rung, granted.left_usd, granted.is_new) == (rung, None, True)
    assert read_active_holds(now=NOW) == {}
    assert hold(cost="5.00", **who).is_new is False


def test_the_same_hold_again_is_the_same_hold_as_long_as_it_acts():
    first = hold()
    again = hold(now=NOW + 60 * SECOND - timedelta(microseconds=1))
    assert (again.expires_at, again.is_new, held()) == (first.expires_at, False, usd("0.10"))


@pytest.mark.parametrize("who", [{}, {"connection_id": "plan", "model": "opus"}])
def test_a_hold_that_ended_is_told_as_ended_and_not_as_reserved(who):
    for name in ("released", "settled", "expired", "marked", "late"):
        hold(name, **who)
    release_hold(hold_id="released", now=NOW + 6 * SECOND)
    record(event("e1", "0.10", hold_id="settled", **who), now=NOW + 7 * SECOND)
    SpendHold.objects.filter(hold_id="marked").update(released_at=NOW + 60 * SECOND)
    late = NOW + 61 * SECOND
    record(event("e2", "0.10", hold_id="late", **who), now=late)
    ends = {
        "released": ("released", "2026-08-22T12:00:06Z", None),
        "settled": ("settled", "2026-08-22T12:00:07Z", "e1"),
        "expired": ("expired", "2026-08-22T12:01:00Z", None),
        "marked": ("expired", "2026-08-22T12:01:00Z", None),
        "late": ("expired", "2026-08-22T12:01:00Z", "e2"),
    }
    before = list(SpendHold.objects.order_by("pk").values())
    for name, (how, at, event_id) in ends.items():
        said = {"ended": how, "ended_at": at, "settled_by": event_id}
        assert refusal(name, now=late, **who) == ("hold_ended", said), name
        assert refusal(name, "0.20", now=late, **who)[0] == "conflict"
    assert list(SpendHold.objects.order_by("pk").values()) == before


def test_usage_that_comes_after_a_holds_end_settles_it_in_the_books_alone():
    hold("marked", "0.40")
    hold("released", "0.40")
    release_hold(hold_id="released", now=NOW + SECOND)
    SpendHold.objects.filter(hold_id="marked").update(released_at=NOW + 60 * SECOND)
    late = NOW + 61 * SECOND
    before = current_token()[0], held(late), dict(SpendHold.objects.values_list("hold_id", "released_at"))
    with CaptureQueriesContext(database) as none_late:
        record(event("e0", "0.10"), event("e00", "0.10", hold_id="unknown"), now=late)
    with CaptureQueriesContext(database) as two_late:
        record(event("e1", "0.10", hold_id="marked"), event("e2", "0.10", hold_id="released"), now=late)
    after = current_token()[0], held(late), dict(SpendHold.objects.values_list("hold_id", "released_at"))
    assert after == before
    assert dict(SpendHold.objects.values_list("hold_id", "settled_by__event_id")) == {"marked": "e1", "released": "e2"}
    record(event("e3", "0.10", hold_id="marked"), now=late)
    assert SpendHold.objects.get(hold_id="marked").settled_by == row("e1")
    # The update itself, of all holds at once.
    assert len(two_late) == len(none_late) + 1


@pytest.mark.parametrize("other", [{"cost": "0.2"}, {"model": "big"}, {"ttl": 61}, {"connection_id": "plan"}])
def test_the_same_id_with_other_content_is_a_conflict(other):
    hold()
    assert refusal(**other)[0] == "conflict"
    assert held() == usd("0.10")


def test_whom_it_is_for_must_be_known():
    with pytest.raises(NotFound) as unknown:
        hold(connection_id="nobody")
    assert (unknown.value.code, unknown.value.errors[0].pointer) == ("unknown_connection", "/connection_id")
    for fields in ({"connection_id": "noauth"}, {"provider": "claude"}):
        with pytest.raises(BadRequest) as bad:
            hold(**fields)
        assert bad.value.errors[0].pointer == "/provider"


def test_a_hold_ends_by_time_m2():
    hold(cost="1.00")
    end = NOW + 60 * SECOND
    tick = timedelta(microseconds=1)
    assert (held(end - tick), held(end)) == (usd("1.00"), 0)
    assert refusal("h2", now=end - tick)[0] == "budget_spent"
    assert hold("h2", now=end).is_new


def test_a_hold_is_settled_by_the_usage_that_names_it():
    hold(cost="1.00")
    record(event(cost="0.30", hold_id="h1"))
    assert (SpendHold.objects.get().settled_by, held(), spent()) == (row(), 0, usd("0.30"))
    record(event("e2", "0.10", hold_id="h1"), correct("c1", "e1", "0.20", hold_id="h1"))
    assert (SpendHold.objects.get().settled_by, spent()) == (row(), usd("0.30"))
    assert hold("h2", "0.70").left_usd == 0


def test_usage_settles_a_hold_of_another_rung_too():
    hold(cost="1.00")
    before = current_token()[0]
    record(event(cost="0.30", model="big", hold_id="h1"))
    assert held() == 0
    assert current_token()[0] == before + 1


def test_usage_that_names_an_unknown_hold_is_booked_all_the_same_m8():
    record(event(cost="0.30", hold_id="never-granted"))
    assert spent() == usd("0.30")


def test_reported_spend_is_booked_past_the_budget_m8():
    hold(cost="1.00")
    record(event(cost="7.00", hold_id="h1"))
    assert spent() == usd("7.00")
    assert read_budgets(now=NOW)[Rung.CHEAP].spent_usd == usd("7.00")


def test_a_release_gives_back_and_done_twice_is_done():
    hold(cost="1.00")
    release_hold(hold_id="h1", now=NOW + SECOND)
    release_hold(hold_id="h1", now=NOW + 2 * SECOND)
    assert SpendHold.objects.get().released_at == NOW + SECOND
    assert hold("h2", "1.00", now=NOW + 3 * SECOND).is_new


def test_releasing_what_is_settled_or_over_changes_nothing():
    hold("h1", "0.10")
    hold("h2", "0.10")
    record(event(cost="0.10", hold_id="h1"))
    release_hold(hold_id="h1", now=NOW + SECOND)
    release_hold(hold_id="h2", now=NOW + 61 * SECOND)
    assert set(SpendHold.objects.values_list("released_at", flat=True)) == {None}


def test_releasing_an_unknown_hold_is_not_found():
    with pytest.raises(NotFound):
        release_hold(hold_id="h1", now=NOW)


def test_the_revision_moves_only_where_the_rung_closes_or_opens_spec_3():
    moves = []
    for act in (
        lambda: hold("h1", "0.50"),
        lambda: hold("h2", "0.50"),
        lambda: hold("h2", "0.50"),
        lambda: release_hold(hold_id="h2", now=NOW + SECOND),
        lambda: release_hold(hold_id="h2", now=NOW + SECOND),
        lambda: release_hold(hold_id="h1", now=NOW + SECOND),
    ):
        before = current_token()
        act()
        moves.append(tuple(new - old for new, old in zip(current_token(), before, strict=True)))
    assert moves == [(0, 1), (1, 0), (0, 0), (1, 0), (0, 0), (0, 1)]


def test_a_decision_sees_a_hold_close_its_rung_until_it_ends_m2():
    hold(cost="1.00")
    budget = get_snapshot(now=NOW).facts.budgets[Rung.CHEAP]
    assert [(one.amount_usd, one.expires_at) for one in budget.holds] == [(usd("1.00"), NOW + 60 * SECOND)]


ACTS = st.lists(
    st.tuples(
        st.sampled_from(["hold", "hold", "hold", "use", "release"]),
        st.integers(0, 5),
        st.integers(0, 60),
        st.integers(0, 40),
    ),
    max_size=25,
)


@settings(PROPERTY, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=40)
@given(acts=ACTS)
def test_no_history_of_holds_usage_and_releases_grants_past_the_budget_m8(acts):
    """Whenever a hold is granted, spend and active holds are within the budget: only reported spend goes past it."""
    with transaction.atomic():
        now = NOW
        for number, (act, which, cents, seconds) in enumerate(acts):
            now += seconds * SECOND
            amount = str(usd(cents) / 100)
            if act == "use":
                record(event(f"e{number}", amount, at=now, hold_id=f"h{which}"), now=now)
            elif act == "release":
                _release(f"h{which}", now)
            else:
                _hold_within(f"h{which}", amount, now)
        transaction.set_rollback(True)


def _release(hold_id, now):
    try:
        release_hold(hold_id=hold_id, now=now)
    except NotFound:
        assert not SpendHold.objects.filter(hold_id=hold_id).exists()


def _hold_within(hold_id, amount, now):
    before = spent(now=now) + held(now)
    known = SpendHold.objects.filter(hold_id=hold_id)
    is_known = known.exists()
    acts = known.filter(settled_by=None, released_at=None, expires_at__gt=now).exists()
    outcome = _outcome(hold_id, amount, now)
    if is_known:
        assert outcome in {"again" if acts else "hold_ended", "conflict"}
    else:
        assert outcome == ("granted" if before < 1 and before + usd(amount) <= 1 else "budget_spent")
    assert spent(now=now) + held(now) == before + (usd(amount) if outcome == "granted" else 0)


def _outcome(hold_id, amount, now):
    try:
        return "granted" if hold(hold_id, amount, now=now).is_new else "again"
    except Conflict as refused:
        return refused.code
