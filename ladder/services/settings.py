"""Change the settings, merged per field and per rung (SPEC 4), and take them over in OmniRoute's form (SPEC 2)."""

from collections.abc import Callable, Iterator
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import Annotated, Any
from zoneinfo import available_timezones

import msgspec
from django.db import models
from msgspec import UNSET, Meta, UnsetType

from billing_catalog.core.values import Thresholds
from billing_catalog.models import TierThresholds
from ladder.core.values import Period, Weekday
from ladder.mapping import rung_named, to_settings
from ladder.models import LadderSettings, RungBudget
from ladder.selectors.settings import StoredSettings, read_stored_settings
from ladder.services.budgets import read_past
from ladder.services.trail import remember_budgets, remember_settings, remember_thresholds
from omniroute_admin.common.bodies import check_meta, decimal_meta
from omniroute_admin.common.errors import BadRequest, FieldError
from omniroute_admin.common.history import LONGEST_REASON, Actor, stamp
from omniroute_admin.common.services.revision import deciding_write

_NO_ZONES = frozenset({"localtime", "Factory", "posixrules"})
"""What stands beside the zones and is none: the machine's own zone, the mark for "not set", a rule for old programs."""


def is_zone(name: str) -> bool:
    """Tell whether a text names an IANA zone (M3)."""
    return name in zone_names()


@lru_cache(maxsize=1)
def zone_names() -> frozenset[str]:
    """Return every IANA zone that a budget window can be in."""
    return frozenset(available_timezones()) - _NO_ZONES


def _zone_problem(name: str) -> str | None:
    return None if is_zone(name) else "Expected an IANA zone, as in Europe/Berlin."


Percent = Annotated[Decimal, decimal_meta(ge=0, le=100, places=8)]
Usd = Annotated[Decimal, decimal_meta(ge=0, lt=1_000_000_000, places=6)]
Age = Annotated[int, Meta(ge=10, le=3600)]
Zone = Annotated[str, check_meta(_zone_problem)]
Reason = Annotated[str, Meta(max_length=LONGEST_REASON)]


class BudgetChanges(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What changes of one rung's budget; an amount of null is no limit, 0 is off (M1)."""

    amount_usd: Usd | UnsetType | None = UNSET
    period: Period | UnsetType = UNSET
    week_starts_on: Weekday | UnsetType = UNSET
    zone: Zone | UnsetType = UNSET


class BudgetsChanges(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What changes of the paid rungs' budgets."""

    cheap: BudgetChanges | UnsetType = UNSET
    premium: BudgetChanges | UnsetType = UNSET


class ThresholdChanges(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What changes of the tier thresholds, USD per million input tokens (T)."""

    free: Usd | UnsetType = UNSET
    cheap: Usd | UnsetType = UNSET


class SettingsChanges(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What changes of the settings; what is left out stays."""

    exit_cutoff_percent: Percent | UnsetType = UNSET
    reentry_min_remaining_percent: Percent | UnsetType = UNSET
    max_reading_age_seconds: Age | UnsetType = UNSET
    tier_thresholds: ThresholdChanges | UnsetType = UNSET
    rung_budgets: BudgetsChanges | UnsetType = UNSET
    reason: Reason = ""


class OmnirouteBudgets(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`rungBudgetUsd`: null is no limit, 0 is off (M1); a rung that it does not name keeps its budget."""

    cheap: Usd | UnsetType | None = UNSET
    premium: Usd | UnsetType | None = UNSET


class OmnirouteLadder(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """`subscriptionLadder`; what it does not name stays as it is stored."""

    exit_cutoff_percent: Percent | UnsetType = UNSET
    reentry_min_remaining_percent: Percent | UnsetType = UNSET
    rung_budget_usd: OmnirouteBudgets | UnsetType = UNSET


class OmnirouteSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """The settings as OmniRoute writes them, and why they change. There is deliberately no `enabled`."""

    subscription_ladder: OmnirouteLadder
    reason: Reason = ""


def update_settings(
    *,
    changes: SettingsChanges,
    actor: Actor,
    reason: str,
    now: datetime,
    check: Callable[[StoredSettings], None] | None = None,
) -> StoredSettings:
    """Change settings and return all of them; rows that do not differ are not saved again.

    The amounts of a budget keep its window and its usage; period, weekday and zone make another window at once (M4).
    `check` is called with what is stored, under the lock and before anything is changed: it may refuse.

    Raises:
        BadRequest: the thresholds would not be in order.
    """
    with deciding_write() as write:
        # The one row of the settings is the lock for all of them.
        ladder = LadderSettings.objects.select_for_update().get(pk=1)
        if check is not None:
            check(read_stored_settings())
        thresholds = TierThresholds.objects.select_for_update().get(pk=1)
        pending = [(ladder, _given(changes)), (thresholds, _given(changes.tier_thresholds))]
        if changes.rung_budgets is not UNSET:
            pending += [
                (RungBudget.objects.select_for_update().get(rung=rung), _given(getattr(changes.rung_budgets, rung)))
                for rung in ("cheap", "premium")
            ]
        _check_order(thresholds, pending[1][1])
        for row, given in pending:
            _remember(row, given, now)
        saved = [_save(row, given, actor=actor, reason=reason, now=now) for row, given in pending]
        write.changed = any(saved)
        return read_stored_settings()


def from_omniroute(*, form: OmnirouteSettings) -> SettingsChanges:
    """Return the changes that settings in OmniRoute's form mean."""
    ladder = form.subscription_ladder
    budgets = ladder.rung_budget_usd
    return SettingsChanges(
        exit_cutoff_percent=ladder.exit_cutoff_percent,
        reentry_min_remaining_percent=ladder.reentry_min_remaining_percent,
        rung_budgets=UNSET
        if isinstance(budgets, UnsetType)
        else BudgetsChanges(
            cheap=BudgetChanges(amount_usd=budgets.cheap), premium=BudgetChanges(amount_usd=budgets.premium)
        ),
    )


def _given(changes: msgspec.Struct | UnsetType) -> dict[str, Any]:
    """Return the plain fields that are given, by name."""
    return dict(_plain_fields(changes)) if isinstance(changes, msgspec.Struct) else {}


def _plain_fields(changes: msgspec.Struct) -> Iterator[tuple[str, Any]]:
    for name in changes.__struct_fields__:
        value = getattr(changes, name)
        if name != "reason" and value is not UNSET and not isinstance(value, msgspec.Struct):
            yield name, value


def _check_order(row: TierThresholds, given: dict[str, Any]) -> None:
    free, cheap = given.get("free", row.free), given.get("cheap", row.cheap)
    if cheap < free:
        name = "cheap" if "cheap" in given else "free"
        error = FieldError(f"/tier_thresholds/{name}", "The threshold of cheap is not below that of free.")
        raise BadRequest("One field is not valid.", errors=[error])


def _remember(row: models.Model, given: dict[str, Any], now: datetime) -> None:
    """Remember what differs as it is, for the timeline."""
    if not _changed(row, given):
        return
    if isinstance(row, LadderSettings):
        remember_settings(settings=to_settings(row), now=now)
    elif isinstance(row, TierThresholds):
        remember_thresholds(thresholds=Thresholds(row.free, row.cheap), now=now)
    elif isinstance(row, RungBudget):
        remember_budgets(budgets=read_past(rows={rung_named(row.rung): row}, now=now), now=now)


def _changed(row: models.Model, given: dict[str, Any]) -> list[str]:
    return [name for name, value in given.items() if getattr(row, name) != value]


def _save(row: models.Model, given: dict[str, Any], *, actor: Actor, reason: str, now: datetime) -> bool:
    """Save what differs and tell whether anything did."""
    changed = _changed(row, given)
    for name in changed:
        setattr(row, name, given[name])
    if changed:
        stamp(instance=row, actor=actor, reason=reason, now=now)
        row.save()
    return bool(changed)
