"""P1 to P8, case by case: what is in, on which rung, and with which code the rest is out."""

from decimal import Decimal

import msgspec
import pytest

from billing_catalog.core.values import Overage
from ladder.core.values import (
    Budget,
    Candidate,
    Connection,
    Cooldown,
    CooldownCause,
    Hold,
    Rung,
    Window,
)
from tests.ladder.core.asking import LOWEST, LOWEST_MERGE, MERGE, NOW, TICK
from tests.ladder.core.small_facts import (
    BREAKER,
    FRESH,
    HOUR,
    OFF,
    RESTING,
    SPENT,
    STALE,
    USED,
    claude,
    codes,
    entries,
    facts,
    key,
    only,
    plan,
    pool,
)

# --- P2, P3: subscription fails closed ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("connection", "code"),
    [
        (plan(), None),
        (plan("c", STALE), "quota_stale"),
        (plan("c", Window("5h")), "quota_unverified"),
        (Connection("c", "claude", "oauth"), "quota_unverified"),
        (plan("c", USED), "quota_exhausted"),
        (plan("c", msgspec.structs.replace(FRESH, reset_at=NOW)), "reset_pending"),
        (plan("c", msgspec.structs.replace(FRESH, remaining_percent=Decimal(4), held=True)), "held_for_reentry"),
        (plan(cooldowns=RESTING), "cooldown"),
        (plan(cooldowns=(Cooldown(CooldownCause.AUTH, None),)), "cooldown"),
        (plan(is_enabled=False), "connection_disabled"),
        (plan(excluded_models=("OPUS*",)), "model_excluded"),
        (plan(overage_override=Overage.METERS_TO_PAID), "overage_not_hard_stop"),
        (plan(overage_override=Overage.UNKNOWN), "overage_not_hard_stop"),
        (key(), "not_subscription"),
        (key(overage_override=Overage.HARD_STOP), "not_subscription"),
        (Connection("c", "claude", "cookie"), "not_subscription"),
        (Connection("c", "claude"), "not_subscription"),
        (Connection("noauth", "claude", "none"), "keyless_not_in_plan"),
    ],
)
def test_p2_only_a_verified_plan_that_stops_hard_is_in_a_subscription_pool(connection, code):
    answer = pool(facts(connection), claude(connection.connection_id), pool_id="auto/subscription")
    assert [out.code for out in answer.excluded] == ([] if code is None else [code])
    assert bool(answer.candidates) == (code is None)


def test_b4_an_override_that_declares_hard_stop_lets_a_plan_in():
    for provider in ("codex", "cursor"):
        one = plan(provider=provider, overage_override=Overage.HARD_STOP)
        answer = pool(facts(one), Candidate(provider, "x", "plan"), pool_id="auto/subscription")
        assert entries(answer) == [("subscription", "plan")]


def test_p3_an_empty_subscription_pool_is_an_answer_that_is_never_widened():
    answer = pool(facts(plan("plan", USED), key()), claude("plan", "key"), pool_id="auto/subscription")
    assert answer.candidates == []
    assert (answer.empty.code, answer.empty.returns_at) == ("no_usable_plan", NOW + HOUR)


# --- P4, P5, P6: thrifty escalates -------------------------------------------------------------------------------


@pytest.mark.parametrize("window", [STALE, Window("5h"), msgspec.structs.replace(FRESH, reset_at=NOW)])
def test_p4_thrifty_tries_a_plan_whose_quota_is_not_verified(window):
    assert entries(pool(facts(plan("plan", window)), claude("plan"))) == [("subscription", ("plan",))]


def test_p4_thrifty_marks_a_plan_that_may_bill_past_its_allowance():
    known = facts(plan("a"), plan("b", overage_override=Overage.UNKNOWN), plan("c", provider="codex"), key())
    asked = [claude("a"), claude("b"), claude("a", "b"), Candidate("codex", "x", "c"), claude("key")]
    assert [one.may_bill_past_plan for one in pool(known, *asked).candidates] == [False, True, True, True, False]


def test_p4_rungs_rise_and_within_a_rung_the_incoming_order_stands():
    known = facts(plan("z"), plan("a"), key("y"), key("b"), Connection("f", "acme", "apikey", windows=(FRESH,)))
    free = Candidate("acme", "small", "f")
    answer = pool(known, claude("y", model="opus-4"), free, claude("z"), claude("b"), claude("noauth"), claude("a"))
    assert entries(answer) == [
        ("subscription", ("z",)),
        ("subscription", ("a",)),
        ("keyless", ("noauth",)),
        ("free", "f"),
        ("cheap", ("y",)),
        ("cheap", ("b",)),
    ]


def test_p5_split_names_a_candidate_once_on_each_of_its_rungs():
    answer = pool(facts(plan("a"), plan("b"), key()), claude("key", "b", "noauth", "a", ref="r"))
    assert entries(answer) == [("subscription", ("b", "a")), ("keyless", ("noauth",)), ("cheap", ("key",))]
    assert {one.ref for one in answer.candidates} == {"r"}


def test_p5_merge_gives_one_entry_on_the_lowest_rung_with_all_survivors_in_their_order():
    known = facts(plan("a"), plan("b", USED), key())
    answer = pool(known, claude("key", "b", "noauth", "a"), claude("key"), options=MERGE)
    assert entries(answer) == [("subscription", ("key", "noauth", "a")), ("cheap", ("key",))]
    assert codes(answer) == {"b": "quota_exhausted"}


def test_p6_lowest_rung_only_cuts_after_the_first_rung_that_has_survivors():
    known = facts(plan("a", USED), key())
    answer = pool(known, claude("a", "noauth", "key", ref="1"), claude("key", ref="2"), options=LOWEST)
    assert entries(answer) == [("keyless", ("noauth",))]
    assert [(out.ref, out.connection_id, out.code) for out in answer.excluded] == [
        ("1", "a", "quota_exhausted"),
        ("1", "key", "lower_rung_serves"),
        ("2", "key", "lower_rung_serves"),
    ]
    assert [out.returns_at for out in answer.excluded] == [NOW + HOUR, None, None]


def test_p6_what_is_merged_into_the_serving_rung_is_served():
    answer = pool(facts(plan(), key()), claude("key", "plan"), claude("key"), options=LOWEST_MERGE)
    assert entries(answer) == [("subscription", ("key", "plan"))]
    assert answer.excluded_counts == {"lower_rung_serves": 1}


def test_p8_above_the_serving_rung_the_own_code_is_told_and_the_return_is_unknown():
    answer = pool(facts(plan(), key(cooldowns=RESTING)), claude("plan", "key"), options=LOWEST)
    assert (only(answer).code, only(answer).returns_at) == ("cooldown", None)
    off = pool(facts(plan(), key(), **OFF), claude("plan", "key"), options=LOWEST)
    assert only(off).code == "rung_disabled"


# --- P7: what is not known ---------------------------------------------------------------------------------------


def test_p7_what_is_not_known_is_explained_and_costs_the_rest_nothing():
    known = facts(plan(), plan("other", provider="codex"))
    answer = pool(known, claude("nobody", "other", "plan", "PLAN"), claude(), claude("plan"))
    assert entries(answer) == [("subscription", ("plan",))] * 2
    assert [(out.connection_id, out.code, out.rung) for out in answer.excluded] == [
        ("nobody", "unknown_connection", None),
        ("other", "provider_mismatch", None),
        ("PLAN", "unknown_connection", None),
        (None, "no_connections", None),
    ]


def test_the_keyless_path_is_always_known_and_each_provider_has_its_own():
    closed = Connection("noauth", "claude", "none", is_enabled=False)
    answer = pool(facts(closed), Candidate("claude", "x", "noauth"), Candidate("acme", "x", "noauth"))
    assert entries(answer) == [("keyless", "noauth")]
    assert answer.candidates[0].provider == "acme"
    assert codes(answer) == {"noauth": "connection_disabled"}


# --- P8: one code, in order ---------------------------------------------------------------------------------------

TROUBLES = [
    ("connection_disabled", {"is_enabled": False}, {}),
    ("model_excluded", {"excluded_models": ("*",)}, {}),
    ("breaker_open", {}, BREAKER),
    ("cooldown", {"cooldowns": RESTING}, {}),
    ("quota_exhausted", {"windows": (USED,)}, {}),
]


@pytest.mark.parametrize("first", range(len(TROUBLES)))
def test_p8_the_first_code_in_the_order_of_precedence_is_told(first):
    own, around = {}, {}
    for _, fields, others in TROUBLES[first:]:
        own, around = {**own, **fields}, {**around, **others}
    one = Connection("plan", "claude", "oauth", **own)
    assert only(pool(facts(one, **around), claude("plan"))).code == TROUBLES[first][0]


@pytest.mark.parametrize(
    ("own", "around", "code"),
    [
        ({}, SPENT, "budget_spent"),
        ({"cooldowns": RESTING}, SPENT, "cooldown"),
        ({"cooldowns": RESTING}, {**SPENT, **BREAKER}, "breaker_open"),
        ({}, OFF, "rung_disabled"),
        ({"cooldowns": RESTING}, {**OFF, **BREAKER}, "rung_disabled"),
        ({"is_enabled": False}, OFF, "connection_disabled"),
        ({"windows": (USED,)}, {}, None),
    ],
)
def test_p8_on_a_paid_rung_money_is_asked_and_quota_is_not(own, around, code):
    answer = pool(facts(key(**own), **around), claude("key"))
    assert [out.code for out in answer.excluded] == ([] if code is None else [code])


@pytest.mark.parametrize("rung", [Rung.SUBSCRIPTION, Rung.KEYLESS, Rung.FREE])
@pytest.mark.parametrize("amount", [0, 5])
def test_m_no_budget_is_asked_for_below_the_paid_rungs(rung, amount):
    known = facts(
        plan(), Connection("f", "acme", "apikey", windows=(FRESH,)), budgets={rung: Budget(Decimal(amount), Decimal(9))}
    )
    assert len(pool(known, claude("plan", "noauth"), Candidate("acme", "small", "f")).candidates) == 3


def test_m2_without_accounting_a_rung_is_never_closed_but_may_be_off():
    unbooked = {"budgets": {Rung.CHEAP: Budget(Decimal(5), None, (Hold(Decimal(9), NOW + HOUR),))}}
    assert entries(pool(facts(key(), **unbooked), claude("key"))) == [("cheap", ("key",))]
    off = {"budgets": {Rung.CHEAP: Budget(Decimal(0), None)}}
    assert only(pool(facts(key(), **off), claude("key"))).code == "rung_disabled"


@pytest.mark.parametrize(
    ("own", "around", "returns_at"),
    [
        ({"windows": (USED,)}, {}, NOW + HOUR),
        ({"windows": (USED,)}, {"breakers": {"claude": NOW + 2 * HOUR}}, NOW + 2 * HOUR),
        ({"windows": (USED,)}, {"breakers": {"claude": NOW + TICK}}, NOW + HOUR),
        ({"windows": (msgspec.structs.replace(USED, reset_at=None),)}, BREAKER, None),
        ({"cooldowns": (Cooldown(CooldownCause.BAN, None),)}, BREAKER, None),
        ({"cooldowns": RESTING, "windows": (STALE,)}, BREAKER, NOW + HOUR),
    ],
)
def test_p8_the_return_is_the_latest_of_all_reasons_for_now_and_unknown_if_one_is(own, around, returns_at):
    one = Connection("plan", "claude", "oauth", **own)
    assert only(pool(facts(one, **around), claude("plan"))).returns_at == returns_at


def test_p8_in_a_subscription_pool_an_unverified_plan_has_no_known_return():
    one = plan("plan", STALE, cooldowns=RESTING)
    assert only(pool(facts(one), claude("plan"), pool_id="auto/subscription")).returns_at is None


def test_the_window_told_is_the_binding_one():
    week = Window("weekly", observed_at=NOW, remaining_percent=Decimal(0), reset_at=NOW + 9 * HOUR)
    out = only(pool(facts(plan("plan", USED, week), **BREAKER), claude("plan")))
    assert (out.code, out.family, out.window, out.returns_at) == ("breaker_open", "for_now", "weekly", NOW + 9 * HOUR)
