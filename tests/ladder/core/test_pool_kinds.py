"""C, P9, P10 and I on whole pools, the stored inventory and the empty pool (SPEC 4), case by case."""

import msgspec
import pytest

from billing_catalog.core.values import Tier
from ladder.core.ids import POOL_IDS
from ladder.core.snapshot import Snapshot
from ladder.core.values import (
    Candidate,
    Connection,
    Cooldown,
    CooldownCause,
    ReadingStatus,
    Window,
)
from tests.ladder.core.asking import LOWEST, NOW, World, ask, ask_of
from tests.ladder.core.small_facts import (
    BREAKER,
    FRESH,
    HOUR,
    RESTING,
    STALE,
    USED,
    claude,
    facts,
    key,
    only,
    plan,
    pool,
    price,
    stored,
)

# --- C: out on every rung, and shown -----------------------------------------------------------------------------


@pytest.mark.parametrize("pool_id", ["auto/thrifty", "auto/best-free"])
def test_c_a_resting_connection_and_an_open_breaker_are_out_on_every_rung(pool_id):
    fleet = [plan(cooldowns=RESTING), key(cooldowns=RESTING), Connection("noauth", "claude", "none", cooldowns=RESTING)]
    asked = claude("plan", "key", "noauth")
    assert pool(facts(*fleet), asked, pool_id=pool_id).candidates == []
    assert set(pool(facts(*fleet), asked).excluded_counts) == {"cooldown"}
    assert set(pool(facts(plan(), key(), **BREAKER), asked).excluded_counts) == {"breaker_open"}
    assert len(pool(facts(plan(), key(), breakers={"claude": NOW}), asked).candidates) == 3


def test_c3_a_cooldown_of_one_model_leaves_the_others_alone():
    one = plan(cooldowns=(Cooldown(CooldownCause.RATE_LIMIT, NOW + HOUR, "opus-4"),))
    answer = pool(facts(one), claude("plan"), claude("plan", model="sonnet-4"))
    assert [entry.model for entry in answer.candidates] == ["sonnet-4"]


def test_q6_a_window_of_one_model_keeps_only_that_model_out():
    opus = Window("weekly:opus", observed_at=NOW, status=ReadingStatus.EXHAUSTED, model="OPUS*")
    answer = pool(facts(plan("plan", FRESH, opus)), claude("plan"), claude("plan", model="sonnet-4"))
    assert [entry.model for entry in answer.candidates] == ["sonnet-4"]
    assert only(answer).window == "weekly:opus"


# --- P10 and I ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("candidate", "code"),
    [
        (Candidate("claude", "opus-4", "noauth"), None),
        (Candidate("acme", "small", "fresh"), None),
        (Candidate("acme", "small", "stale"), "quota_stale"),
        (Candidate("acme", "small", "unread"), "quota_unverified"),
        (Candidate("acme", "big", "fresh"), "rung_not_in_pool"),
        (Candidate("claude", "opus-4", "plan"), "rung_not_in_pool"),
        (Candidate("claude", "opus-4", "key"), "rung_not_in_pool"),
    ],
)
def test_p10_best_free_holds_the_keyless_and_the_verified_free_only(candidate, code):
    fleet = [
        Connection(name, "acme", "apikey", windows=windows)
        for name, windows in [("fresh", (FRESH,)), ("stale", (STALE,)), ("unread", ())]
    ]
    answer = pool(facts(plan(), key(), *fleet), candidate, pool_id="auto/best-free")
    assert [out.code for out in answer.excluded] == ([] if code is None else [code])


def test_p10_a_keyless_path_that_is_read_as_used_up_is_out():
    known = facts(Connection("noauth", "claude", "none", windows=(USED,)))
    assert only(pool(known, claude("noauth"), pool_id="auto/best-free")).code == "quota_exhausted"


@pytest.mark.parametrize(
    ("category", "able"),
    [
        ("vision", ["v", "vr"]),
        ("multimodal", ["v", "vr"]),
        ("reasoning", ["r", "vr"]),
        ("coding", ["v", "r", "vr", "n"]),
        ("chat", ["v", "r", "vr", "n"]),
    ],
)
def test_i_a_category_keeps_the_models_known_to_be_able(category, able):
    known = facts(
        plan(),
        capabilities={
            ("claude", "v"): frozenset({"vision"}),
            ("claude", "r"): frozenset({"reasoning"}),
            ("claude", "vr"): frozenset({"vision", "reasoning"}),
        },
    )
    asked = [claude("plan", model=model) for model in ("v", "r", "vr", "n")]
    for kind in ("subscription", "thrifty"):
        answer = pool(known, *asked, pool_id=f"auto/{category}:{kind}")
        assert [entry.model for entry in answer.candidates] == able
        assert set(answer.excluded_counts) <= {"capability_missing"}


def test_i_no_id_of_the_subscription_kind_lists_a_paid_connection():
    known = facts(key(windows=(FRESH,)), capabilities={("claude", "opus-4"): frozenset({"vision", "reasoning"})})
    for pool_id in POOL_IDS:
        answer = pool(known, claude("key"), pool_id=pool_id)
        assert bool(answer.candidates) == pool_id.endswith("thrifty")


# --- SPEC 4: the stored inventory and the empty pool ---------------------------------------------------------------


def test_the_stored_candidates_come_by_rank_with_nulls_last_then_provider_then_model():
    prices = [price("b"), price("a"), price("z", rank=1), price("y", rank=0), price("x", provider="acme")]
    known = facts(plan(), plan("other", provider="acme"), prices=tuple(prices), tiers={("acme", "x"): Tier.FREE})
    assert [(one.provider, one.model) for one in stored(known).candidates] == [
        ("claude", "y"),
        ("claude", "z"),
        ("claude", "a"),
        ("claude", "b"),
        ("acme", "x"),
    ]


def test_a_provider_without_a_current_price_gives_no_models_once_for_each_connection():
    known = facts(
        plan("a"), plan("b"), plan("c", provider="codex"), prices=(price("x", provider="codex"), price("x", end=NOW))
    )
    left = [(out.connection_id, out.model, out.code) for out in stored(known).excluded]
    assert left == [("a", None, "no_models"), ("b", None, "no_models")]


@pytest.mark.parametrize(
    ("pool_id", "code"),
    [
        ("auto/subscription", "no_usable_plan"),
        ("auto/thrifty", "all_exhausted"),
        ("auto/best-free", "no_free_capacity"),
    ],
)
def test_an_empty_pool_says_which_kind_of_emptiness_it_is(pool_id, code):
    assert pool(facts(plan("plan", USED)), claude("plan"), pool_id=pool_id).empty.code == code
    assert pool(facts(plan()), pool_id=pool_id).empty.code == "no_candidates"


def test_an_empty_pool_returns_with_the_earliest_of_its_pairs_unless_one_is_unknown():
    late = plan("late", msgspec.structs.replace(USED, reset_at=NOW + 9 * HOUR))
    unknown = plan("unknown", msgspec.structs.replace(USED, reset_at=None))
    known = facts(plan("soon", USED), late, unknown, key(is_enabled=False))
    assert pool(known, claude("late", "soon", "key")).empty.returns_at == NOW + HOUR
    assert pool(known, claude("late", "soon", "unknown")).empty.returns_at is None
    assert pool(known, claude("key")).empty.returns_at is None


# --- P9: what random facts seldom meet ----------------------------------------------------------------------------


def test_p9_models_that_are_judged_alike_keep_their_own_changes_of_tier():
    turn = NOW + HOUR
    prices = (price("turns", cost="0.5", end=turn), price("turns", cost="15", start=turn), price("stays", cost="0.5"))
    world = World(
        facts(key(), prices=prices, tiers={}), (claude("key", model="stays"), claude("key", model="turns")), NOW
    )
    assert ask(world, pool_id="auto/thrifty").valid_until == turn
    kept = Snapshot(world.facts)
    alone = {model: World(world.facts, (claude("key", model=model),), NOW) for model in ("turns", "stays")}
    assert ask_of(kept, alone["turns"], pool_id="auto/thrifty").valid_until == turn
    assert ask_of(kept, alone["stays"], pool_id="auto/thrifty").valid_until is None


def test_p9_categories_that_need_different_abilities_keep_their_own_changes():
    turn = NOW + HOUR
    prices = (
        price("x", capabilities=["vision", "reasoning"], end=turn),
        price("x", capabilities=["vision"], start=turn),
    )
    world = World(facts(key(), prices=prices, tiers={("claude", "x"): Tier.CHEAP}), (claude("key", model="x"),), NOW)
    kept = Snapshot(world.facts)
    for category, until in [("vision", None), ("reasoning", turn), ("vision", None)]:
        assert ask_of(kept, world, pool_id=f"auto/{category}:thrifty").valid_until == until


def test_p9_a_return_that_is_not_told_above_the_serving_rung_ends_no_answer():
    said = Window("5h", observed_at=NOW, status=ReadingStatus.EXHAUSTED, reset_at=NOW + HOUR)
    one = Connection("f", "acme", "apikey", windows=(said,))
    known = facts(one, breakers={"acme": NOW + 9 * HOUR})
    asked = (Candidate("claude", "x", "noauth"), Candidate("acme", "small", "f"))
    whole = pool(known, *asked, pool_id="auto/best-free")
    cut = pool(known, *asked, pool_id="auto/best-free", options=LOWEST)
    # The window's reset makes the return unknown; who is not told the return sees a change when the breaker closes.
    assert (only(whole).returns_at, whole.valid_until) == (NOW + 9 * HOUR, NOW + HOUR)
    assert (only(cut).returns_at, cut.valid_until) == (None, NOW + 9 * HOUR)


def test_p9_another_rank_of_a_stored_model_ends_an_answer_only_where_the_order_shows():
    turn = NOW + HOUR
    prices = (price("a", rank=1, end=turn), price("a", rank=9, start=turn), price("b", rank=5, provider="acme"))
    other = Connection("f", "acme", "apikey", windows=(msgspec.structs.replace(FRESH, unlimited=True),))
    apart = facts(key(), other, prices=prices, tiers={("claude", "a"): Tier.CHEAP, ("acme", "b"): Tier.PREMIUM})
    together = facts(key(), other, prices=prices, tiers={("claude", "a"): Tier.CHEAP, ("acme", "b"): Tier.CHEAP})
    assert stored(apart).valid_until is None
    assert stored(together).valid_until == turn
    assert [one.model for one in stored(together, at=turn).candidates] == ["b", "a"]
