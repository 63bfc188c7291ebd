"""Every case of the single rules with a known answer, on the pure functions.

No case is skipped: where this product refuses an input at the door (names in another case, duplicate rows, a number
out of range), the case is put to the pure rule as the door would have handed it on, or as it is.
"""

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from billing_catalog.core.billing import classify, index_catalog
from billing_catalog.core.tiers import classify_tier, index_tiers
from billing_catalog.core.values import Billing, CatalogRow, Overage, Thresholds, Tier, TierRule
from ladder.core.cooldown import clamp, is_clamped
from ladder.core.money import is_off, is_spent
from ladder.core.quota import judge_window
from ladder.core.reasons import Code
from ladder.core.values import Budget, CooldownCause, LadderSettings, QuotaVerdict, ReadingStatus, Window
from tests.shared import SHARED, needs_shared

pytestmark = needs_shared
MILLISECOND = timedelta(milliseconds=1)
LONG_AGO = datetime(1, 1, 1, tzinfo=UTC)


def _cases(rule: str) -> list[Any]:
    if SHARED is None:
        return []
    rules = json.loads((SHARED / "vectors" / "rules.json").read_text(), parse_float=Decimal)
    return [pytest.param(case, id=case["id"]) for case in rules[rule]]


def _instant(text: str | None) -> datetime | None:
    """Read an instant; one that cannot be read is none."""
    try:
        found = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return found.replace(tzinfo=found.tzinfo or UTC).astimezone(UTC)


def _decimal(number: int | Decimal | None) -> Decimal | None:
    return None if number is None else Decimal(number)


def _name(text: str | None) -> str:
    """Spell a name as the door does (SPEC 1)."""
    return (text or "").strip().lower()


def _settings(options: dict[str, Any]) -> LadderSettings:
    default = LadderSettings()
    return LadderSettings(
        _decimal(options.get("exitCutoffPercent", default.exit_cutoff_percent)),
        _decimal(options.get("reentryMinRemainingPercent", default.reentry_min_remaining_percent)),
        options["maxStateAgeMs"] / 1000,
    )


def _window(state: dict[str, Any] | None, *, held: bool) -> Window:
    """Say a state as a window: without one there is no reading; read at no known instant it is older than any age."""
    if state is None:
        return Window("5h")
    return Window(
        "5h",
        observed_at=_instant(state["checkedAt"]) or LONG_AGO,
        remaining_percent=_decimal(state["remainingFreeAllowance"]),
        status=ReadingStatus(state["status"].lower()),
        held=held,
    )


@pytest.mark.parametrize("case", _cases("isQuotaUsable"))
def test_a_window_is_usable_where_q2_to_q4_say_so(case):
    options = case["options"]
    window = _window(case["state"], held=case["hasBeenExhausted"])
    verdict = judge_window(window=window, settings=_settings(options), now=_instant(options["now"])).verdict
    admitted = [QuotaVerdict.USABLE] + [QuotaVerdict.UNVERIFIED] * options["admitUnknownQuota"]
    assert (verdict in admitted) == case["expected"]


@pytest.mark.parametrize("case", _cases("clampCooldownToReset"))
def test_a_cooldown_is_clamped_as_c1_says(case):
    now = _instant(case["now"])
    until = clamp(until=now + case["cooldownMs"] * MILLISECOND, reset_at=_instant(case["resetAt"]), now=now)
    assert (until - now) / MILLISECOND == case["expected"]


@pytest.mark.parametrize("case", _cases("isStateStaleForReset"))
def test_a_reading_from_before_the_reset_is_unverified_as_q1_says(case):
    state, now = case["state"], _instant(case["now"])
    reset_at = _instant(state["resetAt"]) if state else None
    window = Window("5h", observed_at=now if state else None, remaining_percent=Decimal(50), reset_at=reset_at)
    judged = judge_window(window=window, settings=LadderSettings(), now=now)
    assert (judged.code is Code.RESET_PENDING) == case["expected"]


@pytest.mark.parametrize("case", _cases("classifyConnectionBilling"))
def test_a_connection_is_classified_as_b1_to_b3_say(case):
    rows = [
        CatalogRow(
            _name(row["provider"]), Billing(row["billing"]), Overage(row["overage"]), _name(row.get("authType")) or None
        )
        for row in case["catalog"]
    ]
    asked = case["connection"]
    verdict = classify(
        catalog=index_catalog(rows),
        provider=_name(asked["provider"]),
        connection_id=asked["connectionId"],
        auth_type=_name(asked.get("authType")) or None,
    )
    assert {
        "billing": verdict.billing.value,
        "overage": verdict.overage.value,
        "planIncluded": is_clamped(billing=verdict.billing, cause=CooldownCause.QUOTA),
        "overageSafe": verdict.overage is Overage.HARD_STOP,
    } == case["expected"]


@pytest.mark.parametrize("case", _cases("isRungBudgetExhausted"))
def test_a_budget_closes_its_rung_as_m1_and_m2_say(case):
    amounts, spends = case.get("rungBudgetUsd") or {}, case.get("rungSpendUsd") or {}
    budget = Budget(
        amount_usd=_decimal(amounts.get(case["rung"])),
        spent_usd=_decimal(spends.get(case["rung"])),  # not said: no accounting
    )
    now = datetime(2026, 8, 22, 12, 0, tzinfo=UTC)
    assert (is_off(budget) or is_spent(budget=budget, at=now)) == case["expected"]


@pytest.mark.parametrize("case", _cases("classifyTier"))
def test_a_model_has_the_tier_that_t_says(case):
    config, price = case["config"], case["price"] or {}
    wide = [TierRule(_name(rule["provider"]), Tier(rule["tier"])) for rule in config["providerOverrides"]]
    named = [
        TierRule(_name(rule["provider"]), Tier(rule["tier"]), rule["modelPattern"]) for rule in config["modelOverrides"]
    ]
    index = index_tiers(
        rules=[*wide, *named],
        free_providers=frozenset(map(_name, config["freeProviders"])),
        seat_sellers=frozenset(),
        thresholds=Thresholds(
            _decimal(config["defaults"]["freeThreshold"]), _decimal(config["defaults"]["cheapThreshold"])
        ),
    )
    cost = Decimal(0) if price.get("isFree") else _decimal(price.get("inputCostPer1M"))
    tier = classify_tier(index=index, provider=_name(case["provider"]), model=case["model"], input_usd_per_million=cost)
    assert tier.value == case["expected"]
