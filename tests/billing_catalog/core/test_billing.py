"""B: billing is a fact of the connection, not of the model."""

import pytest

from billing_catalog.core.billing import classify, index_catalog
from billing_catalog.core.values import Billing, CatalogRow, Matched, Overage, Tier, Verdict
from ladder.core.judge import rung_of
from ladder.core.values import Rung

PLAN = CatalogRow("claude", Billing.SUBSCRIPTION, Overage.HARD_STOP, "oauth")
KEY = CatalogRow("claude", Billing.METERED, Overage.METERS_TO_PAID, "apikey")
WIDE = CatalogRow("claude", Billing.METERED, Overage.UNKNOWN)
UNCURATED = Verdict(Billing.UNKNOWN, Overage.UNKNOWN, Matched.NONE)


def ask(*rows, provider="claude", connection_id="c1", auth_type="oauth", override=None):
    return classify(
        catalog=index_catalog(rows),
        provider=provider,
        connection_id=connection_id,
        auth_type=auth_type,
        overage_override=override,
    )


@pytest.mark.parametrize("auth_type", ["none", "oauth", None])
def test_b1_the_keyless_path_is_keyless_whatever_the_catalogue_says(auth_type):
    rows = [PLAN, WIDE, CatalogRow("claude", Billing.METERED, Overage.METERS_TO_PAID, "none")]
    verdict = ask(*rows, connection_id="noauth", auth_type=auth_type)
    assert verdict == Verdict(Billing.KEYLESS, Overage.HARD_STOP, Matched.NOAUTH)


def test_b1_the_reserved_id_is_spelt_exactly():
    assert ask(connection_id="NOAUTH") == UNCURATED


@pytest.mark.parametrize("rows", [(PLAN, KEY, WIDE), (WIDE, KEY, PLAN)])
def test_b2_the_row_of_the_auth_type_comes_before_the_provider_wide_one(rows):
    assert ask(*rows) == Verdict(Billing.SUBSCRIPTION, Overage.HARD_STOP, Matched.PROVIDER_AUTH_TYPE)
    assert ask(*rows, auth_type="apikey").billing is Billing.METERED
    assert ask(*rows, auth_type="cookie") == Verdict(Billing.METERED, Overage.UNKNOWN, Matched.PROVIDER)


def test_b2_without_a_row_the_class_is_unknown():
    assert ask() == UNCURATED
    assert ask(PLAN, auth_type="apikey") == UNCURATED
    assert ask(PLAN, WIDE, provider="codex") == UNCURATED


@pytest.mark.parametrize("auth_type", [None, ""])
def test_b3_a_connection_without_auth_type_matches_only_a_provider_wide_row(auth_type):
    assert ask(PLAN, KEY, auth_type=auth_type) == UNCURATED
    assert ask(PLAN, WIDE, auth_type=auth_type).matched is Matched.PROVIDER


@pytest.mark.parametrize("override", list(Overage))
def test_b4_an_override_replaces_the_overage_and_nothing_else(override):
    assert ask(PLAN, override=override) == Verdict(
        Billing.SUBSCRIPTION, override, Matched.PROVIDER_AUTH_TYPE, overridden=True
    )


def test_b4_without_an_override_nothing_is_overridden():
    assert not ask(PLAN).overridden


@pytest.mark.parametrize("billing", [Billing.METERED, Billing.UNKNOWN])
@pytest.mark.parametrize(("tier", "rung"), [("free", Rung.FREE), ("cheap", Rung.CHEAP), ("premium", Rung.PREMIUM)])
def test_b5_and_g_the_uncurated_stands_on_the_rung_of_the_tier_like_metered(billing, tier, rung):
    assert rung_of(billing=billing, tier=Tier(tier)) is rung


@pytest.mark.parametrize("tier", list(Tier))
def test_g_subscription_and_keyless_stand_on_their_own_rungs_whatever_the_tier(tier):
    assert rung_of(billing=Billing.SUBSCRIPTION, tier=tier) is Rung.SUBSCRIPTION
    assert rung_of(billing=Billing.KEYLESS, tier=tier) is Rung.KEYLESS


def test_of_two_rows_for_the_same_the_first_wins():
    assert ask(PLAN, CatalogRow("claude", Billing.METERED, Overage.UNKNOWN, "oauth")).billing is Billing.SUBSCRIPTION
