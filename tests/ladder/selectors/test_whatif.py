"""What would move, over stored rows: what is derived from them is derived anew (SPEC 5, 3; Q5, M4)."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection as database
from django.test.utils import CaptureQueriesContext

from billing_catalog.core.values import Billing, CatalogRow, Overage
from billing_catalog.models import BillingEntry
from ladder.core.ids import POOL_IDS
from ladder.core.moves import CatalogEdit, Edits
from ladder.core.occupancy import build_occupancy
from ladder.core.values import LadderSettings, Period, PoolOptions, Rung, Weekday
from ladder.core.whatif import Given
from ladder.models import RungBudget
from ladder.selectors.evaluate import evaluate
from ladder.selectors.settings import BudgetSettings
from ladder.selectors.state import get_snapshot
from ladder.selectors.whatif import work_out
from ladder.services.settings import BudgetChanges, BudgetsChanges, SettingsChanges, update_settings
from tests.browser.fleet import Window, make_connection, make_fleet
from tests.factories import SpendHoldFactory, UsageEventFactory
from tests.factories_ladder import NOW, OPERATOR

pytestmark = pytest.mark.django_db

HELD_TEAM = ("claude-team", "held_for_reentry", None)


@pytest.fixture
def fleet(db):
    make_fleet(now=NOW)


NOTHING = Edits()


def would(edits=NOTHING, **options):
    stored = get_snapshot(now=NOW)
    return work_out(stored=stored, occupancy=build_occupancy(snapshot=stored, now=NOW), edits=edits, now=NOW, **options)


def tuned(**fields):
    return Edits(settings=LadderSettings(**fields))


def moves(answer):
    return {(one.connection_id, one.before and one.before.code, one.after and one.after.code) for one in answer.moves}


def budget(amount, period=Period.DAILY, week_starts_on=Weekday.MONDAY, zone="UTC"):
    return BudgetSettings(None if amount is None else Decimal(amount), period, week_starts_on, zone)


def spend(amount, at, rung="cheap"):
    UsageEventFactory(rung=rung, booked_cost=Decimal(amount), occurred_at=at)


def test_no_change_moves_nothing(fleet):
    answer = would()
    assert answer.moves == ()
    assert not any(pool.is_changed for pool in answer.pools)


def test_a_lower_floor_lets_a_held_connection_in_by_its_readings_not_by_a_record(fleet):
    """Q5: held at 4 %, out at 1 % an hour ago; above a floor of 3 % it would be in."""
    assert moves(would(tuned(reentry_min_remaining_percent=Decimal(3)))) == {HELD_TEAM}


def test_a_lower_exit_cutoff_forgets_a_fall_that_was_none_under_it(fleet):
    """Q5: under a cutoff of 0.5 % the reading of 1 % lies in the band, so it decides nothing."""
    assert moves(would(tuned(exit_cutoff_percent=Decimal("0.5")))) == {HELD_TEAM}


def test_a_longer_age_takes_a_stale_reading_as_fresh(fleet):
    assert moves(would(tuned(max_reading_age_seconds=3600))) == {("codex-ops", "quota_stale", None)}


@pytest.mark.parametrize("amount", ["0", "3", None])
def test_another_amount_keeps_window_and_usage(fleet, amount):
    """M4: the amount alone changes; M1: zero is off, none is no limit."""
    spend("3", NOW - timedelta(hours=1))
    answer = would(budgets={Rung.CHEAP: budget(amount, Period.WEEKLY, zone="Europe/Berlin")})
    code = {"0": "rung_disabled", "3": "budget_spent", None: None}[amount]
    assert {(one.connection_id, one.after.code) for one in answer.moves} == (
        {("ds-api", code), ("or-main", code)} if code else set()
    )
    assert answer.budgets[Rung.CHEAP].spent_usd == 3


def test_another_period_has_the_usage_that_happened_in_it(fleet):
    """M4: NOW is a Saturday; what was spent on Monday is of the week and not of the day."""
    spend("5", NOW - timedelta(days=5))
    assert {one.code for one in would().before.places if one.rung == "cheap"} == {"budget_spent"}
    answer = would(budgets={Rung.CHEAP: budget("5")})
    assert moves(answer) == {("ds-api", "budget_spent", None), ("or-main", "budget_spent", None)}
    assert (answer.budgets[Rung.CHEAP].spent_usd, answer.budgets[Rung.CHEAP].zone) == (0, "UTC")


def test_a_reset_counts_from_now_and_keeps_what_is_on_hold(fleet):
    """M9, M2."""
    spend("5", NOW - timedelta(hours=1))
    SpendHoldFactory(amount_usd=Decimal(1))
    answer = would(resets=[Rung.CHEAP])
    assert moves(answer) == {("ds-api", "budget_spent", None), ("or-main", "budget_spent", None)}
    cheap = answer.budgets[Rung.CHEAP]
    assert (cheap.spent_usd, cheap.window_start, len(cheap.holds)) == (0, NOW, 1)


def test_spend_that_moved_no_revision_counts_all_the_same(fleet):
    """SPEC 3: the prepared snapshot need only be exact for the budget it has."""
    get_snapshot(now=NOW)
    spend("2", NOW - timedelta(hours=1))
    answer = would(budgets={Rung.CHEAP: budget("2", Period.WEEKLY, zone="Europe/Berlin")})
    assert {one.after.code for one in answer.moves} == {"budget_spent"}


CLAUDE = ("claude", "oauth")
EDITS = [
    tuned(exit_cutoff_percent=Decimal(30), reentry_min_remaining_percent=Decimal(50)),
    tuned(exit_cutoff_percent=Decimal(0), reentry_min_remaining_percent=Decimal(0), max_reading_age_seconds=3600),
    tuned(max_reading_age_seconds=10),
    Edits(catalog=(CatalogEdit(CLAUDE, CatalogRow("claude", Billing.METERED, Overage.UNKNOWN, "oauth")),)),
    Edits(catalog=(CatalogEdit(CLAUDE, None),)),
    Edits(catalog=(CatalogEdit(None, CatalogRow("kiro", Billing.SUBSCRIPTION, Overage.HARD_STOP)),)),
    Edits(connections={("codex", "codex-plus"): {"overage_override": Overage.UNKNOWN}}),
]


@pytest.mark.parametrize("edits", EDITS)
@pytest.mark.parametrize("amount", ["5", "0", "0.5"])
def test_the_difference_of_every_pool_is_that_of_evaluate(fleet, edits, amount):
    """SPEC 5, 3: from the same evaluate; asked with what the edits come to, it names the same pairs."""
    spend("1", NOW - timedelta(hours=1))
    stored = get_snapshot(now=NOW)
    answer = would(edits, budgets={Rung.CHEAP: budget(amount, Period.WEEKLY, zone="Europe/Berlin")})
    for move in answer.pools:
        _, changes = evaluate(
            stored=stored,
            given=given_by(edits, stored.facts, amount),
            is_full=False,
            pool_id=POOL_IDS[move.id],
            candidates=None,
            options=PoolOptions(),
            now=NOW,
        )
        come = [one.connection_id for one in changes if not is_in(one.before) and is_in(one.after)]
        gone = [one.connection_id for one in changes if is_in(one.before) and not is_in(one.after)]
        assert sorted(come) == sorted(listed(move.came))
        assert sorted(gone) == sorted(listed(move.went))


def is_in(standing):
    return standing is not None and standing.is_in


def listed(tallies):
    return [one.connection_id for one in tallies for _ in range(one.pairs)]


def given_by(edits, facts, amount):
    catalog, connections = None, None
    if edits.catalog:
        (edit,) = edits.catalog
        kept = tuple(row for row in facts.catalog if (row.provider, row.auth_type) != edit.old)
        catalog = kept + ((edit.new,) if edit.new else ())
    if edits.connections:
        ((key, fields),) = edits.connections.items()
        connections = tuple(
            type(one)(**{name: getattr(one, name) for name in one.__struct_fields__} | fields)
            if (one.provider, one.connection_id) == key
            else one
            for one in facts.connections
        )
    return Given(
        settings=edits.settings,
        catalog=catalog,
        connections=connections,
        budget_usd={Rung.CHEAP: Decimal(amount)},
    )


def test_what_was_previewed_is_what_saving_brings(fleet):
    """The ladder after saving is, place by place, the one that was shown before."""
    spend("3", NOW - timedelta(days=5))
    answer = would(
        tuned(exit_cutoff_percent=Decimal(25), reentry_min_remaining_percent=Decimal(45), max_reading_age_seconds=60),
        budgets={Rung.CHEAP: budget("2", Period.MONTHLY, zone="Asia/Tokyo")},
    )
    cheap = BudgetChanges(amount_usd=Decimal(2), period=Period.MONTHLY, zone="Asia/Tokyo")
    changes = SettingsChanges(
        exit_cutoff_percent=Decimal(25),
        reentry_min_remaining_percent=Decimal(45),
        max_reading_age_seconds=60,
        rung_budgets=BudgetsChanges(cheap=cheap),
    )
    update_settings(changes=changes, actor=OPERATOR, reason="tried", now=NOW)
    saved = build_occupancy(snapshot=get_snapshot(now=NOW), now=NOW)
    assert saved.places == answer.after.places
    assert (saved.rungs, saved.pools) == (answer.after.rungs, answer.after.pools)


def test_nothing_is_stored(fleet):
    before = list(RungBudget.objects.values()), list(BillingEntry.objects.values())
    would(EDITS[3], budgets={Rung.CHEAP: budget("1")}, resets=[Rung.CHEAP])
    assert (list(RungBudget.objects.values()), list(BillingEntry.objects.values())) == before


def test_the_number_of_queries_does_not_grow_with_the_fleet(fleet):
    def queries():
        get_snapshot(now=NOW)
        with CaptureQueriesContext(database) as asked:
            would(EDITS[0], budgets={Rung.CHEAP: budget("1")})
        return len(asked)

    small = queries()
    for number in range(60):
        make_connection("claude", f"more-{number}", "oauth", (Window("5h", "50", 87, 22),), now=NOW)
    assert queries() == small
