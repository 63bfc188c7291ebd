"""What a change would move (SPEC 5, 3): tables, and the property that it is what evaluate answers."""

from decimal import Decimal

import msgspec
import pytest
from hypothesis import given

from billing_catalog.core.values import Billing, CatalogRow, Overage, Thresholds, Tier, TierRule
from ladder.core.ids import POOL_IDS
from ladder.core.moves import CatalogEdit, Edits, TierEdit, apply_edits, find_moves, find_pool_moves
from ladder.core.occupancy import build_occupancy
from ladder.core.snapshot import Snapshot
from ladder.core.values import Budget, PoolOptions, Rung
from ladder.core.whatif import find_changes
from tests.ladder.core.asking import NOW
from tests.ladder.core.small_facts import FRESH, facts, key, plan, price
from tests.ladder.core.strategies import PROPERTY, all_facts, moments

MODELS = (price("opus-4"), price("sonnet-4", capabilities=("vision",)))


def known(*connections, **fields):
    return facts(*connections, **{"prices": MODELS, "tiers": {}, **fields})


def moved(before, after, at=NOW):
    old, new = (build_occupancy(snapshot=Snapshot(each), now=at) for each in (before, after))
    return {
        (move.connection_id, move.before and move.before.rung, move.before and move.before.code): (
            move.after and move.after.rung,
            move.after and move.after.code,
        )
        for move in find_moves(before=old, after=new)
    }


def pools(before, after, at=NOW):
    return {one.id: one for one in find_pool_moves(before=Snapshot(before), after=Snapshot(after), now=at)}


def told(tallies):
    return {one.connection_id: one.pairs for one in tallies}


def test_nothing_moves_where_nothing_differs():
    same = known(plan(), key())
    assert moved(same, same) == {}
    assert not any(one.is_changed for one in pools(same, same).values())


def test_an_exit_cutoff_above_the_reading_moves_its_place_and_its_pairs_out():
    before = known(plan(), key())
    after = apply_edits(
        facts=before,
        edits=Edits(settings=msgspec.structs.replace(before.settings, exit_cutoff_percent=Decimal(60))),
    )
    assert moved(before, after) == {("plan", "subscription", None): ("subscription", "quota_exhausted")}
    thrifty = pools(before, after)["auto/thrifty"]
    assert (thrifty.before, thrifty.after) == (4, 2)
    assert (told(thrifty.came), told(thrifty.went), told(thrifty.shifted)) == ({}, {"plan": 2}, {})


def test_a_category_counts_only_the_models_that_it_holds():
    before = known(plan())
    after = apply_edits(facts=before, edits=Edits(connections={("claude", "plan"): {"is_enabled": False}}))
    assert told(pools(before, after)["auto/vision:thrifty"].went) == {"plan": 1}
    assert told(pools(before, after)["auto/coding:thrifty"].went) == {"plan": 2}


def test_a_catalogue_edit_moves_a_connection_from_one_rung_to_another():
    before = known(plan())
    row = CatalogRow("claude", Billing.METERED, Overage.METERS_TO_PAID, "oauth")
    after = apply_edits(facts=before, edits=Edits(catalog=(CatalogEdit(("claude", "oauth"), row),)))
    assert moved(before, after) == {("plan", "subscription", None): ("premium", None)}
    changed = pools(before, after)
    assert told(changed["auto/thrifty"].shifted) == {"plan": 2}
    assert told(changed["auto/subscription"].went) == {"plan": 2}


def test_a_deleted_entry_leaves_its_connections_uncurated():
    before = known(plan())
    after = apply_edits(facts=before, edits=Edits(catalog=(CatalogEdit(("claude", "oauth"), None),)))
    (place,) = build_occupancy(snapshot=Snapshot(after), now=NOW).places
    assert (place.billing, place.rung) == ("unknown", "premium")


def test_an_added_entry_stands_in_the_place_of_one_for_the_same():
    before = known(plan())
    row = CatalogRow("claude", Billing.METERED, Overage.UNKNOWN, "oauth")
    after = apply_edits(facts=before, edits=Edits(catalog=(CatalogEdit(None, row),)))
    assert [each for each in after.catalog if (each.provider, each.auth_type) == ("claude", "oauth")] == [row]


def test_an_overage_override_marks_a_place_and_takes_it_out_of_the_plan_pools():
    before = known(plan())
    after = apply_edits(
        facts=before, edits=Edits(connections={("claude", "plan"): {"overage_override": Overage.METERS_TO_PAID}})
    )
    assert moved(before, after) == {("plan", "subscription", None): ("subscription", None)}
    changed = pools(before, after)
    assert told(changed["auto/subscription"].went) == {"plan": 2}
    assert not changed["auto/thrifty"].is_changed


@pytest.mark.parametrize(
    ("edits", "rung"),
    [
        (Edits(thresholds=Thresholds(Decimal(0), Decimal(20))), "cheap"),
        (Edits(tier_rules=(TierEdit(None, TierRule("claude", Tier.FREE)),)), "free"),
        (Edits(free_providers={"claude": True}), "free"),
    ],
)
def test_what_makes_a_model_cheaper_moves_the_metered_places_down(edits, rung):
    before = known(key(), prices=(price("opus-4", cost="15"),))
    assert set(moved(before, apply_edits(facts=before, edits=edits)).values()) == {
        (rung, "quota_unverified" if rung == "free" else None)
    }


def test_an_edited_tier_override_keeps_its_place_among_the_others():
    first, second = TierRule("claude", Tier.CHEAP, "opus*"), TierRule("claude", Tier.PREMIUM, "*")
    before = known(key(), tier_rules=(first, second))
    edited = TierRule("claude", Tier.FREE, "opus*")
    assert apply_edits(facts=before, edits=Edits(tier_rules=(TierEdit(first, edited),))).tier_rules == (edited, second)
    assert apply_edits(facts=before, edits=Edits(tier_rules=(TierEdit(first, None),))).tier_rules == (second,)


def test_a_provider_that_is_free_no_more_is_taken_from_the_list():
    before = known(free_providers=frozenset({"acme", "claude"}))
    assert apply_edits(facts=before, edits=Edits(free_providers={"acme": False})).free_providers == {"claude"}


def test_a_connection_can_be_added_and_deleted():
    before = known(plan())
    added = apply_edits(
        facts=before, edits=Edits(connections={("claude", "new"): {"auth_type": "oauth", "windows": (FRESH,)}})
    )
    assert moved(before, added) == {("new", None, None): ("subscription", None)}
    assert moved(before, apply_edits(facts=before, edits=Edits(connections={("claude", "plan"): None}))) == {
        ("plan", "subscription", None): (None, None)
    }


def test_a_rung_that_is_put_off_takes_its_places_with_it():
    before = known(key(), tiers={("claude", "opus-4"): Tier.CHEAP, ("claude", "sonnet-4"): Tier.PREMIUM})
    after = msgspec.structs.replace(before, budgets={Rung.CHEAP: Budget(Decimal(0))})
    assert moved(before, after) == {("key", "cheap", None): ("cheap", "rung_disabled")}
    assert told(pools(before, after)["auto/thrifty"].went) == {"key": 1}


@given(before=all_facts(), after=all_facts(), now=moments)
@PROPERTY
def test_pool_moves_are_what_evaluate_answers_for_every_id(before, after, now):
    """The difference of each pool, told in short, is the one that evaluate tells pair by pair (SPEC 4)."""
    moves = pools(before, after, now)
    assert list(moves) == list(POOL_IDS)
    for pool_id, one in moves.items():
        changes = find_changes(
            before=Snapshot(before),
            after=Snapshot(after),
            pool_id=POOL_IDS[pool_id],
            candidates=None,
            options=PoolOptions(),
            now=now,
        )
        stands = [(change, _rung(change.before), _rung(change.after)) for change in changes]
        assert _pairs(one.came) == _of(change for change, was, becomes in stands if was is None and becomes)
        assert _pairs(one.went) == _of(change for change, was, becomes in stands if was and becomes is None)
        assert _pairs(one.shifted) == _of(
            change for change, was, becomes in stands if was and becomes and was != becomes
        )
        assert one.after - one.before == sum(_pairs(one.came).values()) - sum(_pairs(one.went).values())


def _rung(standing):
    return standing.rung if standing is not None and standing.is_in else None


def _pairs(tallies):
    return {(one.provider, one.connection_id): one.pairs for one in tallies}


def _of(changes):
    counts = {}
    for change in changes:
        pair = change.provider, change.connection_id
        counts[pair] = counts.get(pair, 0) + 1
    return counts


@given(before=all_facts(), after=all_facts(), now=moments)
@PROPERTY
def test_places_that_are_not_among_the_moves_stand_as_they_did(before, after, now):
    old, new = (build_occupancy(snapshot=Snapshot(each), now=now) for each in (before, after))
    moves = find_moves(before=old, after=new)
    gone = [move.before for move in moves if move.before is not None]
    come = [move.after for move in moves if move.after is not None]

    def standing(places):
        return sorted(
            (one.provider, one.connection_id, one.rung, one.state, str(one.code), one.may_bill_past_plan)
            for one in places
        )

    assert standing(one for one in old.places if one not in gone) == standing(
        one for one in new.places if one not in come
    )
    assert all(move.before != move.after for move in moves)


@given(facts=all_facts(), now=moments)
@PROPERTY
def test_a_momentary_snapshot_says_the_same_but_for_when_it_changes(facts, now):
    """P9 is all that it leaves out: what would be is compared with what is at one instant."""
    lasting, momentary = Snapshot(facts), Snapshot(facts, is_momentary=True)
    was, becomes = (build_occupancy(snapshot=each, now=now) for each in (lasting, momentary))
    assert msgspec.structs.replace(was, valid_until=None) == msgspec.structs.replace(becomes, valid_until=None)
    assert not any(one.is_changed for one in find_pool_moves(before=lasting, after=momentary, now=now))
