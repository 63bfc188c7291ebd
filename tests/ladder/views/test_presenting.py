"""Words and rows of the ladder page, worked out from hand-made values."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest

from ladder.core.ids import POOL_IDS
from ladder.core.occupancy import BudgetView, Occupancy, PoolLine, RungOccupancy
from ladder.core.places import Place, State, WindowView
from ladder.core.values import Accounting, Empty, LadderSettings, Rung
from ladder.selectors.screen import ActingCooldown
from ladder.views.presenting.money import budget_words
from ladder.views.presenting.names import name_segment, own_labels
from ladder.views.presenting.places import Around, place_row
from ladder.views.presenting.rungs import steps
from ladder.views.presenting.sentence import exhausted_rungs, headline
from omniroute_admin.common.core.screen import Glance, text_of

NOW = datetime(2026, 8, 27, 8, 12, 40, tzinfo=UTC)
GLANCE = Glance(now=NOW, zone=ZoneInfo("Europe/Berlin"))
AROUND = Around(settings=LadderSettings(), glance=GLANCE)
MIDNIGHT = datetime(2026, 8, 30, 22, 0, tzinfo=UTC)


def a_window(left: str | None = "41", *, verdict: str = "usable", **changes: Any) -> WindowView:
    values: dict[str, Any] = {
        "window": "weekly",
        "verdict": verdict,
        "remaining_percent": None if left is None else Decimal(left),
        "unlimited": False,
        "status": "safe",
        "reset_at": NOW + timedelta(minutes=87),
        "observed_at": NOW - timedelta(seconds=22),
        "is_held": False,
        "is_muted": False,
        "is_reported": True,
        "model": None,
        "combine": "limit",
        "exit_cutoff_percent": None,
    }
    return WindowView(**(values | changes))


def a_place(rung: Rung = Rung.SUBSCRIPTION, state: str = "usable", **changes: Any) -> Place:
    window = changes.pop("window", a_window())
    values: dict[str, Any] = {
        "connection_id": "c1",
        "provider": "claude",
        "auth_type": "oauth",
        "billing": "subscription" if rung is Rung.SUBSCRIPTION else "metered",
        "overage": "hard-stop",
        "rung": rung.word,
        "rung_index": int(rung),
        "state": State(state),
        "code": None,
        "detail": "",
        "window": window,
        "returns_at": None,
        "may_bill_past_plan": False,
        "also_on": (),
        "windows": (window,) if window else (),
    }
    return Place(**(values | changes))


def a_budget(amount: str | None, *, spent: str = "0", held: str = "0") -> BudgetView:
    left = None if amount is None else max(Decimal(0), Decimal(amount) - Decimal(spent) - Decimal(held))
    amount_usd = None if amount is None else Decimal(amount)
    return BudgetView(
        amount_usd, Decimal(spent), Decimal(held), left, Accounting.COMPLETE, NOW, MIDNIGHT, "Europe/Berlin"
    )


def an_occupancy(
    *places: Place,
    budgets: dict[Rung, BudgetView] | None = None,
    serving: str | None = None,
    next_rung: str | None = None,
    plan_returns_at: datetime | None = None,
    plan_pairs: int = 0,
) -> Occupancy:
    kept = budgets or {}
    rungs = tuple(
        RungOccupancy(
            rung.word,
            int(rung),
            sum(1 for place in places if place.rung_index == rung and place.state == "usable"),
            sum(1 for place in places if place.rung_index == rung),
            {},
            kept.get(rung, a_budget(None)) if rung >= Rung.CHEAP else None,
        )
        for rung in Rung
    )
    empty = None if plan_pairs else Empty("no_usable_plan", "", plan_returns_at)
    pools = tuple(
        PoolLine(known.id, known.grouping, known.category, plan_pairs, plan_pairs, None, empty)
        for known in POOL_IDS.values()
    )
    return Occupancy("7", NOW, None, serving, next_rung, rungs, places, pools)


def row(place: Place, *, budget: BudgetView | None = None, around: Around = AROUND) -> Any:
    return place_row(place=place, rung=RungOccupancy("r", place.rung_index, 0, 1, {}, budget), around=around)


def test_the_sentence_is_that_of_the_rules() -> None:
    """SPEC 5, 1: the sentence on top, with the budget told in its own zone."""
    occupancy = an_occupancy(
        *(a_place(connection_id=f"c{n}") for n in range(3)),
        *(a_place(connection_id=f"d{n}", state="stale", code="quota_stale") for n in range(2)),
        a_place(Rung.CHEAP),
        budgets={Rung.CHEAP: a_budget("5", spent="3.65", held="0.15")},
        serving="subscription",
        next_rung="keyless",
        plan_pairs=3,
    )
    said = headline(occupancy=occupancy, glance=Glance(now=NOW, zone=ZoneInfo("UTC")))
    assert text_of(said.thrifty) == (
        "auto/thrifty serves from subscription (3 of 5 usable). Next: keyless. "
        "cheap has $1.20 of $5.00 left until Mon 00:00 Europe/Berlin."
    )
    assert text_of(said.subscription) == "auto/subscription serves from 3 plans."


def test_an_empty_plan_is_told_with_its_first_return() -> None:
    """P3: an empty plan is an answer."""
    occupancy = an_occupancy(plan_returns_at=NOW + timedelta(minutes=41, seconds=20))
    said = headline(occupancy=occupancy, glance=GLANCE)
    assert said.plan_is_empty
    assert said.plan_code == "no_usable_plan"
    assert text_of(said.subscription) == "auto/subscription is empty; first plan back 10:54 (in 41 min)."


def test_an_empty_plan_without_a_known_return_promises_none() -> None:
    said = headline(occupancy=an_occupancy(), glance=GLANCE)
    assert "no time is known" in text_of(said.subscription)


def test_a_ladder_without_candidates_promises_no_return() -> None:
    occupancy = an_occupancy(a_place(state="off", code="no_models"))
    pools = tuple(msgspec.structs.replace(line, empty=Empty("no_candidates", "", None)) for line in occupancy.pools)
    said = headline(occupancy=msgspec.structs.replace(occupancy, pools=pools), glance=GLANCE)
    assert text_of(said.thrifty).startswith("auto/thrifty is empty: it has no candidates.")


def test_an_installation_without_connections_says_how_to_begin() -> None:
    """P3: the words are those of the API's answer."""
    occupancy = an_occupancy()
    pools = tuple(
        msgspec.structs.replace(line, empty=Empty("no_candidates", "There is no candidate. Store connections.", None))
        for line in occupancy.pools
    )
    said = headline(occupancy=msgspec.structs.replace(occupancy, pools=pools), glance=GLANCE)
    assert text_of(said.thrifty) == (
        "auto/thrifty is empty: no connection is stored. There is no candidate. Store connections."
    )


def test_nothing_serving_is_told_as_empty() -> None:
    said = headline(occupancy=an_occupancy(), glance=GLANCE)
    assert text_of(said.thrifty).startswith("auto/thrifty is empty")
    assert said.rung_index is None


def test_a_plan_that_may_bill_is_not_counted_among_the_plans() -> None:
    """P2: only hard-stop plans are in the subscription grouping."""
    places = (a_place(), a_place(connection_id="c2", overage="meters-to-paid", may_bill_past_plan=True))
    said = headline(occupancy=an_occupancy(*places, serving="subscription", plan_pairs=1), glance=GLANCE)
    assert text_of(said.subscription) == "auto/subscription serves from 1 plan."


def test_the_next_plan_back_is_named() -> None:
    waiting = a_place(connection_id="c2", state="cooldown", code="cooldown", returns_at=NOW + timedelta(minutes=17))
    said = headline(occupancy=an_occupancy(a_place(), waiting, serving="subscription", plan_pairs=1), glance=GLANCE)
    assert text_of(said.subscription).endswith("; next plan back not before 10:29 (in 17 min): c2.")


UUID = "c94807a0-4990-4200-b3bb-a91bbe37892c"


@pytest.mark.parametrize(
    ("label", "said", "whole"),
    [
        ("", "c94807a0…", UUID),
        ("work seat", "work seat", f"claude/{UUID}"),
        ("w" * 90, "w" * 39 + "…", f"claude/{UUID}"),
        ("claude c94807a0…892c", "c94807a0…", UUID),
        (UUID, "c94807a0…", UUID),
    ],
)
def test_a_sentence_names_a_connection_by_its_label_else_by_a_short_id(label: str, said: str, whole: str) -> None:
    labels = own_labels({("claude", UUID): label})
    back = NOW + timedelta(minutes=17)
    waiting = a_place(connection_id=UUID, state="cooldown", code="cooldown", returns_at=back)
    occupancy = an_occupancy(a_place(), waiting, serving="subscription", plan_pairs=1)
    sentence = headline(occupancy=occupancy, glance=GLANCE, labels=labels).subscription
    assert text_of(sentence).endswith(f"(in 17 min): {said}.")
    around = msgspec.structs.replace(AROUND, labels=labels)
    lines = steps(occupancy=occupancy, around=around)[-1].lines
    assert text_of(lines[-1]) == f"{said} back not before 10:29 (in 17 min)"
    assert [each.whole for each in (*sentence, *lines[-1]) if each.whole] == [whole, whole]
    assert row(waiting, around=around).label == ("" if said == "c94807a0…" else label)


def test_a_short_id_is_said_whole() -> None:
    assert name_segment(provider="claude", connection_id="claude-main", labels={}).text == "claude-main"


@pytest.mark.parametrize(
    ("budget", "kind", "left"),
    [
        (a_budget(None, spent="3"), "unlimited", "no limit"),
        (a_budget("0"), "off", "off"),
        (a_budget("5", spent="5"), "spent", "$0.00 left"),
        (a_budget("5", spent="7"), "spent", "$0.00 left"),
        (a_budget("5", spent="1", held="4"), "spent", "$0.00 left"),
        (a_budget("5", spent="-1"), "left", "$6.00 left"),
    ],
)
def test_off_no_limit_and_an_amount_are_three_words(budget: BudgetView, kind: str, left: str) -> None:
    """M1, M2."""
    words = budget_words(budget, glance=GLANCE)
    assert (words.kind, words.left) == (kind, left)


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        (a_budget("0"), " premium is off."),
        (a_budget(None), " premium has no limit."),
        (a_budget("5", spent="5"), " premium has spent its $5.00 until Mon 00:00 Europe/Berlin."),
    ],
)
def test_the_sentence_tells_a_budget_in_words(budget: BudgetView, said: str) -> None:
    occupancy = an_occupancy(a_place(Rung.PREMIUM), budgets={Rung.PREMIUM: budget}, serving="premium")
    assert text_of(headline(occupancy=occupancy, glance=GLANCE).thrifty).endswith(said)


def test_money_on_hold_is_drawn_beside_what_is_left() -> None:
    bar = budget_words(a_budget("5", spent="3.65", held="0.15"), glance=GLANCE).bar
    assert bar is not None
    assert (bar.width, bar.hold) == ("24", "3")


def test_how_well_the_spend_is_known_is_told_with_it() -> None:
    """SPEC 4: a part of the spend may be estimated; without any event nobody has reported."""
    partial = msgspec.structs.replace(a_budget("5", spent="3.65", held="0.15"), accounting=Accounting.PARTIAL)
    none = msgspec.structs.replace(a_budget("9"), accounting=Accounting.NONE)
    budgets = {Rung.CHEAP: partial, Rung.PREMIUM: none}
    occupancy = an_occupancy(a_place(Rung.CHEAP), a_place(Rung.PREMIUM), budgets=budgets)
    premium, cheap, *_ = steps(occupancy=occupancy, around=AROUND)
    assert text_of(cheap.lines[1]) == "$0.15 on hold, spend partly estimated"
    assert text_of(premium.lines[1]) == "no spend reported"
    assert (cheap.bar.hold, cheap.bar.hatch, premium.bar.hatch) == ("3", "hatch-money", "hatch-money-4")
    assert budget_words(none).whole == "no spend reported, $9.00 of $9.00 left"
    without_limit = msgspec.structs.replace(none, amount_usd=None)
    assert budget_words(without_limit, glance=GLANCE).whole == "no spend reported since 10:12 Europe/Berlin, no limit"
    assert budget_words(partial, glance=GLANCE).whole == (
        "$3.65 spent, $0.15 on hold, spend partly estimated, $1.20 of $5.00 left until Mon 00:00 Europe/Berlin"
    )


def test_a_stale_number_is_told_as_what_it_was() -> None:
    """SPEC 5: stale looks different from low."""
    place = a_place(state="stale", code="quota_stale", window=a_window("35", verdict="unverified"))
    told = row(place)
    assert told.left == "was 35 % left"
    assert told.bar.kind == "stale"
    assert told.age_is_old
    assert told.why == "older than 180 s: tried by thrifty, out of subscription"


def test_a_stale_window_of_one_model_looks_stale_though_others_are_not_measured() -> None:
    """SPEC 5: stale looks different from low, also where the place itself is unverified."""
    old = a_window("40", verdict="unverified", model="opus", observed_at=NOW - timedelta(hours=3))
    told = row(a_place(state="unverified", code="quota_unverified", window=old))
    assert (told.left, told.bar.kind, told.age_is_old) == ("was 40 % left", "stale", True)
    fresh = a_window("40", verdict="exhausted", observed_at=NOW - timedelta(hours=3))
    told = row(a_place(state="exhausted", code="quota_exhausted", window=fresh))
    assert (told.left, told.bar.kind, told.age_is_old) == ("40 % left", "solid", False)


def test_a_low_number_is_told_as_what_it_is() -> None:
    told = row(a_place(state="held", code="held_for_reentry", window=a_window("4", verdict="held"), detail="why"))
    assert (told.left, told.bar.kind, told.bar.width, told.why) == ("4 % left", "solid", "4", "why")


def test_a_quota_return_is_told_as_not_before() -> None:
    """Q9: the plan still needs a fresh reading then."""
    back = NOW + timedelta(minutes=87)
    assert row(a_place(state="held", code="held_for_reentry", returns_at=back)).not_before
    assert not row(a_place(state="cooldown", code="cooldown", returns_at=back)).not_before
    assert not row(a_place()).not_before


def test_a_window_that_reset_unread_is_unknown_not_its_old_number() -> None:
    """Q1: such a reading describes a window that no longer exists."""
    window = a_window("3", verdict="unverified", reset_at=NOW - timedelta(minutes=12))
    told = row(a_place(state="pending", code="reset_pending", window=window))
    assert (told.left, told.bar.kind) == ("unknown", "dashed")
    assert told.why.startswith("was 3 % left")
    assert (told.returns.tick, told.returns.words) == ("ago", "12 min ago")


def test_unlimited_and_never_read_are_words() -> None:
    assert row(a_place(window=a_window(None, unlimited=True, reset_at=None))).left == "unlimited"
    told = row(a_place(Rung.KEYLESS, "unverified", window=None, code="quota_unverified"))
    assert (told.window, told.left, told.no_age, told.no_return) == ("no window", "unknown", "never", "no reset")


def test_a_paid_rung_shows_its_budget_and_asks_no_quota() -> None:
    """Q: quota is asked on rungs 0 to 2 only."""
    told = row(a_place(Rung.CHEAP), budget=a_budget("5", spent="3.65", held="0.15"))
    assert (told.window, told.left, told.age, told.bar) == ("rung budget", "$1.20 left", None, None)
    assert (told.returns.clock, told.returns_zone) == ("Mon 00:00", "Europe/Berlin")


def test_the_end_of_a_budget_names_its_zone_wherever_it_is_told() -> None:
    """M3: also where pages show another zone."""
    tokyo = msgspec.structs.replace(AROUND, glance=Glance(now=NOW, zone=ZoneInfo("Asia/Tokyo")))
    spent = a_budget("5", spent="5")
    place = a_place(Rung.CHEAP, "exhausted", code="budget_spent", returns_at=MIDNIGHT)
    told = row(place, budget=spent, around=tokyo)
    assert (told.returns.clock, told.returns_zone) == ("Mon 00:00", "Europe/Berlin")
    resting = a_place(Rung.CHEAP, "cooldown", code="cooldown", returns_at=NOW + timedelta(minutes=17))
    told = row(resting, budget=spent, around=tokyo)
    assert (told.returns.clock, told.returns_zone) == ("17:29", "")
    occupancy = an_occupancy(place, budgets={Rung.CHEAP: spent})
    lines = steps(occupancy=occupancy, around=tokyo)[1].lines
    assert [text_of(line) for line in lines] == ["$0.00 left of $5.00 · until Mon 00:00 Europe/Berlin"]


def test_the_marks_of_a_bar_are_the_window_s_own_cutoff_and_the_floor() -> None:
    """Q4, Q7: the floor is max(re-entry, exit)."""
    assert row(a_place()).bar.marks == ("2", "5")
    assert row(a_place(window=a_window(exit_cutoff_percent=Decimal(20)))).bar.marks == ("20",)


def test_a_cooldown_shows_both_instants_and_who_set_it() -> None:
    """C2."""
    cooldown = ActingCooldown("quota", NOW + timedelta(hours=3), NOW + timedelta(minutes=17), "router-1")
    around = Around(settings=LadderSettings(), glance=GLANCE, cooldowns={("claude", "c1"): (cooldown,)})
    told = row(a_place(state="cooldown", code="cooldown"), around=around)
    assert told.why == "quota: asked until 13:12, clamped to 10:29, set by router-1"


def acting(*cooldowns: ActingCooldown) -> Around:
    return msgspec.structs.replace(AROUND, cooldowns={("claude", "c1"): cooldowns})


def test_of_mixed_cooldowns_each_is_told_with_its_own_end() -> None:
    """C3: one per model or for all; that of every model acts on both places, the other on its model only."""
    soon, later = NOW + timedelta(minutes=17), NOW + timedelta(hours=3)
    whole = ActingCooldown("quota", soon, soon, "")
    longer = ActingCooldown("rate_limit", later, later, "", "opus")
    shorter = ActingCooldown("rate_limit", NOW + timedelta(minutes=5), NOW + timedelta(minutes=5), "", "haiku")
    around = acting(whole, shorter, longer)
    for rung in (Rung.CHEAP, Rung.PREMIUM):
        told = row(a_place(rung, "cooldown", code="cooldown"), budget=a_budget(None), around=around)
        assert told.why == "quota: until 10:29 · rate_limit for opus only: until 13:12"
    assert row(a_place(), around=acting(longer)).why == "rate_limit for opus only: until 13:12"
    many = acting(*(ActingCooldown("ban", None, None, "", f"m{n}") for n in range(5)))
    assert row(a_place(state="cooldown", code="cooldown"), around=many).why == (
        "ban for m0 only: until cleared · ban for m1 only: until cleared · ban for m2 only: until cleared"
        " · and 2 models more"
    )


def test_a_cooldown_without_an_end_lasts_until_cleared() -> None:
    around = Around(
        settings=LadderSettings(), glance=GLANCE, cooldowns={("claude", "c1"): (ActingCooldown("ban", None, None, ""),)}
    )
    assert row(a_place(state="cooldown", code="cooldown"), around=around).why == "ban: until cleared"


def test_a_rung_is_exhausted_only_where_nobody_on_it_would_be_tried() -> None:
    """P4: unverified is tried; a rung that is off is not exhausted; an empty one neither."""
    assert exhausted_rungs(an_occupancy()) == 0
    assert exhausted_rungs(an_occupancy(a_place(state="exhausted"))) == 1
    assert exhausted_rungs(an_occupancy(a_place(state="exhausted"), a_place(state="stale"))) == 0
    assert exhausted_rungs(an_occupancy(a_place(Rung.PREMIUM, "off"))) == 0


def test_the_ladder_is_drawn_from_the_top_with_rung_0_at_the_foot() -> None:
    drawn = steps(occupancy=an_occupancy(), around=AROUND)
    assert [step.rung_index for step in drawn] == [4, 3, 2, 1, 0]


def test_many_places_are_counted_by_state_on_the_strip() -> None:
    places = [a_place(connection_id=f"c{n}") for n in range(20)] + [a_place(connection_id="d", state="held")]
    foot = steps(occupancy=an_occupancy(*places), around=AROUND)[-1]
    assert foot.strip_is_counts
    assert [(item.state.key, item.count) for item in foot.strip] == [("usable", 20), ("held", 1)]
