"""The stored settings: of the decision, of the tiers, of the budgets (SPEC 2, Settings)."""

from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal

import msgspec

from billing_catalog.core.values import Thresholds
from billing_catalog.mapping import read_thresholds
from ladder.core.values import LadderSettings, Period, Weekday
from ladder.mapping import to_settings
from ladder.models import LadderSettings as LadderSettingsRow
from ladder.models import RungBudget
from omniroute_admin.common.selectors.compiled import Compiled


class BudgetSettings(msgspec.Struct, frozen=True):
    """A paid rung's budget as it is set: USD in one window; None is no limit, zero is off (M1, M3)."""

    amount_usd: Decimal | None
    period: Period
    week_starts_on: Weekday
    zone: str


class StoredSettings(msgspec.Struct, frozen=True):
    """All that an operator tunes; `budgets` by the rung's word."""

    ladder: LadderSettings
    thresholds: Thresholds
    budgets: dict[str, BudgetSettings]


def read_settings() -> LadderSettings:
    """Read the settings of the decision; one query, whose SQL is made once."""
    return LadderSettings(*_SETTINGS.rows([1])[0])


_SETTINGS = Compiled(
    lambda keys: (
        LadderSettingsRow.objects.filter(pk__in=keys)
        .order_by()
        .values_list("exit_cutoff_percent", "reentry_min_remaining_percent", "max_reading_age_seconds")
    )
)


def read_budget_rows() -> list[RungBudget]:
    """Read how the paid rungs' budgets are set, the lower rung first; one query."""
    return list(RungBudget.objects.order_by("rung"))


def read_stored_settings(*, budgets: Iterable[RungBudget] | None = None) -> StoredSettings:
    """Read the stored settings; three queries, two where the rows of the budgets are at hand."""
    rows = read_budget_rows() if budgets is None else budgets
    return StoredSettings(
        ladder=to_settings(LadderSettingsRow.objects.get(pk=1)),
        thresholds=read_thresholds(),
        budgets={row.rung: _to_budget_settings(row) for row in rows},
    )


def _to_budget_settings(row: RungBudget) -> BudgetSettings:
    return BudgetSettings(row.amount_usd, Period(row.period), Weekday(row.week_starts_on), row.zone)


def read_counted_from(*, rung: str) -> datetime | None:
    """Return the instant of the last reset of a paid rung's budget, None where there was none (M9)."""
    return RungBudget.objects.values_list("counted_from", flat=True).get(rung=rung)
